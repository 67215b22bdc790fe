"""Plays scenarios to a client and says where it broke the protocol.

A scenario is data (`scenarios/*.json`, explained in docs/how-to/write-a-client.md);
a client is anything behind a `Driver`. Beside what a scenario's steps ask for, some
rules hold at every step: `_Rules`.
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import orjson

from tests.conformance.names import Names
from tests.conformance.rules import Rules

HERE = Path(__file__).parent
FRAMES: dict[str, Any] = orjson.loads((HERE / "frames.json").read_bytes())
Json = dict[str, Any]


class Driver(Protocol):
    """A client whose clock, network and application are in the judge's hands."""

    def do(self, op: Json) -> Json:
        """Does one thing to the client and tells all that it did then."""
        ...


class BrokenRuleError(AssertionError):
    """The client did what the protocol forbids, or not what it asks for."""


def scenarios() -> Iterator[Json]:
    """Reads all scenarios; of one with `each`, one for each value."""
    for path in sorted((HERE / "scenarios").glob("*.json")):
        for scenario in orjson.loads(path.read_bytes()):
            choices: dict[str, list[Any]] = scenario.get("each", {})
            for values in product(*choices.values()):
                named = dict(zip(choices, values, strict=True))
                label = "".join(f" [{value}]" for value in values)
                yield scenario | {
                    "name": scenario["name"] + label,
                    "file": path.stem,
                    "steps": Names(named).put_into(scenario["steps"]),
                }


def frame_of(given: Json) -> Json:
    """Fills in what a frame has by its type and the scenario need not say."""
    frame = FRAMES["templates"].get(given["type"], {}) | given
    if given["type"] == "error" and "conversation" in given:
        frame = given
    if given["type"] in {"cut", "done"} and isinstance(frame["text"], str):
        text = frame["text"].encode()
        frame |= {"text": {"bytes": len(text), "crc32": zlib.crc32(text)}}
    return _long(frame)


class Judge:
    """One client under one scenario."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._acts: dict[str, Callable[[Any], None]] = {
            "begin": self._begin,
            "connect": self._connect,
            "up": self._up,
            "down": self._down,
            "pass_ms": self._pass_ms,
            "until": self._until,
            "frame": self._say,
            "text": self._say_text,
            "call": self._call,
        }
        self._looks: dict[str, Callable[[Any], None]] = {
            "sends": self._sends,
            "sends_any_order": self._sends_any_order,
            "never": self._never,
            "quiet": self._quiet,
            "link": self._link,
            "gave_up": self._is_given_up,
            "waits_ms": self._waits_ms,
            "cursor": self._shows,
            "shows": self._shows,
            "asked": self._was_asked,
            "told": self._was_told,
            "replied": self._was_replied,
        }

    def play(self, scenario: Json) -> None:
        """Plays a scenario from its beginning.

        Raises:
            BrokenRuleError: The client failed it; says at which step.
        """
        self._names = Names()
        self._sent: list[Json] = []
        self._asked: list[str] = []
        self._replied: list[list[str]] = []
        self._told: list[str] = []
        self._gave_up = False
        self._state: Json = {}
        self._rules = Rules()
        begin = {key: scenario.get(key) for key in ("tools", "token")}
        random = scenario.get("random", 0.5)
        steps = [{"begin": {"random": random, **begin}}, *scenario["steps"]]
        if scenario["opening"] is not None:
            steps.insert(1, {"opening": scenario["opening"]})
        self._play(steps, scenario["name"])

    def _play(self, steps: list[Json], where: str) -> None:
        for number, step in enumerate(steps):
            at = f"{where}, step {number + 1}: {orjson.dumps(step).decode()}"
            try:
                self._step(step, at)
            except BrokenRuleError:
                raise
            except AssertionError as broken:
                raise BrokenRuleError(f"{at}: {broken}") from broken

    def _step(self, step: Json, at: str) -> None:
        if "repeat" in step:
            for _ in range(step["repeat"]):
                self._names.forget("$again")
                self._play(step["steps"], at)
            return
        ((kind, given),) = ((k, v) for k, v in step.items() if k != "faulty")
        if kind == "opening":
            self._play(FRAMES["openings"][given], f"{at} ({given})")
        elif kind in self._acts:
            self._acts[kind](given)
        elif kind in self._looks:
            self._looks[kind](given)
        else:
            raise LookupError(f"there is no step {kind!r}")

    # What is done to the client.

    def _begin(self, given: Json) -> None:
        self._do({"op": "begin", **given})

    def _up(self, _: bool) -> None:
        self._do({"op": "up"})

    def _down(self, code: int | None) -> None:
        self._do({"op": "down", "code": code})

    def _pass_ms(self, ms: float) -> None:
        self._do({"op": "pass", "ms": ms})

    def _call(self, call: Json) -> None:
        self._do({"op": "call", **_long(self._names.put_into(call))})

    def _connect(self, welcome: Json) -> None:
        self._until("dialling")
        self._do({"op": "up"})
        assert [frame["type"] for frame in self._sent] == ["hello"], self._sent
        self._sent.clear()
        self._gave_up = False
        self._say({"type": "welcome"} | welcome)

    def _until(self, link: str) -> None:
        if self._state["link"] == "waiting":
            self._do({"op": "pass", "ms": self._state["wait_ms"]})
        assert self._state["link"] == link, self._state["link"]

    def _say(self, given: Json) -> None:
        frame = frame_of(self._names.put_into(given))
        self._say_text(orjson.dumps(frame).decode())

    def _say_text(self, text: str) -> None:
        self._do({"op": "frame", "text": text})

    # What the client must have done.

    def _sends(self, pattern: Json) -> None:
        assert self._sent, "nothing was sent"
        self._names.match(pattern, self._sent.pop(0))

    def _sends_any_order(self, patterns: list[Json]) -> None:
        for pattern in patterns:
            found = [sent for sent in self._sent if self._names.fits(pattern, sent)]
            assert found, f"{pattern} is not among {self._sent}"
            self._sent.remove(found[0])

    def _never(self, pattern: Json) -> None:
        found = [sent for sent in self._sent if self._names.fits(pattern, sent)]
        assert not found, f"was sent: {found}"
        self._sent.clear()

    def _quiet(self, _: bool) -> None:
        assert not self._sent, f"was sent: {self._sent}"

    def _link(self, link: str) -> None:
        assert self._state["link"] == link, self._state["link"]

    def _is_given_up(self, wanted: bool) -> None:
        assert self._gave_up == wanted, f"gave up: {self._gave_up}"

    def _waits_ms(self, bounds: list[float]) -> None:
        least, most = bounds
        link = self._state["link"]
        assert link in {"waiting", "dialling"}, link
        waits = 0 if link == "dialling" else self._state["wait_ms"]
        assert least <= waits <= most, f"waits {waits} ms"

    def _shows(self, patterns: Json) -> None:
        self._names.match(patterns, self._state["conversations"])

    def _was_asked(self, calls: list[str]) -> None:
        assert self._asked == calls, f"asked: {self._asked}"

    def _was_told(self, kinds: list[str]) -> None:
        assert self._told == kinds, f"told: {self._told}"

    def _was_replied(self, patterns: list[list[str]]) -> None:
        self._names.match(patterns, self._replied)

    def _do(self, op: Json) -> None:
        state = self._driver.do(op)
        self._rules.check(op, state)
        self._state = state
        self._sent += [frame for frame in state["sent"] if frame["type"] != "ping"]
        self._asked += state["asked"]
        self._replied += state["replied"]
        self._told += state["told"]
        self._gave_up |= state["gave_up"]


def _long(given: Json) -> Json:
    """Writes out text that a scenario only describes."""
    return {
        key: value["repeat"] * value["times"]
        if isinstance(value, dict) and value.keys() == {"repeat", "times"}
        else _long(value)
        if isinstance(value, dict)
        else value
        for key, value in given.items()
    }
