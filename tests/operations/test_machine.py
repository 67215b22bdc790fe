import resource

import msgspec
import pytest

from wsserver.assembly.open_files import OWN_FILES
from wsserver.operations.checks import machine
from wsserver.operations.checks.machine import (
    clock,
    judge_open_files,
    judge_skew,
    open_files,
)
from wsserver.settings import Model, Settings

SETTINGS = Settings(max_connections=1000, upstream_pool_size=50)
NEEDED = 1000 + 50 + OWN_FILES


@pytest.mark.parametrize(
    ("limit", "status"),
    [(None, "ok"), (NEEDED, "ok"), (NEEDED - 1, "warn"), (10, "warn")],
)
def test_open_files_are_enough_for_all_clients_and_calls(
    limit: int | None, status: str
) -> None:
    assert judge_open_files(limit, SETTINGS).status == status


def test_each_upstream_has_connections_of_its_own() -> None:
    model = Model(base_url="http://a/v1")
    more = msgspec.structs.replace(SETTINGS, models={"a": model, "b": model})

    assert judge_open_files(NEEDED + 100, more).status == "ok"
    assert judge_open_files(NEEDED + 99, more).status == "warn"


def test_the_remedy_is_a_number_that_helps() -> None:
    finding = judge_open_files(NEEDED - 400, SETTINGS)

    assert finding.remedy is not None
    assert finding.remedy.endswith("max_connections to 600 or less")
    helped = msgspec.structs.replace(SETTINGS, max_connections=600)
    assert judge_open_files(NEEDED - 400, helped).status == "ok"


def test_the_hard_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3, NEEDED))
    assert open_files(SETTINGS).status == "ok"

    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3, unlimited))
    assert open_files(SETTINGS).says.startswith("no limit")


@pytest.mark.parametrize(
    ("kept", "status"), [(True, "ok"), (False, "warn"), (None, "ok")]
)
def test_a_clock_that_nothing_keeps_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, kept: bool | None, status: str
) -> None:
    monkeypatch.setattr(machine, "_is_kept", lambda: kept)

    assert clock().status == status


@pytest.mark.parametrize(("state", "kept"), [(0, True), (5, False), (-1, None)])
def test_the_kernel_is_asked(
    monkeypatch: pytest.MonkeyPatch, state: int, kept: bool | None
) -> None:
    class Kernel:
        def __init__(self, name: None) -> None:
            assert name is None

        def adjtimex(self, timex: object) -> int:
            return state

    monkeypatch.setattr(machine.ctypes, "CDLL", Kernel)

    assert machine._is_kept() is kept


def test_asking_the_kernel_itself_changes_nothing() -> None:
    assert machine._is_kept() in (True, False, None)


@pytest.mark.parametrize(
    ("seconds", "status", "word"),
    [
        (0, "ok", "agrees"),
        (5, "ok", "agrees"),
        (5.1, "warn", "ahead of"),
        (-60, "warn", "behind"),
    ],
)
def test_clocks_that_differ_are_a_warning(
    seconds: float, status: str, word: str
) -> None:
    finding = judge_skew(seconds)

    assert finding.status == status
    assert word in finding.says
