"""Clients that break one rule each: the scenarios notice every one of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from protocol import client_link, client_output
from protocol.backoff import Backoff
from protocol.client import ClientProtocol
from protocol.client_outbox import Outbox
from protocol.client_pace import Pace
from protocol.client_subscription import Subscription
from protocol.client_subscriptions import Subscriptions
from protocol.client_tools import ToolLedger
from protocol.events import LogEvent
from protocol.fold import ConversationView, GapError
from protocol.view import TurnView
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


JAVASCRIPT = {
    "ignores first": (
        "cursor",
        "subscription.js",
        "const first = event.first ?? event.seq;",
        "const first = this.last + 1;",
    ),
    "says a message twice": (
        "commands",
        "session.js",
        "else this.#transmit(frame);",
        "else this.#transmit({ ...frame, id: this.#newId() });",
    ),
    "forgets what was not replied to": (
        "commands",
        "session.js",
        "    this.#out.length = 0;\n",
        "    this.#out.length = 0;\n    this.#outbox = new Outbox();\n",
    ),
    "does not cut": ("turns", "fold.js", "=> turn.cut(event)", "=> {}"),
    "cuts by characters": (
        "turns",
        "fold.js",
        "const bytes = encoder.encode(text);",
        "const bytes = new Uint8Array([...text].length);",
    ),
    "moves its cursor back": (
        "cursor",
        "subscription.js",
        'if (event.seq <= this.last) return "old";',
        'if (event.seq <= this.last) return (this.last = event.seq), "old";',
    ),
    "shows again what it had": (
        "cursor",
        "subscription.js",
        'if (event.seq <= this.last) return "old";',
        'if (event.seq <= this.last) return "fits";',
    ),
    "asks for everything again": (
        "cursor",
        "subscription.js",
        "return this.epoch === null ? frame",
        "return true ? frame",
    ),
    "takes events before the verdict": (
        "cursor",
        "session.js",
        "if (!subscription?.attached) return;\n    subscription.unackedBytes",
        "if (!subscription) return;\n    subscription.unackedBytes",
    ),
    "does not count what it does not know": (
        "cursor",
        "session.js",
        "else this.#event(frame, text.length);",
        "else if (!frame.type.startsWith('holo')) this.#event(frame, text.length);",
    ),
    "believes the first heartbeat": (
        "cursor",
        "subscription.js",
        "const stuck = this.stuckAt === this.last;",
        "const stuck = true;",
    ),
    "keeps what a reset voids": (
        "reset",
        "engine.js",
        "      each.reset();\n",
        "",
    ),
    "waits without jitter": (
        "closes",
        "backoff.js",
        "this.#random() * windowMs",
        "windowMs",
    ),
    "does not wait": (
        "closes",
        "backoff.js",
        "atLeastMs + this.#random() * windowMs",
        "0",
    ),
    "dials again where it is no use": (
        "closes",
        "backoff.js",
        'return "stop"',
        'return "back_off"',
    ),
    "lets a welcome shorten its waits": (
        "closes",
        "backoff.js",
        "if (upMs < STABLE_MS) return;",
        "",
    ),
    "speaks before the welcome": (
        "connection",
        "session.js",
        'this.phase = "greeting";',
        'this.phase = "online";',
    ),
    "waits for a silent server": (
        "connection",
        "link.js",
        "if (this.#heard < asked && !this.#hidden()) this.#lost(null);",
        "",
    ),
    "runs a tool twice": (
        "tools",
        "calls.js",
        "if (this.#asked.has(key(conversation, call))) return false;",
        "",
    ),
    "gives a result once and never again": (
        "tools",
        "session.js",
        "else this.#sendAgain(this.#calls.answered(request));",
        "",
    ),
    "takes draining for a refusal": (
        "commands",
        "session.js",
        'reply.error?.code === "draining"',
        "false",
    ),
    "hurries when it was too fast": (
        "commands",
        "outbox.js",
        "this.#pausedUntil = until;",
        "",
    ),
    "forgets the second that came too fast": (
        "commands",
        "outbox.js",
        "    this.#refused.add(id);",
        "    if (this.#refused.size === 0) this.#refused.add(id);",
    ),
    "makes a stop wait": (
        "commands",
        "outbox.js",
        'new Set(["interrupt", ',
        "new Set([",
    ),
    "makes a stop that came too fast wait": (
        "commands",
        "outbox.js",
        "URGENT.has(this.get(id).type) ? 0 : 1",
        "1",
    ),
    "closes late what was opened again": (
        "commands",
        "session.js",
        'frame.type === "close" && this.#subscriptions',
        "false && this.#subscriptions",
    ),
    "opens what is to be deleted": (
        "commands",
        "session.js",
        " || this.#outbox.deletes(subscription.conversation)",
        "",
    ),
    "opens again what somebody deleted": (
        "deleted",
        "session.js",
        "else this.#gone(frame);",
        "",
    ),
    "says again what was for it": (
        "deleted",
        "session.js",
        "this.#outbox.into(conversation)",
        "[]",
    ),
    "says again what was for one that was deleted meanwhile": (
        "deleted",
        "session.js",
        "&& subscription.resumes",
        "&& false",
    ),
    "ends a fork with what it is a copy of": (
        "deleted",
        "outbox.js",
        "WITHIN.has(frame.type)",
        "true",
    ),
    "ends the next of that name": (
        "deleted",
        "session.js",
        "get(conversation)?.epoch === null",
        "get(conversation)?.epoch === 0",
    ),
    "takes a second delete for a failure": (
        "deleted",
        "session.js",
        'type !== "delete" || ',
        "true || ",
    ),
    "says what the delete would take along": (
        "commands",
        "outbox.js",
        'type === "close" || URGENT.has(type) ?',
        "true ?",
    ),
    "gives credentials that are outdated": (
        "connection",
        "session.js",
        'for (const refresh of this.#overtaken) this.#done(refresh, "refreshed");',
        "",
    ),
    "goes faster than was announced": (
        "commands",
        "pace.js",
        "return this.#perMs === null || this.#missing",
        "return true || this.#missing",
    ),
    "opens again as if nothing had worked": (
        "reset",
        "engine.js",
        "this.#reopening.reset();",
        "",
    ),
    "acknowledges what it did not get": (
        "window",
        "session.js",
        "seq: subscription.last }",
        "seq: subscription.last + 1 }",
    ),
    "takes a full window for a loss": (
        "window",
        "subscription.js",
        " || this.unackedBytes >= this.ackEveryBytes",
        "",
    ),
    "waits anew for an answer whenever it asks": (
        "connection",
        "link.js",
        "if (this.#asked !== null) return;",
        "",
    ),
    "counts the gaps of an older connection": (
        "cursor",
        "session.js",
        "      subscription.misses = 0;\n",
        "",
    ),
    "never acknowledges": (
        "window",
        "session.js",
        'this.#say({ type: "ack"',
        'void ({ type: "ack"',
    ),
}


@pytest.mark.node
@pytest.mark.parametrize("fault", JAVASCRIPT)
def test_a_broken_javascript_client_is_found(fault: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    file, name, right, wrong = JAVASCRIPT[fault]
    for path in WEB.glob("*.js*"):
        shutil.copy(path, tmp_path)
    source = (tmp_path / name).read_text()
    assert right in source, f"{name} has changed; break it elsewhere"
    (tmp_path / name).write_text(source.replace(right, wrong))
    with ProgramDriver([node, str(HERE / "javascript.mjs"), str(tmp_path)]) as driver:
        assert is_found(driver, file)


def moves_back(self: Subscription, event: LogEvent) -> str:
    fits = event.seq != self._last
    self._last = event.seq
    return "fits" if fits else "old"


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
    "does not cut": ("turns", TurnView, "apply", lambda *_: None),
    "shows nothing": ("cursor", ConversationView, "apply", lambda *_: True),
    "runs a tool twice": ("tools", ToolLedger, "ask", lambda *_: True),
    "gives a result once": ("tools", ToolLedger, "result", lambda *_: None),
    "waits for ever": ("closes", Backoff, "delay_seconds", lambda *_: 1e6),
    "ignores the server's wait": (
        "closes",
        client_link.Link,
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
        client_output.Output,
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
