"""Clients that break one rule each: the scenarios notice every one of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from protocol.backoff import Backoff
from protocol.client import link, output
from protocol.client.machine import ClientProtocol
from protocol.client.outbox import Outbox
from protocol.client.pace import Pace
from protocol.client.subscription import Subscription
from protocol.client.subscriptions import Subscriptions
from protocol.client.tools import ToolLedger
from protocol.events import LogEvent, first_seq
from protocol.fold import ConversationView, GapError
from protocol.view import TurnView
from tests.conformance.javascript_faults import JAVASCRIPT
from tests.conformance.judge import BrokenRuleError, Driver, Judge, scenarios
from tests.conformance.program_driver import ProgramDriver
from tests.conformance.python_driver import PythonDriver

HERE = Path(__file__).parent
WEB = HERE.parents[1] / "client_demo" / "web"
SCENARIOS = list(scenarios())


def is_found(driver: Driver, file: str) -> bool:
    """Whether the judge has anything against a client in the scenarios of a file."""
    for scenario in SCENARIOS:
        if scenario["file"] == file:
            try:
                Judge(driver).play(scenario)
            except (BrokenRuleError, GapError):
                return True
    return False


@pytest.mark.node
@pytest.mark.parametrize(
    ("file", "fault"),
    [(file, fault) for file, faults in JAVASCRIPT.items() for fault in faults],
)
def test_a_broken_javascript_client_is_found(
    file: str, fault: str, tmp_path: Path
) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    name, right, wrong = JAVASCRIPT[file][fault]
    copy = shutil.copytree(WEB, tmp_path / "web")
    source = (copy / name).read_text()
    assert right in source, f"{name} has changed; break it elsewhere"
    (copy / name).write_text(source.replace(right, wrong))
    with ProgramDriver([node, str(HERE / "javascript.mjs"), str(copy)]) as driver:
        assert is_found(driver, file)


def moves_back(self: Subscription, event: LogEvent) -> str:
    fits = event.seq != self._last
    self._last = event.seq
    return "fits" if fits else "old"


def whole_only(self: Subscription, event: LogEvent) -> str:
    if first_seq(event) != self._last + 1:
        return "old" if event.seq <= self._last else "gap"
    self._last = event.seq
    return "fits"


def proves_all(self: TurnView, _: Any) -> None:
    self.proven = True


def opens_anew(self: Subscription, wire_id: str) -> Any:
    self.wire_id, self.attached = wire_id, False
    return replace(self.wanted, id=wire_id, epoch=None, after=UNSET)


PYTHON: dict[str, tuple[str, type, str, Any]] = {
    "takes what does not fit": ("cursor", Subscription, "place", moves_back),
    "asks for everything again": ("cursor", Subscription, "opening", opens_anew),
    "believes every replay": ("cursor", Subscription, "short_of", lambda *_: False),
    "forgets what was not replied to": (
        "commands",
        Outbox,
        "__iter__",
        lambda _: iter(()),
    ),
    "never comes back to what came too fast": (
        "commands",
        Outbox,
        "next_timer",
        lambda *_: None,
    ),
    "goes faster than was announced": ("commands", Pace, "has_room", lambda _: True),
    "leaves open what was refused": (
        "commands",
        Subscriptions,
        "_leave",
        lambda *_: None,
    ),
    "opens what is to be deleted": ("commands", Outbox, "deletes", lambda *_: False),
    "opens again what somebody deleted": (
        "deleted",
        Subscriptions,
        "gone",
        lambda *_: True,
    ),
    "says again what was for it": ("deleted", Outbox, "into", lambda *_: []),
    "says again what was for one that was deleted meanwhile": (
        "deleted",
        Subscription,
        "resumes",
        False,
    ),
    "ends a fork with what it is a copy of": (
        "deleted",
        Outbox,
        "into",
        lambda self, name: [held for held in self if held.conversation == name],
    ),
    "takes a limit for a refusal": (
        "commands",
        Outbox,
        "too_fast",
        lambda self, command_id, *_: self.settle(command_id),
    ),
    "takes no part of a skip": ("cursor", Subscription, "place", whole_only),
    "takes any text for the server's": ("turns", TurnView, "_prove", proves_all),
    "never proves a text": ("turns", TurnView, "_prove", lambda *_: None),
    "does not cut": ("turns", TurnView, "apply", lambda *_: None),
    "shows nothing": ("cursor", ConversationView, "apply", lambda *_: True),
    "runs a tool twice": ("tools", ToolLedger, "ask", lambda *_: True),
    "gives a result once": ("tools", ToolLedger, "result", lambda *_: None),
    "waits for ever": ("closes", Backoff, "delay_seconds", lambda *_: 1e6),
    "ignores the server's wait": (
        "closes",
        link.Link,
        "going_away",
        lambda *_: None,
    ),
    "does not notice silence": (
        "connection",
        ClientProtocol,
        "timer",
        lambda *_: None,
    ),
    "sends what is too long": (
        "commands",
        output.Output,
        "write_encoded",
        lambda self, frame, *_: self._frames.append(frame),
    ),
}


@pytest.mark.parametrize("fault", PYTHON)
def test_a_broken_python_client_is_found(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, part, name, broken = PYTHON[fault]
    monkeypatch.setattr(part, name, broken)
    assert is_found(PythonDriver(), file)
