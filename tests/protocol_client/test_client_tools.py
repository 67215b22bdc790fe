"""Tool calls: run once, answered until the server has the answer."""

from protocol.client.events import Replied
from protocol.control import ToolRequest
from protocol.events import DoneEvent
from tests.protocol_client.wire import PROOF, TIMING, Wire


def ask(wire: Wire, call: str = "k", *, redelivered: bool = False) -> bool:
    """Delivers a request; says whether the tool is to be run."""
    wire.receive(
        ToolRequest(
            conversation="c",
            turn=1,
            call=call,
            name="t",
            arguments={},
            deadline_ms=1000,
            redelivered=redelivered,
        )
    )
    return any(isinstance(event, ToolRequest) for event in wire.events())


def reconnect(wire: Wire) -> list[str]:
    """Cuts and connects; gives the ids of the results that are sent again."""
    wire.client.disconnected(None, wire.now)
    wire.connect()
    again = wire.sent()
    for frame in again:
        if frame["type"] == "open":
            wire.verdict(frame["id"])
    wire.events()
    return [frame["id"] for frame in again if frame["type"] == "tool_result"]


def test_a_running_tool_is_not_started_again(online: Wire) -> None:
    online.open()
    assert ask(online)
    assert not ask(online)
    reconnect(online)
    assert not ask(online, redelivered=True)
    assert not online.sent()
    assert ask(online, "another")


def test_a_result_is_sent_until_it_is_replied_to(online: Wire) -> None:
    online.open()
    ask(online)
    given = online.client.tool_result("c", "k", output={"n": 1})
    assert online.sent()[0]["output"] == {"n": 1}
    assert reconnect(online) == [given.id]
    online.receive_json(type="reply", re=given.id, ok=True, outcome="accepted")
    assert online.only(Replied).reply.outcome == "accepted"
    assert reconnect(online) == []


def test_a_redelivered_call_whose_result_is_known_gets_it_again(online: Wire) -> None:
    online.open()
    ask(online)
    given = online.client.tool_result("c", "k", output="done")
    online.receive_json(type="reply", re=given.id, ok=True, outcome="accepted")
    reconnect(online)
    assert not ask(online, redelivered=True)
    (again,) = online.sent()
    assert (again["id"], again["output"]) == (given.id, "done")


def test_a_refused_result_leaves_room_for_another(online: Wire) -> None:
    online.open()
    ask(online)
    given = online.client.tool_result("c", "k", output="x" * 2000)
    online.refuse(given.id, "too_large")
    online.sent()
    assert not ask(online, redelivered=True), "the tool has run"
    assert not online.sent(), "what was refused is not sent again"
    online.client.tool_result("c", "k", error="the output is too large")
    assert online.sent()[0]["error"] == {"message": "the output is too large"}


def test_calls_are_forgotten_with_their_turn(online: Wire) -> None:
    online.open()
    ask(online)
    online.receive(
        DoneEvent(
            conversation="c",
            turn=1,
            seq=1,
            status="completed",
            text=PROOF,
            timing=TIMING,
        )
    )
    assert ask(online), "it holds nothing of a turn that is over"


def test_calls_of_another_epoch_are_other_calls(online: Wire) -> None:
    online.open()
    ask(online)
    online.client.disconnected(None, online.now)
    online.connect()
    (opening,) = online.sent()
    online.verdict(opening["id"], "reset", epoch="e2", reason="epoch_changed")
    assert ask(online)


def test_a_tool_that_runs_is_not_started_again_by_opening_again(online: Wire) -> None:
    online.open()
    ask(online)
    online.client.close("c")
    online.sent()
    online.open()
    assert not ask(online, redelivered=True), "it still runs"
    given = online.client.tool_result("c", "k", output="done")
    online.client.close("c")
    online.sent()
    online.open()
    assert not ask(online, redelivered=True), "it has run"
    (again,) = online.sent()
    assert (again["id"], again["output"]) == (given.id, "done")


def test_what_was_let_go_is_forgotten_once_it_is_answered(online: Wire) -> None:
    online.open()
    ask(online, "before")
    ask(online, "after")
    before = online.client.tool_result("c", "before", output=1)
    online.receive_json(type="reply", re=before.id, ok=True, outcome="accepted")
    online.client.close("c")
    after = online.client.tool_result("c", "after", output=2)
    online.receive_json(type="reply", re=after.id, ok=True, outcome="accepted")
    online.open()
    assert ask(online, "before"), "nothing is known of it"
    assert ask(online, "after")


def test_what_was_asked_before_the_verdict_is_another_connections_by_now(
    online: Wire,
) -> None:
    online.open()
    online.client.close("c")
    online.client.open("c")
    opening = online.sent()[-1]
    assert not ask(online), "it was under way when the conversation was closed"
    online.verdict(opening["id"])
    assert ask(online, redelivered=True)


def test_a_tool_is_not_started_again_where_its_conversation_was_not_deleted(
    online: Wire,
) -> None:
    online.open()
    ask(online)
    given = online.client.delete("c")
    online.sent()
    online.refuse(given.id, "store_unavailable", retryable=True)
    online.open()
    assert not ask(online, redelivered=True), "it still runs"


def test_the_next_conversation_of_that_name_has_calls_of_its_own(online: Wire) -> None:
    online.open()
    ask(online)
    given = online.client.delete("c")
    online.sent()
    online.receive_json(type="reply", re=given.id, ok=True, outcome="deleted")
    online.open(epoch="e2")
    assert ask(online)
