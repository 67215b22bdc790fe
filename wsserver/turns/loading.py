"""How a conversation comes into memory: as the store has it, or new and empty.

Which ones are in memory is the `directory`'s business.
"""

import math
from collections.abc import Callable

import structlog

from wsserver.engine.conversation import ConversationState, Snapshots, load
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import RECEIPTS_KEPT, RECEIPTS_KEPT_SECONDS, Meta, Store
from wsserver.turns.conversation import Conversation
from wsserver.turns.pre_cancelled import PreCancelled
from wsserver.turns.receipts import Receipts
from wsserver.turns.recovery import recover
from wsserver.turns.retention import Retention
from wsserver.turns.services import Services

log = structlog.get_logger(__name__)


class Loader:
    """Makes conversations of what is stored, and new ones.

    Attributes:
        cut_off: How many turns were found that a crash had cut off; each was ended.
    """

    def __init__(
        self,
        store: Store,
        committer: Committer,
        services: Services,
        retention: Retention,
        *,
        unused: Callable[[str], None],
    ) -> None:
        """Makes nothing yet.

        Args:
            store: Where they are read from.
            committer: Writes what is appended to them.
            services: What conversations share.
            retention: How much of each is kept.
            unused: Told the key when nobody may need one in memory any more.
        """
        self.cut_off = 0
        self._store = store
        self._committer = committer
        self._services = services
        self._retention = retention
        self._unused = unused
        self._pre_cancelled = PreCancelled(services.clock)

    async def load(self, key: str, meta: Meta) -> Conversation:
        """Returns a conversation as it is stored, whole, trimmed and with no open turn.

        Nothing is awaited once its log is changed: whoever asked has it before
        anybody can look for it again, and a changed log is always the one in use.

        Raises:
            StoreError: The store can't be read.
        """
        services, state = self._services, load(meta.state)
        wall = services.clock.wall()
        kept = await self._store.receipts(
            key, wall - RECEIPTS_KEPT_SECONDS, RECEIPTS_KEPT
        )
        conversation = self._conversation(key, meta, state, Receipts(kept))
        if state.running:
            # A crash cut it off: its rows are as they were written, since the `done`
            # before it, which ended a row.
            ended = await self._store.trim_point(key, math.inf, 0)
            await conversation.log.load_tail(ended + 1, loose=True)
        elif state.last_turn:
            await conversation.log.load_tail(state.last_turn)
        point = await self._retention.trim_point(self._store, key, wall)
        conversation.trim(point)
        if recover(conversation.log, state, services):
            self.cut_off += 1
            log.warning("turn_cut_off_by_restart", key=key, turn=state.last_turn)
        return conversation

    def new(self, key: str, state: ConversationState) -> Conversation:
        """Returns a conversation that the store does not have yet, with an empty log."""
        epoch = self._services.clock.token()
        meta = Meta(epoch=epoch, head=0, oldest=1, live=False, state=b"")
        return self._conversation(key, meta, state, Receipts(), kept=False)

    def _conversation(
        self,
        key: str,
        meta: Meta,
        state: ConversationState,
        receipts: Receipts,
        *,
        kept: bool = True,
    ) -> Conversation:
        return Conversation(
            ConversationLog(
                key,
                meta,
                self._store,
                self._committer.mark,
                Snapshots(state).take,
                hurry=self._committer.hurry,
                kept=kept,
            ),
            state,
            receipts=receipts,
            services=self._services,
            pre_cancelled=self._pre_cancelled,
            unused=self._unused,
        )
