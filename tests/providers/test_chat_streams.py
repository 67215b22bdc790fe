"""Every stream of the catalogue through the decoder, however reads cut it."""

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.upstreams.catalogue import CASES, Case, WrongOutcomeError, check_events
from wsserver.engine.model import ModelEvent
from wsserver.providers.chat.decoder import ChatDecoder

SERVED = [case for case in CASES if case.answer.status == 200]
# What stalls is stopped by the turn's timer: the decoder sees no end of its own.
ABORTED = {"abort", "stall"}

every_stream = pytest.mark.parametrize("case", SERVED, ids=[c.name for c in SERVED])


def decode(case: Case, cuts: Iterable[int]) -> list[ModelEvent]:
    body = case.body
    decoder = ChatDecoder(content_type=case.answer.content_type)
    events: list[ModelEvent] = []
    start = 0
    for cut in [*cuts, len(body)]:
        events += decoder.feed(body[start:cut])
        start = cut
    return events + decoder.close(aborted=case.answer.end in ABORTED)


@every_stream
def test_whole(case: Case) -> None:
    check_events(case, decode(case, []))


@every_stream
def test_at_the_cuts_it_came_with(case: Case) -> None:
    check_events(case, decode(case, case.answer.splits))


@pytest.mark.no_cover
@every_stream
def test_byte_by_byte(case: Case) -> None:
    check_events(case, decode(case, range(1, len(case.body))))


@every_stream
@settings(max_examples=8, suppress_health_check=[HealthCheck.differing_executors])
@given(data=st.data())
def test_at_random_cuts(case: Case, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(case.body)), max_size=12))
    check_events(case, decode(case, sorted(cuts)))


@every_stream
def test_the_content_type_does_not_matter(case: Case) -> None:
    decoder = ChatDecoder(content_type="text/plain")
    events = [*decoder.feed(case.body)]
    check_events(case, events + decoder.close(aborted=case.answer.end in ABORTED))


def test_the_catalogue_is_whole() -> None:
    origins = [case.origin for case in CASES]
    assert (origins.count("field"), origins.count("recorded")) == (58, 90)


def test_a_wrong_outcome_is_noticed() -> None:
    case = next(case for case in SERVED if case.expect.text == "tight fields")
    with pytest.raises(WrongOutcomeError, match="text is"):
        check_events(case, decode(case, [])[1:])
