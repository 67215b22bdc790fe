from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.model import Answering, CallFragment, ModelEvent, Reasoning, Text
from wsserver.engine.text_runs import TextRun, text_runs

CALL = CallFragment(position=0, name="look", text="{")
ANSWERING = Answering(model="m", seconds=0.0, code=None)
EVENTS = st.lists(
    st.one_of(
        st.text("ab", min_size=1).map(Text),
        st.text("ab", min_size=1).map(Reasoning),
        st.sampled_from([CALL, ANSWERING]),
    )
)


@given(EVENTS)
def test_neighbours_of_a_kind_are_joined_and_nothing_else_is(
    events: list[ModelEvent],
) -> None:
    expected: list[object] = []
    for kind, group in groupby(events, type):
        if kind in (Text, Reasoning):
            texts = [event.text for event in group if isinstance(event, kind)]
            name = "delta" if kind is Text else "reasoning"
            expected.append(TextRun(name, "".join(texts), len(texts)))
        else:
            expected += group
    assert list(text_runs(events)) == expected
