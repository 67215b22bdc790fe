"""The ledger of unacknowledged bytes."""

from hypothesis import given
from hypothesis import strategies as st

from wsserver.connections.window import GRAINS, Window


def test_what_is_acknowledged_makes_room() -> None:
    window = Window(1000)
    window.sent(1, 400)
    window.sent(2, 600)
    assert window.room == 0
    window.ack(1)
    assert window.room == 400
    window.ack(2)
    assert window.room == 1000


def test_acknowledging_twice_or_less_changes_nothing() -> None:
    window = Window(1000)
    window.sent(5, 500)
    window.sent(9, 500)
    window.ack(5)
    window.ack(5)
    window.ack(2)
    assert window.room == 500


def test_acknowledging_what_was_not_sent_yet_credits_what_was() -> None:
    window = Window(1000)
    window.sent(5, 500)
    window.ack(100)
    assert window.room == 1000
    window.sent(101, 300)
    assert window.room == 700


@given(st.lists(st.tuples(st.integers(1, 300), st.booleans()), max_size=300))
def test_acknowledging_all_credits_all_and_never_too_much(
    steps: list[tuple[int, bool]],
) -> None:
    window = Window(10_000)
    sent = acked = 0
    for seq, (size, ack) in enumerate(steps, 1):
        sent += size
        window.sent(seq, size)
        assert window.room <= 10_000 - (sent - acked)
        if ack:
            window.ack(seq)
            acked = sent
            assert window.room == 10_000


@given(st.lists(st.integers(1, 300), max_size=300), st.data())
def test_credit_lags_by_less_than_a_grain_and_a_frame(
    sizes: list[int], data: st.DataObject
) -> None:
    window = Window(10_000)
    for seq, size in enumerate(sizes, 1):
        window.sent(seq, size)
    ack = data.draw(st.integers(0, len(sizes)))
    window.ack(ack)
    exact = 10_000 - sum(sizes[ack:])
    assert exact - 10_000 // GRAINS - 300 <= window.room <= exact


def test_a_ledger_that_nobody_acknowledges_stays_small() -> None:
    window = Window(100_000)
    seq = 0
    while window.room > 0:
        seq += 1
        window.sent(seq, 1)
    assert len(window._marks) <= GRAINS + 1
