"""No frame of the server is longer than `limits.frame_bytes`, of whatever kind."""

from typing import Any, get_args

import msgspec
import orjson
import pytest
from msgspec import Struct

from protocol.codec import encode
from protocol.content import (
    LONGEST_MODEL,
    Config,
    ErrorBody,
    Limits,
    ServerInfo,
    TextProof,
    Timing,
)
from protocol.control import (
    AuthExpiring,
    CaughtUp,
    ControlFrame,
    ErrorFrame,
    Goaway,
    Heartbeat,
    Pong,
    Reply,
    ToolRequest,
    Waiting,
    Welcome,
)
from protocol.events import (
    ConfigEvent,
    CutEvent,
    DoneEvent,
    InvalidCall,
    LogEvent,
    MessageEvent,
    SkipEvent,
    StartEvent,
    TakeoverEvent,
    ToolCallEvent,
    ToolResultEvent,
    TurnErrorEvent,
    UsageEvent,
)
from protocol.ids import MAX_SEQ
from protocol.merge import MAX_MERGED_BYTES
from protocol.rules import MAX_PING_BYTES
from wsserver.assembly.rooms import connection_settings, conversation_limits
from wsserver.auth.principal import LONGEST_NAME as LONGEST_PRINCIPAL
from wsserver.connections.views import MOST_TOOLS_TOLD
from wsserver.engine.conversation import LAST_IDS
from wsserver.engine.ending import LONGEST_MESSAGE, LONGEST_REASON
from wsserver.engine.tools import INVALID_SHOWN, LONGEST_ID, LONGEST_NAME
from wsserver.log.entry import TEXT_KINDS, text_entry
from wsserver.settings import Settings, SettingsError, load
from wsserver.settings.checks import FRAME_OVERHEAD_BYTES, check_together

FRAME_BYTES = 163_840
ROOM = FRAME_BYTES - FRAME_OVERHEAD_BYTES
TIGHT = Settings(
    max_frame_bytes=FRAME_BYTES, max_tool_output_bytes=ROOM, max_conversations=1_078
)
LIMITS = conversation_limits(TIGHT)

ID = "i" * 128
NAME = "😀" * LONGEST_PRINCIPAL
MODEL = "\x7f" * LONGEST_MODEL
AT = "2026-01-02T03:04:05.678Z"
WORST = "\x01"
"""A character that takes six bytes in JSON."""

PROOF = TextProof(bytes=MAX_SEQ, crc32=2**32 - 1)
EVENT: dict[str, Any] = {"conversation": ID, "seq": MAX_SEQ}
OF_TURN: dict[str, Any] = {**EVENT, "turn": MAX_SEQ}
ARGUMENTS = "x" * (LIMITS.turn.call_bytes - 2)
ERROR = ErrorBody(
    code="too_many_conversations",
    message=WORST * 8_000,
    retryable=False,
    retry_after_ms=10**9,
    param="$" + WORST * 200,
)
NUMBERS = dict.fromkeys(Limits.__struct_fields__, MAX_SEQ)
TIMING = dict.fromkeys(Timing.__struct_fields__, 123456.789)


class Tables:
    """Models whose names take so many bytes."""

    default = "m"

    def __init__(self, size: int, longest: int = LONGEST_MODEL) -> None:
        width = longest + len('"",')
        self._names = ["n" * longest] * (size // width)

    def names(self) -> list[str]:
        return self._names

    def resolve(self, name: str) -> None:
        del name


def content(size: int) -> str:
    return "x" * (size - len('""'))


def members(size: int) -> Config:
    return Config(instructions=content(size - len('{"instructions":}')))


def text(kind: str) -> bytes:
    name = orjson.dumps(WORST * LONGEST_NAME)
    attrs = b'"call":"%b","name":%b,' % (ID.encode(), name)
    entry = text_entry(kind, MAX_SEQ, MAX_SEQ, "x" * MAX_MERGED_BYTES, attrs)
    merged = msgspec.structs.replace(entry, first=MAX_SEQ - 1)
    return merged.frame(b'"%b"' % ID.encode())


LONGEST: list[Struct] = [
    ConfigEvent(**EVENT, config=members(LIMITS.content_bytes)),
    MessageEvent(
        **EVENT, id=ID, role="user", content=content(LIMITS.content_bytes - 4), by=NAME,
        at=AT, metadata={"": 1}, steers=MAX_SEQ,
    ),
    StartEvent(**OF_TURN, message=MAX_SEQ, model=MODEL, request_id=ID, at=AT),
    TakeoverEvent(**OF_TURN, model=MODEL, code="upstream_rate_limited"),
    ToolCallEvent(
        **OF_TURN, call=ID, name="n" * 64, arguments=ARGUMENTS, batch=99, index=99,
        deadline_at=AT, upstream_id=WORST * LONGEST_ID,
    ),
    ToolResultEvent(
        **OF_TURN, call=ID, status="cancelled",
        output=content(LIMITS.tool_output_bytes), by=NAME,
    ),
    ToolResultEvent(
        **OF_TURN, call=ID, status="invalid", output=WORST * 1_000, by="server",
        invalid=InvalidCall(
            name=WORST * LONGEST_NAME, arguments=WORST * INVALID_SHOWN, batch=99,
            index=99, upstream_id=WORST * LONGEST_ID,
        ),
    ),
    UsageEvent(
        **OF_TURN, input_tokens=MAX_SEQ, output_tokens=MAX_SEQ, reasoning_tokens=MAX_SEQ,
        cached_tokens=MAX_SEQ, estimated=False, model_calls=99,
    ),
    TurnErrorEvent(
        **OF_TURN, code="too_many_tool_rounds", message=WORST * LONGEST_MESSAGE,
        retryable=False, retry_after_ms=10**9,
    ),
    CutEvent(**OF_TURN, keep_through=MAX_SEQ, by=NAME, text=PROOF),
    SkipEvent(**EVENT, first=MAX_SEQ),
    DoneEvent(
        **OF_TURN, status="interrupted", reason="upstream_truncated",
        finish_reason=WORST * LONGEST_REASON, text=PROOF, timing=Timing(**TIMING),
    ),
    Reply(
        re=ID, ok=True, outcome="replay", duplicate=True, conversation=ID, epoch=ID,
        head=MAX_SEQ, oldest=MAX_SEQ, turn=MAX_SEQ, last_ids=[ID] * LAST_IDS,
        reason="epoch_changed", seq=MAX_SEQ, keep_through=MAX_SEQ,
        server_tools=["n" * 64] * MOST_TOOLS_TOLD, stored=False,
    ),
    Reply(re=ID, ok=False, error=ERROR),
    ErrorFrame(**msgspec.structs.asdict(ERROR), gone=ID),
    Pong(t=content(MAX_PING_BYTES), server_time=AT),
    CaughtUp(conversation=ID, seq=MAX_SEQ),
    Waiting(
        conversation=ID, turn=MAX_SEQ, phase="waiting_first_token", elapsed_ms=10**9
    ),
    ToolRequest(
        conversation=ID, turn=MAX_SEQ, call=ID, name="n" * 64, arguments=ARGUMENTS,
        deadline_ms=10**9, redelivered=False,
    ),
    Goaway(deadline_ms=10**9, reconnect_after_ms=10**9, reason="restart"),
    AuthExpiring(in_ms=10**9),
    Heartbeat(
        t=MAX_SEQ,
        heads={f"{n:0128}": MAX_SEQ for n in range(TIGHT.max_conversations)},
    ),
    Welcome(
        protocol=1, connection=ID, heartbeat_ms=10**9,
        server=ServerInfo(name="wsserver", version="100.100.100"),
        models=Tables(ROOM).names(), limits=Limits(**NUMBERS), features=["f" * 30] * 10,
    ),
]  # fmt: skip


def tags(union: Any) -> set[str]:
    return {str(kind.__struct_config__.tag) for kind in get_args(union)}


def test_every_kind_of_frame_is_looked_at() -> None:
    kinds = {str(frame.__struct_config__.tag) for frame in LONGEST}
    assert kinds | TEXT_KINDS == tags(LogEvent) | tags(ControlFrame)


@pytest.mark.parametrize("frame", LONGEST, ids=lambda frame: type(frame).__name__)
def test_the_longest_frame_of_each_kind_is_within_the_limit(frame: Struct) -> None:
    assert len(encode(frame)) <= FRAME_BYTES


@pytest.mark.parametrize("kind", sorted(TEXT_KINDS))
def test_the_longest_text_is_within_the_limit(kind: str) -> None:
    assert len(text(kind)) <= FRAME_BYTES


def test_these_are_the_tightest_settings_that_there_can_be() -> None:
    origins = dict.fromkeys(Settings.__struct_fields__, "a test")
    check_together(TIGHT, origins)
    for name in ("max_tool_output_bytes", "max_conversations"):
        more = msgspec.structs.replace(TIGHT, **{name: getattr(TIGHT, name) + 1})
        with pytest.raises(
            SettingsError, match=rf"{name}: \d+ from a test .*raise max"
        ):
            check_together(more, origins)
        room = msgspec.structs.replace(more, max_frame_bytes=FRAME_BYTES + 1_024)
        check_together(room, origins)
    with pytest.raises(SettingsError, match="expected a whole number from 163840"):
        load(flags={"max_frame_bytes": str(FRAME_BYTES - 1)}, environ={})


def test_the_models_names_fit_into_a_frame() -> None:
    connection_settings(TIGHT, Tables(ROOM), ())
    with pytest.raises(SettingsError, match="models: their names take"):
        connection_settings(TIGHT, Tables(ROOM + LONGEST_MODEL + 3), ())
    with pytest.raises(SettingsError, match="has 257 characters"):
        connection_settings(TIGHT, Tables(1_000, longest=257), ())
