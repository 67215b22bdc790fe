"""Every event once and in order: duplicates, gaps, resets, resuming."""

from protocol.client.events import Cursor, DropConnection, Lost, Replied, Reset
from protocol.control import CaughtUp
from protocol.events import DeltaEvent, SkipEvent
from tests.protocol_client.wire import Wire


def texts(wire: Wire) -> list[str]:
    return [event.text for event in wire.events() if isinstance(event, DeltaEvent)]


def last(wire: Wire) -> int:
    cursor = wire.client.cursor("c")
    assert cursor is not None
    return cursor.last


def test_numbers_that_go_back_move_nothing_and_the_resume_asks_from_the_highest(
    online: Wire,
) -> None:
    """R-10."""
    online.open(head=1)
    for seq in (1, 2, 3, 4, 2, 3, 5):
        online.delta(seq, text=str(seq))
    assert texts(online) == ["1", "2", "3", "4", "5"]
    online.client.disconnected(None, online.now)
    online.connect()
    (opening,) = online.sent()
    assert (opening["type"], opening["epoch"], opening["after"]) == ("open", "e1", 5)
    online.verdict(opening["id"], head=5)
    online.delta(4)
    online.delta(6, text="6")
    assert texts(online) == ["6"]


def test_two_opens_at_once_deliver_every_number_once(online: Wire) -> None:
    """R-01: both replays arrive, one counts."""
    cursor = Cursor(conversation="c", epoch="e1", last=5)
    opens = [online.client.open("c", cursor=cursor) for _ in range(2)]
    first, second = online.sent()
    online.verdict(first["id"], head=7)
    online.delta(6, text="6")
    online.delta(7, text="7")
    online.verdict(second["id"], head=7)
    online.delta(6, text="6")
    online.delta(7, text="7")
    events = online.events()
    replied = [event.command for event in events if isinstance(event, Replied)]
    assert replied == opens
    assert [e.text for e in events if isinstance(e, DeltaEvent)] == ["6", "7"]


def test_a_merged_frame_fits_by_its_first_number(online: Wire) -> None:
    online.open()
    online.delta(4, text="abcd", first=1)
    assert last(online) == 4
    online.delta(5)
    assert texts(online) == ["abcd", "x"]


def test_a_gap_opens_again_and_takes_nothing_until_the_verdict(online: Wire) -> None:
    online.open()
    online.delta(1, text="a")
    online.delta(3, text="lost")
    (opening,) = online.sent()
    assert opening["after"] == 1
    online.delta(2, text="of the old attachment")
    assert texts(online) == ["a"]
    online.verdict(opening["id"], head=3)
    online.delta(3, text="bc", first=2)
    assert texts(online) == ["bc"]
    assert not online.sent()


def test_a_merged_frame_that_overlaps_is_a_gap(online: Wire) -> None:
    online.open()
    online.delta(2, text="ab", first=1)
    online.delta(4, text="bcd", first=2)
    assert online.sent()[0]["after"] == 2
    assert last(online) == 2


def test_a_gap_that_stays_drops_the_connection_instead_of_asking_for_ever(
    online: Wire,
) -> None:
    """R-04."""
    online.open()
    for _ in range(3):
        online.delta(7)
        (opening,) = online.sent()
        online.verdict(opening["id"], head=7)
    online.delta(7)
    assert not online.sent()
    assert online.only(DropConnection).why == "gap"


def test_a_reset_tells_the_application_first(online: Wire) -> None:
    online.open()
    online.delta(1)
    online.client.disconnected(1012, online.now)
    online.events()
    online.connect()
    (opening,) = online.sent()
    online.verdict(
        opening["id"], "reset", epoch="e2", head=9, oldest=8, reason="epoch_changed"
    )
    online.delta(8, text="new")
    reset, event = online.events()[-2:]
    assert reset == Reset(
        cursor=Cursor(conversation="c", epoch="e2", last=7), reason="epoch_changed"
    )
    assert isinstance(event, DeltaEvent)


def test_a_replay_without_cursor_begins_at_the_oldest(online: Wire) -> None:
    online.open(head=9, oldest=8)
    online.delta(8)
    assert last(online) == 8
    assert not online.sent()


def test_a_known_epoch_travels_even_before_the_first_event(online: Wire) -> None:
    """Otherwise a conversation that was deleted meanwhile would be made anew."""
    online.open()
    online.client.disconnected(None, online.now)
    online.connect()
    assert online.sent()[0]["after"] == 0


def test_the_first_open_is_sent_again_whole(wire: Wire) -> None:
    first = wire.client.open(handles=["t"], view="frames", include=["tool_delta"])
    assert first.conversation == first.id
    wire.connect()
    (sent,) = wire.sent()
    wire.client.disconnected(None, wire.now)
    wire.connect()
    (again,) = wire.sent()
    assert again.pop("id") != sent.pop("id"), "its reply must be this attachment's"
    assert again == sent
    assert "after" not in sent


def test_an_open_that_fails_is_replied_to_and_forgotten(online: Wire) -> None:
    online.client.open("c")
    online.refuse(online.sent()[0]["id"], "too_many_conversations")
    reply = online.only(Replied).reply
    assert reply.error is not None
    assert reply.error.code == "too_many_conversations"
    online.client.disconnected(None, online.now)
    online.connect()
    assert not online.sent()


def test_a_conversation_that_is_gone_after_a_reconnect_is_lost(online: Wire) -> None:
    online.open()
    online.client.disconnected(None, online.now)
    online.connect()
    online.refuse(online.sent()[0]["id"], "conversation_not_found")
    assert online.only(Lost).conversation == "c"
    assert online.client.cursor("c") is None
    online.client.disconnected(None, online.now)
    online.connect()
    assert not online.sent(), "it is not asked for again"


def test_a_resume_that_can_succeed_later_is_tried_later(online: Wire) -> None:
    online.open()
    online.client.disconnected(None, online.now)
    online.connect()
    (opening,) = online.sent()
    online.refuse(opening["id"], "store_unavailable", retryable=True)
    assert not online.sent()
    online.advance_to_timer()
    (again,) = online.sent()
    assert (again["type"], again["conversation"]) == ("open", "c")


def test_what_a_heartbeat_shows_missing_twice_is_asked_for(online: Wire) -> None:
    """C-12: the end of a turn that was lost on the way."""
    online.open()
    online.delta(1)
    beat = {"type": "ping", "t": 1, "heads": {"c": 2, "other": 9}}
    online.receive_json(**beat)
    assert not online.sent(), "a heartbeat may overtake events"
    online.receive_json(**beat)
    assert online.sent()[0]["after"] == 1


def test_a_heartbeat_while_events_come_asks_for_nothing(online: Wire) -> None:
    online.open()
    for seq in range(1, 5):
        online.receive_json(type="ping", t=1, heads={"c": 9})
        online.delta(seq)
    assert not online.sent()


def test_caught_up_is_told_only_of_a_complete_replay(online: Wire) -> None:
    online.open(head=1)
    online.receive(CaughtUp(conversation="c", seq=1))
    assert not online.events()
    (opening,) = online.sent()
    online.verdict(opening["id"], head=1)
    online.delta(1)
    online.receive(CaughtUp(conversation="c", seq=1))
    assert online.only(CaughtUp).seq == 1


def test_an_event_of_a_later_version_uses_up_its_number(online: Wire) -> None:
    online.open()
    online.receive_json(type="sparkle", conversation="c", seq=1, colour="red")
    online.receive_json(type="glitter")
    assert online.only(SkipEvent).seq == 1
    online.delta(2)
    assert texts(online) == ["x"]


def test_nothing_of_a_closed_conversation_is_told(online: Wire) -> None:
    online.open()
    online.client.close("c")
    online.delta(1)
    assert not online.events()


def test_closing_and_opening_again_takes_only_the_new_attachment(online: Wire) -> None:
    online.open()
    online.client.close("c")
    online.client.open("c")
    _, opening = online.sent()
    online.delta(1, text="of the old attachment")
    online.verdict(opening["id"], head=1)
    online.delta(1, text="a")
    assert texts(online) == ["a"]


def test_closing_what_is_not_open_yet_settles_its_open(wire: Wire) -> None:
    opening = wire.client.open("c")
    wire.client.close("c")
    replied = [event for event in wire.events() if isinstance(event, Replied)]
    assert replied[0].command == opening
    assert not replied[0].reply.ok


def test_what_is_only_to_be_there_is_asked_for_from_the_beginning(online: Wire) -> None:
    online.client.open("c", create=False)
    online.client.open("d")
    (there, made) = online.sent()
    assert (there["after"], "after" in made) == (0, False)


def test_the_verdict_of_a_replaced_open_does_not_count(online: Wire) -> None:
    online.client.open("c")
    online.client.open("c", handles=["t"])
    first, second = online.sent()
    online.refuse(first["id"], "store_unavailable", retryable=True)
    assert not online.events()
    online.verdict(second["id"], "created")
    replies = [event.reply for event in online.events() if isinstance(event, Replied)]
    assert [reply.outcome for reply in replies] == ["created", "created"]


def test_the_verdict_of_a_closed_open_does_not_end_the_next(online: Wire) -> None:
    online.client.open("c")
    online.client.close("c")
    online.client.open("c")
    first, _, second = online.sent()
    online.events()
    online.refuse(first["id"], "conversation_not_found")
    online.verdict(second["id"])
    assert online.only(Replied).reply.ok
