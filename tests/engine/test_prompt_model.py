"""The prompt against a simple model, over random logs, cut and merged anywhere."""

from itertools import chain
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.story import Story, check_prompt
from wsserver.engine.prompt import Message
from wsserver.log.entry import compact
from wsserver.log.tail import cut

TEXTS = st.lists(st.text("aé日🎌 ", min_size=1, max_size=4), max_size=4)
CALLS = st.lists(st.booleans(), max_size=3)


class Told:
    """Tells a random story, and what its prompt should be."""

    def __init__(self, data: st.DataObject) -> None:
        self.story = Story()
        self.wanted: list[list[Message]] = []
        self.ends = [0]
        self._draw = data.draw
        self._kept = ""
        self._numbers: list[tuple[int, int]] = []  # where each number's text ends

    def turn(self) -> None:
        story, draw = self.story, self._draw
        content = draw(st.text(min_size=1, max_size=3))
        self._numbers = [(story.ask(content), 0)]
        self._kept = ""
        wanted: list[Message] = [{"role": "user", "content": content}]
        parts: list[tuple[int, list[Any], list[Message]]] = []
        rounds = draw(st.integers(0, 3))
        for batch in range(rounds):
            self.say()
            parts.append((len(self._kept), *self.calls(batch)))
        self.say()
        parts.append((len(self._kept), [], []))
        if draw(st.booleans()):
            through = draw(st.sampled_from(self._numbers))[0]
            story.cut(through)
            self._kept = self._kept[: dict(self._numbers)[through]]
        begin = 0
        for end, calls, results in parts:
            text = self._kept[begin:end]
            begin = end
            if calls:
                answer = {"role": "assistant", "content": text or None}
                wanted.append({**answer, "tool_calls": calls})
            elif text:
                wanted.append({"role": "assistant", "content": text})
            wanted += results
        story.done(draw(st.sampled_from(["completed", "interrupted", "incomplete"])))
        self.wanted.append(wanted)
        self.ends.append(story.head)

    def say(self) -> None:
        for text in self._draw(TEXTS):
            self._kept += text
            self._numbers.append((self.story.say(text), len(self._kept)))
            if self._draw(st.booleans()):
                self.story.say("hm", kind="reasoning")

    def calls(self, batch: int) -> tuple[list[Any], list[Message]]:
        draw, story = self._draw, self.story
        valid = {10 * batch + n: ok for n, ok in enumerate(draw(CALLS) or [True])}
        ids = {
            n: story.call(n, batch) if ok else story.invalid(n, batch)
            for n, ok in valid.items()
        }
        for n in draw(st.permutations(list(valid))):
            if valid[n]:
                story.result(str(ids[n]), f"r{n}")
        calls: list[Any] = []
        results: list[Message] = []
        for n, ok in valid.items():
            arguments = f'{{"n":{n}}}' if ok else '{"invalid":"{"}'
            function = {"name": "weather", "arguments": arguments}
            id_ = f"up{n} call_{story.turn}_{n}"
            calls.append({"id": id_, "type": "function", "function": function})
            note = f"r{n}" if ok else "bad"
            results.append({"role": "tool", "tool_call_id": id_, "content": note})
        return calls, results


def each_id_once(messages: list[Message]) -> list[Message]:
    """Chooses of two ids the second where the first stood before."""
    used: set[str] = set()
    for message in messages:
        for call in message.get("tool_calls", ()):
            first, second = call["id"].split()
            call["id"] = second if first in used else first
            used.add(call["id"])
        if "tool_call_id" in message:
            first, second = message["tool_call_id"].split()
            message["tool_call_id"] = second if second in used else first
    return messages


@given(st.data())
def test_the_fold_is_the_model(data: st.DataObject) -> None:
    told = Told(data)
    for _ in range(data.draw(st.integers(0, 4))):
        told.turn()
    story = told.story
    trimmed = data.draw(st.sampled_from(range(len(told.ends))))
    entries = story.entries
    begin = data.draw(st.integers(0, len(entries)))
    end = data.draw(st.integers(begin, len(entries)))
    entries = entries[:begin] + compact(entries[begin:end]) + entries[end:]
    story.entries = cut(entries, told.ends[trimmed], len(story.entries))
    prompt = story.prompt()
    assert prompt == each_id_once(list(chain(*told.wanted[trimmed:])))
    check_prompt(prompt, asks=False)
