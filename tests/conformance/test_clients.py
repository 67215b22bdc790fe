"""The clients of this repository play all scenarios."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.judge import Json, Judge, scenarios
from tests.conformance.program_driver import ProgramDriver
from tests.conformance.python_driver import PythonDriver

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "client_demo" / "web"
ALL = list(scenarios())
every_scenario = pytest.mark.parametrize(
    "scenario", ALL, ids=[f"{each['file']}: {each['name']}" for each in ALL]
)


@pytest.fixture(scope="module")
def javascript() -> Iterator[ProgramDriver]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    with ProgramDriver([node, str(HERE / "javascript.mjs"), str(WEB)]) as driver:
        yield driver


@every_scenario
def test_the_python_client(scenario: Json) -> None:
    Judge(PythonDriver()).play(scenario)


@pytest.mark.node
@every_scenario
def test_the_javascript_client(scenario: Json, javascript: ProgramDriver) -> None:
    Judge(javascript).play(scenario)
