"""Which commands a conversation has applied, so that none has effect twice."""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from protocol.commands import Command
from protocol.control import Reply
from wsserver.log.store import RECEIPTS_KEPT, Receipt
from wsserver.turns.errors import id_in_use

_encode = msgspec.json.Encoder(order="sorted").encode
_reply = msgspec.json.Decoder(Reply)


def digest(command: Command) -> bytes:
    """Returns a hash of the command's content."""
    return blake2b(_encode(command), digest_size=16).digest()


class Receipts:
    """The receipts of one conversation, by principal and command id."""

    def __init__(self, receipts: Iterable[Receipt] = ()) -> None:
        self._kept: dict[str, OrderedDict[str, Receipt]] = {}
        for receipt in receipts:
            self._of(receipt.principal)[receipt.id] = receipt

    def find(self, principal: str, command: Command) -> Reply | None:
        """Returns the first reply to a command that was applied before.

        Raises:
            CommandError: The id was used for another content.
        """
        receipt = self._of(principal).get(command.id)
        if receipt is None:
            return None
        if receipt.digest != digest(command):
            raise id_in_use(command.id)
        return msgspec.structs.replace(_reply.decode(receipt.reply), duplicate=True)

    def knows(self, principal: str, id_: str) -> bool:
        """Whether a command of that id was applied."""
        return id_ in self._of(principal)

    def add(self, principal: str, command: Command, reply: Reply, at: float) -> Receipt:
        """Keeps a reply; returns the receipt for the store."""
        receipt = Receipt(
            principal=principal,
            id=command.id,
            digest=digest(command),
            reply=_encode(reply),
            at=at,
        )
        kept = self._of(principal)
        kept[command.id] = receipt
        while len(kept) > RECEIPTS_KEPT:
            kept.popitem(last=False)
        return receipt

    def _of(self, principal: str) -> OrderedDict[str, Receipt]:
        return self._kept.setdefault(principal, OrderedDict())
