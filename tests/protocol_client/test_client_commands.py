"""Commands: under one id until they are replied to, over any number of connections."""

import pytest

from protocol.client.events import Connected, Disconnected, Lost, Replied
from protocol.client.link import ClientStateError
from protocol.content import Config
from protocol.control import AuthExpiring, ErrorFrame, ToolRequest
from protocol.frame_error import FrameError
from tests.protocol_client.wire import WELCOME, Wire

GONE = ErrorFrame(
    code="conversation_not_found",
    message="It was deleted.",
    retryable=False,
    gone="c",
)
REQUEST = ToolRequest(
    conversation="c",
    turn=1,
    call="k",
    name="t",
    arguments={},
    deadline_ms=1000,
    redelivered=False,
)


def test_a_send_goes_out_again_under_its_id_until_the_reply(online: Wire) -> None:
    """C-10, the client's part."""
    online.open()
    sent = online.client.send("c", "hi")
    (first,) = online.sent()
    for _ in range(3):
        online.client.disconnected(None, online.now)
        online.connect()
        opening, again = online.sent()
        assert again == first, "the very same frame"
        online.verdict(opening["id"], head=0)
    online.events()
    for _ in range(2):
        online.receive_json(
            type="reply", re=sent.id, ok=True, outcome="started", turn=2, seq=1
        )
    replied = online.only(Replied)
    assert (replied.command, replied.reply.outcome) == (sent, "started")
    online.client.disconnected(None, online.now)
    online.connect()
    assert [frame["type"] for frame in online.sent()] == ["open"]


def test_commands_wait_for_the_welcome_and_keep_their_order(wire: Wire) -> None:
    wire.client.open("c")
    wire.client.send("c", "one")
    wire.client.connected(wire.now)
    wire.client.configure("c", Config(model="m"))
    wire.client.interrupt("c", turn=3, seen_seq=9)
    wire.client.fork("c", 4, new="d")
    assert [frame["type"] for frame in wire.sent()] == ["hello"]
    wire.receive(WELCOME)
    kinds = [frame["type"] for frame in wire.sent()]
    assert kinds == ["open", "send", "configure", "interrupt", "fork"]


def test_ids_are_the_prefix_and_a_number_of_their_own(wire: Wire) -> None:
    ids = {wire.client.send("c", "hi").id for _ in range(3)}
    assert ids == {"me-1", "me-2", "me-3"}


def test_what_a_draining_server_refuses_goes_to_the_next(online: Wire) -> None:
    sent = online.client.send("c", "hi")
    online.refuse(sent.id, "draining", retryable=True)
    assert not online.events()
    online.client.disconnected(1012, online.now)
    online.connect()
    assert online.sent()[-1]["id"] == sent.id


def test_an_error_settles_a_command(online: Wire) -> None:
    sent = online.client.send("c", "hi")
    online.refuse(sent.id, "queue_full", retryable=True)
    error = online.only(Replied).reply.error
    assert error is not None
    assert (error.code, error.retryable) == ("queue_full", True)


@pytest.mark.parametrize("when", ["online", "before"])
def test_a_frame_above_the_limit_is_never_sent(wire: Wire, when: str) -> None:
    """It would end every connection it is sent on."""
    if when == "online":
        wire.connect()
    sent = wire.client.send("c", "x" * 5000)
    if when == "before":
        wire.connect()
    assert not wire.sent()
    replied = wire.only(Replied)
    assert replied.command == sent
    assert replied.reply.error is not None
    assert replied.reply.error.code == "too_large"


def test_an_open_above_the_limit_is_refused_too(online: Wire) -> None:
    online.client.open("c", config=Config(instructions="x" * 5000))
    assert not online.sent()
    error = online.only(Replied).reply.error
    assert error is not None
    assert error.code == "too_large"


def test_what_json_cannot_carry_changes_nothing(online: Wire) -> None:
    with pytest.raises(FrameError):
        online.client.send("c", "\ud800")
    with pytest.raises(FrameError):
        online.client.tool_result("c", "call", output=object())
    online.client.disconnected(None, online.now)
    online.connect()
    assert not online.sent()


def test_a_lost_connection_closes_what_was_to_be_closed(online: Wire) -> None:
    online.open()
    closing = online.client.close("c")
    online.client.disconnected(None, online.now)
    replied, gone = online.events()
    assert isinstance(replied, Replied)
    reply = replied.reply
    assert (replied.command, reply.ok, reply.outcome) == (closing, True, "closed")
    assert isinstance(gone, Disconnected)
    assert online.client.close("d") == online.only(Replied).command
    online.connect()
    assert not online.sent()


def test_a_delete_is_not_followed_by_an_open_that_makes_it_anew(online: Wire) -> None:
    online.client.open("c")
    deleting = online.client.delete("c")
    online.client.disconnected(None, online.now)
    online.connect()
    assert [frame["id"] for frame in online.sent()] == [deleting.id]


def test_what_somebody_deleted_is_lost_with_all_that_is_held_for_it(
    online: Wire,
) -> None:
    online.open()
    online.receive(REQUEST)
    online.only(ToolRequest)
    held = online.client.send("c", "hi")
    kept = online.client.send("d", "hi")
    online.receive(GONE)
    lost, replied = online.events()
    assert isinstance(lost, Lost)
    assert (lost.conversation, lost.error.message) == ("c", "It was deleted.")
    assert not lost.error.retryable
    assert isinstance(replied, Replied)
    assert replied.command == held
    assert replied.reply.error == lost.error
    assert online.client.cursor("c") is None
    online.sent()
    online.client.disconnected(None, online.now)
    online.connect()
    assert [frame["id"] for frame in online.sent()] == [kept.id]
    online.open()
    online.receive(REQUEST)
    assert online.only(ToolRequest).call == "k", "its calls were forgotten too"


def test_of_what_was_left_here_a_deletion_says_nothing(online: Wire) -> None:
    online.open()
    deleting = online.client.delete("c")
    online.client.open("c")
    after = online.client.send("c", "for the next of that name")
    online.sent()
    online.receive(GONE)
    assert online.events() == []
    online.refuse(deleting.id, "conversation_not_found")
    reply = online.only(Replied).reply
    assert (reply.ok, reply.outcome, reply.error) == (True, "deleted", None)
    assert [frame["type"] for frame in online.sent()] == ["open", "send"]
    online.receive_json(type="reply", re=after.id, ok=True, outcome="started")
    assert online.only(Replied).command == after


def test_refreshed_credentials_serve_the_next_hello(online: Wire) -> None:
    online.receive(AuthExpiring(in_ms=1000))
    assert online.only(AuthExpiring).in_ms == 1000
    online.client.refresh("new")
    assert online.sent()[0]["token"] == "new"  # noqa: S105
    online.client.disconnected(None, online.now)
    online.advance_to_timer()
    online.client.connected(online.now)
    assert online.sent()[0]["token"] == "new"  # noqa: S105


def test_ack_and_progress_travel_only_while_connected(online: Wire) -> None:
    online.open()
    online.delta(1)
    online.client.ack("c")
    online.client.ack("c", 0)
    online.client.ack("unknown")
    online.client.tool_progress("c", "call")
    assert [frame.get("seq") for frame in online.sent()] == [1, 0, None]
    online.client.disconnected(None, online.now)
    online.client.ack("c")
    online.client.tool_progress("c", "call")
    assert not online.sent()


def test_faults_of_no_command_are_told(online: Wire) -> None:
    online.receive(b'{"type":"delta","conversation":"c"}')
    assert online.only(ErrorFrame).code == "bad_frame"
    online.receive(b"not json")
    assert online.only(ErrorFrame).code == "bad_json"
    online.receive_json(type="error", code="rate_limited", message="m", retryable=True)
    assert online.only(ErrorFrame).code == "rate_limited"


def test_a_second_welcome_and_a_stray_reply_are_nothing(online: Wire) -> None:
    online.receive(WELCOME)
    online.receive_json(type="reply", re="stranger", ok=True, outcome="started")
    online.receive_json(type="pong", server_time="2026-01-01T00:00:00.000Z")
    assert not online.events()


def test_a_stopped_client_takes_no_commands(online: Wire) -> None:
    online.client.disconnected(4401, online.now)
    for give in (
        lambda: online.client.send("c", "hi"),
        lambda: online.client.open("c"),
        lambda: online.client.connected(online.now),
        lambda: online.client.received(b"{}", online.now),
    ):
        with pytest.raises(ClientStateError):
            give()


def test_a_resumed_connection_says_so(wire: Wire) -> None:
    wire.connect()
    assert not wire.only(Connected).resumed
    wire.client.disconnected(None, wire.now)
    wire.connect()
    assert wire.only(Connected).resumed


def test_what_was_refused_for_now_is_given_again_under_its_id(online: Wire) -> None:
    given = online.client.send("c", "hi")
    online.refuse(given.id, "store_unavailable", retryable=True)
    assert online.only(Replied).reply.error is not None
    online.sent()
    assert online.client.again(given) is given
    assert [frame["id"] for frame in online.sent()] == [given.id]
    online.receive_json(type="reply", re=given.id, ok=True, outcome="started")
    assert online.only(Replied).command == given
