"""From the names and numbers of a recording to those of the server it is played to."""

import secrets
from typing import Any

from wsserver.operations.replay.script import Script
from wsserver.operations.replay.sight import Sight
from wsserver.operations.server_frame import Frame

NO_TOKEN = "none"  # noqa: S105 - what is said where there is none
_NUMBERS = ("after", "seen_seq", "through")


class Names:
    """Translates what clients say to the server, and what it says to them.

    Conversations get names of their own on a server that may know the recorded
    ones. Numbers are looked up by what stands there on both sides.
    """

    def __init__(
        self, script: Script, live: Sight, *, fresh: bool, redacted: bool
    ) -> None:
        """Begins with no name.

        Args:
            script: What is played.
            live: What the server has shown so far.
            fresh: Whether the server knows no conversation, and its models are
                those of the recording.
            redacted: Whether the recording has no texts.
        """
        self._created = script.created
        self._recorded_sight = script.sight
        self._live_sight = live
        self._fresh = fresh
        self._redacted = redacted
        self._live: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def to_live(self, frame: Frame, title: str | None, token: str | None) -> Frame:
        """Returns a recorded frame as it has to be said now.

        Args:
            frame: What was said.
            title: Of the conversation that was meant (see `sight`); None for none.
            token: Credentials; None for none.
        """
        said = dict(frame)
        if "token" in said or said.get("type") == "hello":
            said["token"] = token  # a recording has none
        if token is None and said.get("type") == "refresh":
            said["token"] = NO_TOKEN
        if said.get("type") == "send" and self._fresh and self._redacted:
            said["content"] = said.get("id")  # by this the model knows what to say
        if title is not None:
            self._numbers(title, said)
            said["conversation"] = self._live_name(said["conversation"])
            if said.get("epoch") == self._recorded_sight.epochs.get(title):
                said |= self._epoch(title)
        if isinstance(said.get("new"), str):
            said["new"] = self._live_name(said["new"])
        return said

    def to_recorded(self, connection: str, frame: Frame) -> Frame:
        """Returns what the server said, with the recording's names."""
        name = frame.get("conversation")
        if not isinstance(name, str):
            return frame
        created = self._created.get((connection, str(frame.get("re"))))
        if created is not None:
            self._bind(created, name)
        return frame | {"conversation": self._recorded.get(name, name)}

    def _epoch(self, title: str) -> dict[str, str]:
        epoch = self._live_sight.epochs.get(title)
        return {} if epoch is None else {"epoch": epoch}

    def _numbers(self, title: str, said: dict[str, Any]) -> None:
        for member in _NUMBERS:
            if isinstance(said.get(member), int):
                said[member] = self._number(title, said[member])
        turn = said.get("turn")
        if isinstance(turn, int):
            said["turn"] = self._turn(title, turn)
        call = said.get("call")
        if isinstance(call, str):
            said["call"] = self._call(title, call)

    def _number(self, title: str, seq: int) -> int:
        place = self._recorded_sight.place(title, seq)
        found = None if place is None else self._live_sight.number(title, place)
        return seq if found is None else found

    def _turn(self, title: str, turn: int) -> int:
        nth = self._recorded_sight.turn(title, turn)
        return self._live_sight.turn_id(title, nth) or turn

    def _call(self, title: str, call: str) -> str:
        turn = call.removeprefix("call_").partition(".")[0]
        if not turn.isdecimal():
            return call
        said = self._recorded_sight.call(title, int(turn), call)
        return self._live_sight.call_id(title, said) or call

    def _live_name(self, name: str) -> str:
        if name not in self._live:
            self._bind(name, name if self._fresh else f"replay-{secrets.token_hex(8)}")
        return self._live[name]

    def _bind(self, recorded: str, live: str) -> None:
        self._live[recorded] = live
        self._recorded[live] = recorded
