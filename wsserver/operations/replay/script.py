"""From a recording to what has to be done: who says what when, after having seen what."""

from typing import Any

from msgspec import Struct

from protocol.events import LogEvent
from protocol.frame_error import FrameError
from wsserver.inspector.records import Act, Closed, Inbound, Lost, Opened, Outbound
from wsserver.inspector.redact import length
from wsserver.log.entry import TEXT_KINDS
from wsserver.operations.replay.milestones import Milestone
from wsserver.operations.replay.model import Heard
from wsserver.operations.replay.recording import Recording, RecordingError
from wsserver.operations.replay.sight import Sight
from wsserver.operations.server_frame import Frame

_GOING_DOWN = (None, 1001, 1012, 1013)
"""Ends that say that the recorded server went away, which this one does not."""


class Need(Struct, frozen=True):
    """A milestone of the recording, and the line of the file where it is."""

    line: int
    milestone: Milestone


class Step(Struct, frozen=True, kw_only=True):
    """Something that a client did.

    Attributes:
        at_ms: When.
        connection: On which connection.
        needs: What clients had seen since the step before.
    """

    at_ms: float
    connection: str
    needs: tuple[Need, ...] = ()


class Connect(Step, frozen=True, kw_only=True):
    """It connected."""


class Say(Step, frozen=True, kw_only=True):
    """It sent a frame.

    Attributes:
        frame: What it said; None for what was no JSON object.
        title: Of the conversation that it meant (see `sight`); None for none.
        bytes: How long that was.
    """

    frame: Frame | None
    title: str | None
    bytes: int


class Leave(Step, frozen=True, kw_only=True):
    """It was gone.

    Attributes:
        code: With which close code; None for a cut.
        awaited: Whether the server ended it.
    """

    code: int | None
    awaited: bool


class Script(Struct, frozen=True, kw_only=True):
    """A recording as a play.

    Attributes:
        steps: In order.
        last: What clients had seen in the end.
        sight: Everything that they saw.
        heard: All events, each once.
        created: By connection and command, the conversation that the server named.
        skipped: Connections that were open before the recording began.
    """

    steps: tuple[Step, ...]
    last: tuple[Need, ...]
    sight: Sight
    heard: tuple[Heard, ...]
    created: dict[tuple[str, str], str]
    skipped: frozenset[str]


def script(recording: Recording) -> Script:
    """Makes a play of a recording.

    Raises:
        RecordingError: A frame of the server's in it is none.
    """
    return _Writer(recording).write()


class _Writer:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._sight = Sight(self._hear)
        self._heard: list[Heard] = []
        self._at_ms = 0.0
        self._steps: list[Step] = []
        self._needs: dict[Any, Need] = {}
        self._played: set[str] = set()
        self._skipped: set[str] = set()
        self._nameless: set[tuple[str, str]] = set()
        self._created: dict[tuple[str, str], str] = {}

    def write(self) -> Script:
        for number, record in self._recording.records:
            match record:
                case Lost() | Act():
                    pass
                case Opened():
                    self._connect(record)
                case _ if record.connection not in self._played:
                    self._skipped.add(record.connection)
                case Inbound():
                    self._say(record)
                case Outbound():
                    self._show(number, record)
                case Closed():
                    self._leave(number, record)
        return Script(
            steps=tuple(self._steps),
            last=self._since(),
            sight=self._sight,
            heard=tuple(self._heard),
            created=self._created,
            skipped=frozenset(self._skipped),
        )

    def _connect(self, record: Opened) -> None:
        self._played.add(record.connection)
        self._steps.append(
            Connect(
                at_ms=record.at_ms,
                connection=record.connection,
                needs=self._since(),
            )
        )

    def _say(self, record: Inbound) -> None:
        frame = record.frame if isinstance(record.frame, dict) else None
        if frame is not None:
            if frame.get("type") == "ack":
                return  # what is acknowledged depends on what comes
            self._sight.said(record.connection, frame)
            nameless = frame.get("type") == "open" and "conversation" not in frame
            if nameless or (frame.get("type") == "fork" and "new" not in frame):
                self._nameless.add((record.connection, str(frame.get("id"))))
        self._steps.append(
            Say(
                at_ms=record.at_ms,
                connection=record.connection,
                needs=self._since(),
                frame=frame,
                title=None if frame is None else self._title(frame),
                bytes=record.bytes,
            )
        )

    def _title(self, frame: Frame) -> str | None:
        name, epoch = frame.get("conversation"), frame.get("epoch")
        if not isinstance(name, str):
            return None
        if isinstance(epoch, str):
            return self._sight.title_at(name, epoch)
        return self._sight.title(name)

    def _show(self, number: int, record: Outbound) -> None:
        if not isinstance(record.frame, dict) or record.fault == "repeated":
            return
        command = (record.connection, str(record.frame.get("re")))
        if command in self._nameless and "conversation" in record.frame:
            self._created[command] = record.frame["conversation"]
        self._at_ms = record.at_ms
        frame = _expanded(record.frame) if self._recording.redacted else record.frame
        try:
            milestone = self._sight.shown(record.connection, frame)
        except FrameError as error:
            raise RecordingError(
                f"line {number}: this frame is none that a server sends: {error};"
                " record anew, with a server of this version"
            ) from None
        if record.fault is None:  # else it is in the log, but no client had it
            self._need(number, milestone)

    def _leave(self, number: int, record: Closed) -> None:
        awaited = record.by == "server" and record.code not in _GOING_DOWN
        if awaited:
            self._need(number, self._sight.closed(record.connection, record.code))
        self._steps.append(
            Leave(
                at_ms=record.at_ms,
                connection=record.connection,
                needs=self._since(),
                code=record.code if record.by == "client" else None,
                awaited=awaited,
            )
        )

    def _hear(self, event: LogEvent, text: str) -> None:
        self._heard.append(Heard(self._at_ms, event, text))

    def _need(self, number: int, milestone: Milestone | None) -> None:
        if milestone is not None:
            self._needs.pop(milestone.key, None)
            self._needs[milestone.key] = Need(number, milestone)

    def _since(self) -> tuple[Need, ...]:
        needs, self._needs = tuple(self._needs.values()), {}
        return needs


def _expanded(frame: Frame) -> Frame:
    """Returns an event with a text as long as the one that was left out."""
    text = frame.get("text")
    if frame.get("type") in TEXT_KINDS and isinstance(text, str):
        return frame | {"text": "x" * length(text)}
    return frame
