"""The default answer: Markdown that reacts a little to what was said."""

import re

from wsserver.providers.demo.answer import Answer
from wsserver.providers.demo.question import Question
from wsserver.providers.demo.texts import WELCOME
from wsserver.providers.demo.tokens import fixed_text_events, text_events

_TITLE_LENGTH = 60
_GREETING = re.compile(
    r"(?:hi|hey|hello|good (?:morning|evening)|bonjour|hallo|hola|你好)\b",
    re.IGNORECASE,
)
_OPENINGS = (
    "Let me think about that for as long as a demo can.",
    "There is more to this than meets the eye, though not to me.",
    "I have an opinion on this, but it was written before you asked.",
)


def markdown(question: Question) -> Answer:
    """Answers with a heading, a remark on the message, and the tour."""
    return Answer(
        events=(*text_events(_reaction(question)), *fixed_text_events(WELCOME))
    )


def _reaction(question: Question) -> str:
    said = question.text.strip()
    if not said:
        return "# You said nothing\n\nThat is fine; I do not mind.\n"
    words = len(said.split())
    facts = f"{words} {'word' if words == 1 else 'words'}, {len(said)} characters"
    return f"# {_title(said)}\n\n{_opening(question, said)} ({facts}.)\n"


def _opening(question: Question, said: str) -> str:
    if _GREETING.match(said):
        return "Hello! It is good to see that somebody is there."
    if "```" in said:
        return "I see code. I cannot run it, but I can tell that somebody cared."
    if said.endswith(("?", "\uff1f")):
        return "Good question. " + _OPENINGS[question.seed % len(_OPENINGS)]
    return _OPENINGS[question.seed % len(_OPENINGS)]


def _title(said: str) -> str:
    """Makes a heading of the message's beginning, with no Markdown left in it."""
    line = " ".join(said[: 4 * _TITLE_LENGTH].split())
    if len(line) > _TITLE_LENGTH:
        line = f"{line[:_TITLE_LENGTH].rsplit(' ', 1)[0]}…"
    return re.sub(r"([\\`*_{}\[\]()#+!<>|~$-])", r"\\\1", line)
