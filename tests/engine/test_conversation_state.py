"""The snapshot: settings, queue, and that it survives the store."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from protocol.content import Config, Detach, NamedTool, Tool
from wsserver.engine.conversation import (
    LAST_IDS,
    ConversationState,
    Snapshots,
    Waiting,
    configured,
    load,
    tools_of,
)

VALUES: dict[str, list[Any]] = {
    "model": ["a", "b"],
    "instructions": ["", "be brief"],
    "tools": [[], [Tool(name="f", timeout_s=None)], [Tool(name="g")]],
    "tool_choice": ["auto", NamedTool(name="f")],
    "params": [{}, {"seed": 2**80}],
    "response_schema": [{}, {"type": "object"}],
    "detach": [Detach(grace_s=None), Detach(grace_s=0)],
}


def configs(*, null: bool) -> st.SearchStrategy[Config]:
    empty = [UNSET, None] if null else [UNSET]
    return st.builds(
        Config,
        **{name: st.sampled_from([*empty, *values]) for name, values in VALUES.items()},
    )


@given(configs(null=False), configs(null=True))
def test_absent_stays_null_takes_back_and_a_value_is_set(
    config: Config, change: Config
) -> None:
    result = configured(config, change)
    for name in VALUES:
        old, new = getattr(config, name), getattr(change, name)
        wanted = old if new is UNSET else UNSET if new is None else new
        assert getattr(result, name) == wanted


def test_a_change_survives_the_wire() -> None:
    change = msgspec.json.decode(b'{"model":null,"instructions":"x"}', type=Config)
    config = configured(Config(model="m", params={"a": 1}), change)
    assert config == Config(instructions="x", params={"a": 1})
    assert msgspec.json.encode(config) == b'{"instructions":"x","params":{"a":1}}'


def waiting(seq: int, **members: Any) -> Waiting:
    return Waiting(seq=seq, id=f"s{seq}", by="alice", at=1.5, **members)


@given(
    st.builds(
        ConversationState,
        config=configs(null=False),
        queue=st.lists(
            st.builds(
                Waiting,
                seq=st.integers(1, 2**53),
                id=st.text("abc", min_size=1),
                by=st.text(),
                at=st.floats(0, 2e9),
                first=st.booleans(),
                steers=st.integers(0, 9),
                on_disconnect=st.sampled_from([None, "continue", "cancel"]),
                withdrawn=st.sampled_from([None, "by_client"]),
            ),
            max_size=3,
        ),
        running=st.integers(0, 9),
        last_turn=st.integers(0, 9),
        last_ids=st.lists(
            st.tuples(st.text("abc", min_size=1), st.text("abc", min_size=1)),
            max_size=3,
        ),
    )
)
def test_a_snapshot_comes_back_as_it_was(state: ConversationState) -> None:
    snapshots = Snapshots(state)
    data, live = snapshots.take()
    assert load(data) == state
    assert live == state.live
    state.config = configured(state.config, Config(instructions="other"))
    state.running += 1
    assert load(snapshots.take()[0]) == state, "also what has changed since"


def test_no_bytes_are_a_new_conversation_and_nothing_is_shared() -> None:
    first, second = load(b""), load(b"")
    first.queue.append(waiting(1))
    first.sent("alice", "x")
    assert second == ConversationState()
    assert first.live
    assert not second.live


def test_messages_wait_in_line_and_those_that_interrupt_go_first_in_theirs() -> None:
    state = ConversationState()
    for seq, first in [(1, False), (2, False), (3, True), (4, True), (5, False)]:
        state.enqueue(waiting(seq, first=first))
    order = [state.next() for _ in range(6)]
    assert [None if w is None else w.seq for w in order] == [3, 4, 1, 2, 5, None]


def test_only_stored_messages_that_were_not_taken_back_join_their_turn() -> None:
    state = ConversationState()
    state.enqueue(waiting(4))
    state.enqueue(waiting(5, steers=2))
    state.enqueue(waiting(6, steers=2, withdrawn="by_client"))
    state.enqueue(waiting(7, steers=1))
    state.enqueue(waiting(8, steers=2))
    assert state.steering(2) == [5, 8]
    assert state.join(2, through=7)
    assert [w.seq for w in state.queue] == [4, 6, 7, 8]
    assert not state.join(2, through=7)
    assert state.join(2, through=8)
    assert [w.seq for w in state.queue] == [4, 6, 7]


def test_it_is_live_while_a_turn_runs_or_a_message_waits() -> None:
    assert not ConversationState(last_turn=3).live
    assert ConversationState(running=3).live
    assert ConversationState(queue=[waiting(1)]).live


def test_only_the_newest_ids_are_kept() -> None:
    state = ConversationState()
    for number in range(100):
        state.sent("alice", f"s{number}")
    assert state.last_ids == [
        ("alice", f"s{number}") for number in range(100 - LAST_IDS, 100)
    ]


def test_tools_by_name() -> None:
    tool = Tool(name="f")
    assert tools_of(Config(tools=[tool])) == {"f": tool}
    assert tools_of(Config()) == tools_of(Config(tools=[])) == {}
