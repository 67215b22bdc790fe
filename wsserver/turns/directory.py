"""Which conversations are in memory, and how they come and go.

A conversation is loaded when somebody needs it and leaves memory when nobody
watches it, nothing runs in it and the store has all of it.
"""

from collections.abc import Callable

import anyio
import structlog
from msgspec import Struct

from protocol.commands import Delete, Fork
from protocol.content import Config
from protocol.control import Reply
from protocol.events import ConfigEvent
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState, dump, load
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.store import Meta, Store
from wsserver.turns.admission import check_config, check_open
from wsserver.turns.applied import Applied
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import refusal
from wsserver.turns.forking import copy, end_of_turn
from wsserver.turns.receipts import KEPT, Receipts
from wsserver.turns.recovery import recover
from wsserver.turns.services import Services

log = structlog.get_logger(__name__)

READ_BYTES = 262_144
RECEIPT_SECONDS = 86_400.0


class Retention(Struct, frozen=True, kw_only=True):
    """How much of a conversation is kept; None is no limit.

    Attributes:
        seconds: Turns that were stored longer ago are dropped, and conversations
            in which nothing happened since.
        bytes: The oldest turns beyond this size are dropped.
    """

    seconds: float | None = None
    bytes: int | None = None


class Directory:
    """Finds, makes, forks and deletes conversations."""

    def __init__(
        self,
        store: Store,
        committer: Committer,
        services: Services,
        retention: Retention | None = None,
    ) -> None:
        self._store = store
        self._committer = committer
        self._services = services
        self._retention = retention or Retention()
        self._loaded: dict[str, Conversation] = {}
        self._loading: dict[str, anyio.Event] = {}
        committer.on_failure = self._store_failed
        committer.on_commit = self._stored

    @property
    def draining(self) -> bool:
        """Whether no turn starts any more."""
        return self._services.draining

    def loaded(self, key: str) -> Conversation | None:
        """Returns the conversation if it is in memory."""
        return self._loaded.get(key)

    async def find(self, key: str) -> Conversation | None:
        """Returns the conversation, None if there is none.

        Use it before the next await, or attach a viewer: it may leave memory.

        Raises:
            StoreError: The store can't be read.
        """
        while key in self._loading:
            await self._loading[key].wait()
        found = self._loaded.get(key)
        if found is not None:
            return None if found.deleted else found
        self._loading[key] = anyio.Event()
        try:
            meta = await self._store.meta(key)
            return None if meta is None else await self._load(key, meta)
        finally:
            self._loading.pop(key).set()

    async def create(
        self, key: str, config: Config | None, principal: Principal
    ) -> Conversation:
        """Makes a conversation; if it was made meanwhile, returns that one.

        Raises:
            CommandError: The settings are refused, or the store is failing.
            StoreError: The store can't be read.
        """
        check_open(self._services)
        check_config(config or Config(), self._services)
        found = await self.find(key)
        if found is not None:
            return found
        log.info("conversation_created", key=key, by=principal.name)
        made = self._new(key, self._new_meta(), ConversationState())
        if config is not None:
            made.configure("config", config)
        made.log.touch()
        return made

    async def fork(
        self, source: Conversation, command: Fork, principal: Principal
    ) -> Applied:
        """Copies a conversation's log up to the end of a turn into a new one.

        Raises:
            CommandError: The turn has not ended, or the new id is in use.
            StoreError: The store can't be read.
        """
        known = source.recall(command, principal)
        if known is not None:
            return known
        check_open(self._services)
        entries = await source.log.whole(READ_BYTES)
        through = end_of_turn(entries, command.through)
        if command.through > source.log.head or (command.through and not through):
            raise refusal(
                "bad_frame",
                f"{command.through} is not in a turn that has ended; the log's last"
                f" number is {source.log.head}.",
                param="$.through",
            )
        name = command.new or f"c_{self._services.clock.token()}"
        key = principal.key(name)
        if await self.find(key) is not None:
            raise refusal(
                "bad_frame",
                f"There is already a conversation {name!r}; choose another id.",
                param="$.new",
            )
        copied, state = copy(entries, through, name)
        made = self._new(key, self._new_meta(), state)
        made.log.adopt(copied)
        if state.config == Config() != source.state.config:
            state.config = source.state.config
            made.log.append(ConfigEvent, config=state.config)
        made.log.touch()
        await made.log.until_stored(made.log.head)
        reply = Reply(re=command.id, ok=True, outcome="created", conversation=name)
        source.keep(command, principal, reply)
        return Applied(reply=reply, through=0)

    async def delete(self, key: str, command: Delete, principal: Principal) -> Applied:
        """Removes a conversation from the store and stops what runs in it.

        Raises:
            CommandError: There is none.
            StoreError: The store can't be read.
        """
        found = await self.find(key)
        if found is None:
            raise refusal("conversation_not_found", "There is no such conversation.")
        found.delete()
        await self._committer.delete(key)
        if self._loaded.get(key) is found:
            del self._loaded[key]
        log.info("conversation_deleted", key=key, by=principal.name)
        reply = Reply(re=command.id, ok=True, outcome="deleted")
        return Applied(reply=reply, through=0)

    async def recover(self) -> int:
        """Ends what a crash cut off; returns how many turns that were.

        Raises:
            StoreError: The store can't be read.
        """
        count = 0
        for key in await self._store.live():
            if await self.find(key) is not None:
                count += 1
        return count

    async def drain(self, seconds: float) -> None:
        """Lets running turns end for a while, then ends the rest.

        Returns when no turn runs; new ones are refused from now on.
        """
        self._services.draining = True
        with anyio.move_on_after(seconds):
            await self._quiet()
        for conversation in list(self._loaded.values()):
            conversation.shut_down()
        with anyio.move_on_after(1.0):
            await self._quiet()

    async def retain(self, most: int = 100) -> int:
        """Applies retention to what is in memory and to what lies idle.

        A conversation that is neither is trimmed when it is loaded. Returns how
        many idle conversations were dropped, at most `most` at a time.

        Raises:
            StoreError: The store can't be read.
        """
        for conversation in list(self._loaded.values()):
            await self._trim(conversation)
        if self._retention.seconds is None:
            return 0
        before = self._services.clock.wall() - self._retention.seconds
        keys = await self._store.idle(before, most)
        for key in keys:
            if key not in self._loaded and key not in self._loading:
                await self._committer.delete(key)
        return len(keys)

    async def _trim(self, conversation: Conversation) -> None:
        seconds, most = self._retention.seconds, self._retention.bytes
        if seconds is None and most is None:
            return
        before = 0.0 if seconds is None else self._services.clock.wall() - seconds
        keep = 2**62 if most is None else most
        through = await self._store.trim_point(conversation.log.key, before, keep)
        if through >= conversation.log.oldest and not conversation.deleted:
            conversation.log.trim(through)

    def statistics(self) -> tuple[int, int]:
        """Returns how many conversations are in memory and how many turns run."""
        return len(self._loaded), sum(self._services.active.values())

    async def _quiet(self) -> None:
        while self._services.active:
            self._services.quiet = anyio.Event()
            await self._services.quiet.wait()

    def _new_meta(self) -> Meta:
        epoch = self._services.clock.token()
        return Meta(epoch=epoch, head=0, oldest=1, live=False, state=b"")

    def _new(self, key: str, meta: Meta, state: ConversationState) -> Conversation:
        return self._make(key, meta, state, Receipts())

    def _make(
        self, key: str, meta: Meta, state: ConversationState, receipts: Receipts
    ) -> Conversation:
        made = ConversationLog(
            key, meta, self._store, self._committer.mark, _snapshot(state)
        )
        conversation = Conversation(
            made, state, receipts, self._services, self._drop_unused
        )
        self._loaded[key] = conversation
        return conversation

    async def _load(self, key: str, meta: Meta) -> Conversation:
        state = load(meta.state)
        since = self._services.clock.wall() - RECEIPT_SECONDS
        receipts = Receipts(await self._store.receipts(key, since, KEPT))
        conversation = self._make(key, meta, state, receipts)
        try:
            if state.last_turn:
                await conversation.log.load_tail(state.last_turn)
            await self._trim(conversation)
        except BaseException:
            del self._loaded[key]
            raise
        if recover(conversation.log, state, self._services.clock):
            log.warning("turn_cut_off_by_restart", key=key, turn=state.last_turn)
        return conversation

    def _stored(self, written: ConversationLog) -> None:
        conversation = self._loaded.get(written.key)
        if conversation is not None:
            self._drop_unused(conversation)

    def _drop_unused(self, conversation: Conversation) -> None:
        key = conversation.log.key
        if conversation.unused and self._loaded.get(key) is conversation:
            del self._loaded[key]

    def _store_failed(self) -> None:
        for conversation in list(self._loaded.values()):
            conversation.store_failed()


def _snapshot(state: ConversationState) -> Callable[[], tuple[bytes, bool]]:
    return lambda: (dump(state), state.live)
