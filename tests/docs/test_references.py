"""The references that are made from the code are fresh, and leave nothing out."""

from collections.abc import Callable
from pathlib import Path

import pytest

import client_demo
from client_demo import sync
from tests.docs import cli_page, javascript_client_page, python_client_page


@pytest.mark.parametrize(
    ("path", "made", "command"),
    [
        (cli_page.PAGE, cli_page.page, "cli_page"),
        (python_client_page.PAGE, python_client_page.page, "python_client_page"),
        (
            javascript_client_page.PAGE,
            javascript_client_page.page,
            "javascript_client_page",
        ),
    ],
    ids=["cli", "python client", "javascript client"],
)
def test_the_page_is_fresh(path: Path, made: Callable[[], str], command: str) -> None:
    assert path.read_text() == made(), f"run: python -m tests.docs.{command}"


def test_all_that_is_exported_is_there() -> None:
    page = python_client_page.page()
    for name in client_demo.__all__:
        assert f"### {name}\n" in page or f"`{name}`" in page, name


def test_the_synchronous_face_has_the_same_names() -> None:
    """And the same arguments, but for what only the other one can take."""
    for name in ("Client", "Chat", "Turn"):
        both = [vars(getattr(of, name)) for of in (client_demo, sync)]
        there, here = (
            {
                each: python_client_page._node(
                    made.fget if isinstance(made, property) else made
                )
                for each, made in members.items()
                if not each.startswith("_") and each not in python_client_page._HIDDEN
            }
            for members in both
        )
        assert there.keys() == here.keys()
        for each, node in there.items():
            given = [*python_client_page._given(node.args)]
            assert [*python_client_page._given(here[each].args)] == given, each


def test_every_command_has_its_section() -> None:
    page = cli_page.page()
    for command in ("serve", "doctor", "config check", "conversations export"):
        assert f"\n### wsserver {command}\n" in page
    for command in ("ask", "chat", "agent", "load"):
        assert f"\n### client_demo {command}\n" in page


def test_every_member_of_the_javascript_client_has_its_row() -> None:
    page = javascript_client_page.page()
    for member in ("`drop(", "`ask(", "`painted(", "`windowBytes?", "`deadlineMs"):
        assert f"| {member}" in page, member
