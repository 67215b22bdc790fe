"""Lines about a turn: of which conversation, turn, request and connection it is."""

from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

from protocol.events import StartEvent
from tests.fakes.scripted import says
from tests.turns.talk import settled, talking
from wsserver.engine.model import Failure, Text

REFUSED = Failure(code="upstream_rejected", message="", retryable=False)


async def test_the_lines_of_a_turn_have_its_ids_also_when_it_waited() -> None:
    async with talking([[Text("a")], 5.0, *says("b")], [REFUSED]) as talk:
        other = talk.join("c2")
        with capture_logs(processors=[merge_contextvars]) as lines:
            # As in a connection's task, which starts the turns that can start at once.
            with bound_contextvars(connection="c1"):
                talk.send()
                await settled()
            with bound_contextvars(connection="c2"):
                talk.send(viewer=other)
            await talk.done()
        starts = [event for event in await talk.log() if isinstance(event, StartEvent)]
        expected = [
            {
                "key": talk.conversation.log.key,
                "turn": start.turn,
                "request": start.request_id,
                "connection": connection,
            }
            for start, connection in zip(starts, ("c1", "c2"), strict=True)
        ]
        for name in ("turn_started", "turn_done"):
            assert [
                {id_: line.get(id_) for id_ in expected[0]}
                for line in lines
                if line["event"] == name
            ] == expected
        [refused] = [line for line in lines if line["event"] == "upstream_refused"]
        assert refused.items() >= expected[1].items()
