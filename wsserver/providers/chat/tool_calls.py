"""Assembles tool calls from the pieces in which an upstream streams them.

An index is a label, not a position. Where upstreams leave index or id out, or use
one for several calls, the rules are these, the first that fits:

- another id under a used index, and any new id without index, opens a call;
- a name with more arguments after complete ones, under no id, opens a call;
- everything else goes on with the call of that index or id, or with the last one.
"""

from typing import Final

from wsserver.engine.model import Call, CallFragment
from wsserver.engine.tools import LONGEST_ID
from wsserver.providers.chat.lenient import CallPiece, Label
from wsserver.providers.exact_json import is_json
from wsserver.providers.surrogates import Joiner, clean

# What some upstreams send before the arguments proper, and how long it is held back.
_PLACEHOLDER: Final = "{}"
_MOST_HELD_CHARS: Final = 64

# Above these an upstream has lost its way; nobody else counts what shows no text.
MOST_CALLS: Final = 1000
_MOST_NAME_CHARS: Final = 256


class _OpenCall:
    """A call whose arguments may still grow."""

    __slots__ = ("arguments", "id", "joiner", "label", "name", "position", "shown")

    def __init__(self, label: Label | None) -> None:
        # None until a name or arguments are seen: an id alone is no call.
        self.position: int | None = None
        self.label = label
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.joiner = Joiner()
        # Whether any of the arguments went out; a placeholder is held back.
        self.shown = False

    def add_name(self, name: str) -> None:
        """Takes a name: the first, the same again, or one that comes in parts."""
        name = name[:_MOST_NAME_CHARS]
        if self.arguments or not name or name == self.name:
            self.name = self.name or name
        elif name.startswith(self.name):
            self.name = name
        else:
            self.name = (self.name + name)[:_MOST_NAME_CHARS]

    def add_arguments(self, text: str) -> str:
        """Takes arguments and returns what of them can be shown."""
        text = self.joiner.push(text)
        if not text:
            return ""
        self.arguments.append(text)
        if not self.shown:
            held = "".join(self.arguments)
            if len(held) <= _MOST_HELD_CHARS and held.strip() == _PLACEHOLDER:
                return ""
            self.shown = True
        return text

    def is_whole(self) -> bool:
        """Says whether the arguments are a complete object, no placeholder."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        text = "".join(self.arguments)
        return text.strip() != _PLACEHOLDER and is_json(text)

    def closed(self, used_ids: set[str]) -> Call:
        """Returns the call under an id that is not among `used_ids` yet."""
        arguments = _without_placeholder("".join(self.arguments))
        name = clean(self.name)
        id_ = clean(self.id)[:LONGEST_ID]
        number = self.position or 0
        while not id_ or id_ in used_ids:
            id_ = f"call_{number}"
            number += 1
        used_ids.add(id_)
        return Call(
            upstream_id=id_,
            name=name,
            arguments=arguments,
            valid=bool(name) and is_json(arguments),
        )


class ToolCalls:
    """The tool calls of one model call.

    Attributes:
        opened: How many were opened, also those of which no more than an id was seen.
    """

    def __init__(self) -> None:
        self.opened = 0
        # Those of which a name or arguments were seen, in the order of that.
        self._calls: list[_OpenCall] = []
        # The call that pieces of an index go to: the one opened last under it.
        self._by_label: dict[Label, _OpenCall] = {}
        # The call opened last under an id, for all indexes (None) and for each.
        self._by_id: dict[tuple[Label | None, str], _OpenCall] = {}
        self._last: _OpenCall | None = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def push(self, piece: CallPiece) -> CallFragment | None:
        """Takes the next piece and returns what it shows of its call, if anything."""
        if not (piece.id or piece.name or piece.arguments):
            return None
        return self._add(self._find(piece) or self._open(piece), piece)

    def replace(self, position: int, whole: CallPiece) -> CallFragment | None:
        """Takes a call as a snapshot holds it; returns what that adds, if anything."""
        if position >= len(self._calls):
            return self._add(self._open(whole), whole)
        call = self._calls[position]
        so_far = "".join(call.arguments)
        if not whole.arguments.startswith(so_far):
            return None
        text = call.add_arguments(whole.arguments[len(so_far) :])
        return _fragment(call, text) if text else None

    def finish(self) -> tuple[list[CallFragment], tuple[Call, ...]]:
        """Ends all calls: returns what is left to show, and the calls."""
        fragments: list[CallFragment] = []
        for call in self._calls:
            left = call.joiner.flush()
            if left:
                call.arguments.append(left)
            text = left if call.shown else "".join(call.arguments)
            if text:
                fragments.append(_fragment(call, text))
        used_ids: set[str] = set()
        return fragments, tuple(call.closed(used_ids) for call in self._calls)

    def _open(self, piece: CallPiece) -> _OpenCall:
        self.opened += 1
        call = _OpenCall(piece.label)
        if piece.label is not None:
            self._by_label[piece.label] = call
        return call

    def _add(self, call: _OpenCall, piece: CallPiece) -> CallFragment | None:
        self._last = call
        if piece.id and not call.id:
            call.id = piece.id
            self._by_id[None, piece.id] = self._by_id[call.label, piece.id] = call
        call.add_name(piece.name)
        text = call.add_arguments(piece.arguments)
        is_new = call.position is None and bool(call.name or call.arguments)
        if is_new:
            call.position = len(self._calls)
            self._calls.append(call)
        return _fragment(call, text) if text or is_new else None

    def _find(self, piece: CallPiece) -> _OpenCall | None:
        """Returns the call that `piece` goes on with; None: it opens one."""
        if piece.label is not None:
            call = self._by_label.get(piece.label) or self._late_label(piece)
            if call is not None and piece.id and call.id and piece.id != call.id:
                call = self._by_id.get((piece.label, piece.id))
        elif piece.id:
            call = self._by_id.get((None, piece.id))
        else:
            call = None if piece.own and piece.name else self._last
        return None if call is None or _begins_another(call, piece) else call

    def _late_label(self, piece: CallPiece) -> _OpenCall | None:
        """Finds a call that got its index late, so that no nameless one opens."""
        last = self._last
        if last is None or last.label is not None or piece.label is None:
            return None
        if piece.id != last.id if piece.id else piece.name:
            return None
        last.label = piece.label
        self._by_label[piece.label] = last
        return last


def _begins_another(call: _OpenCall, piece: CallPiece) -> bool:
    if not piece.name or not piece.arguments.strip():
        return False
    if piece.id and piece.name == call.name:
        return False
    return call.is_whole()


def _without_placeholder(arguments: str) -> str:
    """Empty arguments are an empty object; a placeholder yields to a real one."""
    text = arguments.strip()
    while text.startswith(_PLACEHOLDER) and len(text) > len(_PLACEHOLDER):
        rest = text[len(_PLACEHOLDER) :].strip()
        if not (rest.startswith("{") and is_json(rest)):
            return arguments
        arguments = text = rest
    return arguments if text else _PLACEHOLDER


def _fragment(call: _OpenCall, text: str) -> CallFragment:
    assert call.position is not None, "a call is shown once it has its position"
    return CallFragment(position=call.position, name=clean(call.name), text=text)
