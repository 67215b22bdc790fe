"""What a client does with refusals: of commands, of opens, of a whole conversation."""

from typing import Any

from protocol.client.events import DropConnection, Lost, Replied
from tests.protocol_client.wire import Wire


def started(wire: Wire, re: str) -> None:
    wire.receive_json(type="reply", re=re, ok=True, outcome="started")


def too_fast(wire: Wire, re: str) -> None:
    error = {"code": "rate_limited", "message": "m", "retryable": True}
    error |= {"retry_after_ms": 500}
    wire.receive_json(type="reply", re=re, ok=False, error=error)


def ids(wire: Wire) -> list[str]:
    return [each["id"] for each in wire.sent()]


def comes_back_with_a_send(wire: Wire) -> tuple[object, dict[str, Any], dict[str, Any]]:
    """Returns a send that has no reply yet, the open of its conversation and itself."""
    wire.open()
    send = wire.client.send("c", "hi")
    wire.client.disconnected(None, wire.now)
    wire.connect()
    opening, again = wire.sent()
    wire.events()
    return send, opening, again


def test_after_a_refusal_it_begins_with_one_and_each_reply_allows_one_more(
    online: Wire,
) -> None:
    first, *others = [online.client.send("c", "hi").id for _ in range(3)]
    assert ids(online) == [first, *others]
    too_fast(online, first)
    for other in others:
        started(online, other)
    online.advance_to_timer()
    assert ids(online) == [first]
    more = [online.client.send("c", "hi").id for _ in range(10)]
    assert ids(online) == []
    started(online, first)
    assert ids(online) == more[:2]
    started(online, more[0])
    assert ids(online) == more[2:4]
    started(online, more[1])
    assert ids(online) == more[4:6]


def test_a_new_connection_knows_nothing_of_what_the_old_one_refused(
    online: Wire,
) -> None:
    given = [online.client.send("c", "hi").id for _ in range(3)]
    assert ids(online) == given
    too_fast(online, given[1])
    online.client.disconnected(None, online.now)
    online.connect()
    assert ids(online) == given, "in their order, and at once"


def test_who_may_not_come_back_is_told_so_and_not_that_it_was_deleted(
    online: Wire,
) -> None:
    send, opening, again = comes_back_with_a_send(online)
    online.refuse(opening["id"], "forbidden")
    error = online.only(Lost).error
    assert (error.code, error.message) == ("forbidden", "no")
    online.refuse(again["id"], "forbidden")
    reply = online.only(Replied)
    assert (reply.command, reply.reply.ok) == (send, False)


def test_what_is_held_for_a_conversation_that_is_gone_was_not_done(
    online: Wire,
) -> None:
    send, opening, _ = comes_back_with_a_send(online)
    online.refuse(opening["id"], "conversation_not_found")
    events = online.events()
    [replied] = [event for event in events if isinstance(event, Replied)]
    assert (replied.command, replied.reply.ok) == (send, False)
    assert replied.reply.error is not None
    assert replied.reply.error.code == "conversation_not_found"


def test_what_still_arrives_on_a_connection_that_is_given_up_starts_no_clock(
    online: Wire,
) -> None:
    while not any(isinstance(event, DropConnection) for event in online.events()):
        online.advance_to_timer()
    assert online.client.next_timer() is None
    online.receive_json(type="pong", server_time="2026-01-02T03:04:05.678Z")
    assert online.client.next_timer() is None


def test_what_is_not_opened_anew_is_closed_and_the_server_asks_others(
    online: Wire,
) -> None:
    online.open()
    online.client.open("c", handles=["look"])
    online.refuse(online.sent()[0]["id"], "bad_frame")
    online.only(Replied)
    (leaving,) = online.sent()
    assert (leaving["type"], leaving["conversation"]) == ("close", "c")
    online.receive_json(type="reply", re=leaving["id"], ok=True, outcome="closed")
    assert not online.events()


def test_what_this_connection_never_opened_is_not_closed(online: Wire) -> None:
    online.open()
    online.client.disconnected(None, online.now)
    online.connect()
    online.refuse(online.sent()[0]["id"], "forbidden")
    assert not online.sent()


def test_what_is_too_large_to_be_opened_anew_is_closed(online: Wire) -> None:
    online.open()
    online.client.open("c", handles=["x" * 60] * 100)
    assert [frame["type"] for frame in online.sent()] == ["close"]
