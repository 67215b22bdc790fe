"""What holds for a client at every step of every scenario."""

from typing import Any

import orjson

from protocol.codec import decode_command, decode_server_frame
from protocol.content import Limits
from protocol.control import Welcome
from protocol.events import CutEvent, DoneEvent
from protocol.frame_error import FrameError
from protocol.text import proof
from wsserver.connections.rate import TokenBucket

Json = dict[str, Any]
_MOST_BYTES = 1 << 20
_NEED_NO_ROOM = {"interrupt", "tool_result", "refresh", "ping", "ack"}


class Rules:
    """Looks at each thing that was done to a client and at what it did then."""

    def __init__(self) -> None:
        self._welcomed = False
        self._up = False
        self._told_to: dict[str, Json] = {}
        self._cursors: dict[str, Json] = {}
        self._proofs: dict[str, dict[int, CutEvent | DoneEvent]] = {}
        self._room: TokenBucket | None = None
        self._now = 0.0

    def check(self, op: Json, state: Json) -> None:
        """Takes one step in.

        Raises:
            AssertionError: Says which rule was broken.
        """
        match op["op"]:
            case "up":
                self._up, self._welcomed = True, False
            case "down":
                self._up = False
                self._room = None
            case "pass":
                self._now += op["ms"] / 1000
            case "frame":
                self._frame(op["text"])
            case _:
                pass
        for frame in state["sent"]:
            self._sent(frame, state)
        self._moved(state)
        if state["gave_up"]:
            self._up = False

    def _frame(self, text: str) -> None:
        try:
            frame = decode_server_frame(text)
        except FrameError:
            return
        match frame:
            case Welcome():
                self._welcomed = True
                self._limit(frame.limits)
            case CutEvent() | DoneEvent():
                proofs = self._proofs.setdefault(frame.conversation, {})
                proofs[frame.turn] = frame
            case _:
                pass

    def _limit(self, limits: Limits) -> None:
        per_second, burst = limits.frames_per_second, limits.frames_burst
        if per_second and burst:
            self._room = TokenBucket(per_second=per_second, burst=burst, now=self._now)
            self._room.take(self._now)  # its hello

    def _sent(self, frame: Json, state: Json) -> None:
        try:
            decode_command(orjson.dumps(frame), max_bytes=_MOST_BYTES)
        except FrameError as wrong:
            raise AssertionError(f"no valid frame: {frame}: {wrong}") from wrong
        assert self._up, f"sent without a connection: {frame}"
        early = self._room.take(self._now) if self._room else 0.0
        assert not early or frame["type"] in _NEED_NO_ROOM, f"too fast: {frame}"
        is_hello = frame["type"] == "hello"
        assert is_hello != self._welcomed, f"hello comes first, and once: {frame}"
        match frame["type"]:
            case "open" if frame.get("epoch") is not None:
                cursor = state["conversations"].get(frame["conversation"], {})
                assert frame.get("after") == cursor.get("last"), (
                    f"not the cursor: {frame}"
                )
            case "open":
                # Without an epoch it asks for all; with `after` only of what is there.
                assert frame.get("after") in {None, 0}, f"a cursor of no epoch: {frame}"
            case "interrupt" | "send" if frame.get("seen_seq") is not None:
                cursor = state["conversations"].get(frame["conversation"], {})
                seen = frame["seen_seq"]
                assert seen <= cursor.get("last", 0), f"was not had: {frame}"
            case "ack":
                cursor = state["conversations"][frame["conversation"]]
                assert frame["seq"] <= cursor["last"], f"was not had: {frame}"
            case _:
                pass
        if "id" in frame:
            before = self._told_to.setdefault(frame["id"], frame)
            assert before == frame, f"one id, two commands: {before}, {frame}"

    def _moved(self, state: Json) -> None:
        for name, cursor in state["conversations"].items():
            before = self._cursors.get(name, cursor)
            if cursor["epoch"] != before["epoch"]:
                self._proofs.pop(name, None)
            for turn in cursor["turns"]:
                self._proven(turn, self._proofs.get(name, {}).get(turn["turn"]))
            went_back = cursor["last"] < before["last"]
            if cursor["epoch"] == before["epoch"] and went_back:
                assert not cursor["turns"], f"the cursor went back: {before}, {cursor}"
            self._cursors[name] = cursor

    def _proven(self, turn: Json, said: CutEvent | DoneEvent | None) -> None:
        """A text is proven if it has the length and the checksum that were said last."""
        proven = turn["proven"]
        if proven is None:
            return
        assert said is not None, f"nothing was said that proves it: {turn}"
        assert proven == (proof(turn["text"]) == said.text), f"proven: {turn}"
