"""Which conversations are in memory, and how they come and go.

A conversation is loaded when somebody needs it and leaves memory when nobody
watches it, nothing runs in it and the store has all of it. There is never more
than one of a key.
"""

import math
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import structlog

from protocol.commands import Delete, Fork
from protocol.content import Config
from protocol.control import Reply
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState, Snapshots, load
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.reading import read_whole
from wsserver.log.store import (
    RECEIPTS_KEPT,
    RECEIPTS_KEPT_SECONDS,
    Meta,
    Store,
    StoreError,
)
from wsserver.turns.admission import check_change, check_open
from wsserver.turns.applied import Applied
from wsserver.turns.conversation import Conversation
from wsserver.turns.errors import CommandError, refusal
from wsserver.turns.forking import copy, end_of_turn, fill, later_cuts
from wsserver.turns.pre_cancelled import PreCancelled
from wsserver.turns.receipts import Receipts
from wsserver.turns.recovery import recover
from wsserver.turns.retention import Retention
from wsserver.turns.services import Services

log = structlog.get_logger(__name__)

STOP_SECONDS = 1.0
"""How long a turn that is stopped by a drain may take to close its upstream."""
IDLE_AT_ONCE = 100
"""Conversations that retention drops with one commit: others wait for it."""


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
        self._pre_cancelled = PreCancelled(services.clock)
        self._loaded: dict[str, Conversation] = {}
        self._loading: dict[str, anyio.Event] = {}
        self._fresh: set[str] = set()  # loaded, and maybe not used since
        self._left: set[str] = set()  # have left memory since idle ones were sought
        self._cut_off = 0
        self._failing = False
        committer.on_failure = self._store_failed
        committer.on_misfit = self._misfits
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

        Use it before the next await, attach a viewer or hold it: it may leave
        memory.

        Raises:
            StoreError: The store can't be read.
        """
        while key in self._loading:
            await self._loading[key].wait()
        found = self._loaded.get(key)
        if found is not None:
            return found
        if self._committer.deletes(key):
            return None
        with self._busy(key):
            meta = await self._store.meta(key)
            if meta is None:
                return None
            self._drop_fresh()
            conversation = await self._load(key, meta)
            self._fresh.add(key)
            return conversation

    async def create(
        self, key: str, config: Config | None, principal: Principal
    ) -> tuple[Conversation, bool]:
        """Makes a conversation; if it was made meanwhile, returns that one.

        Returns:
            The conversation, and whether this call made it.

        Raises:
            CommandError: The settings are refused, or the store is failing.
            StoreError: The store can't be read or written.
        """
        check_open(self._services)
        check_change(config or Config(), self._services)
        found = await self.find(key)
        if found is not None:
            return found, False
        check_open(self._services)  # it may fail by now, and half made is not made
        log.info("conversation_created", key=key, by=principal.name)
        made = self._new(key, ConversationState())
        if config is not None:
            made.configure("config", config)
        made.log.touch()
        return made, True

    async def fork(
        self, source: Conversation, command: Fork, principal: Principal
    ) -> Applied:
        """Copies a conversation's log up to the end of a turn into a new one.

        Raises:
            CommandError: The turn has not ended, or the new id is in use.
            StoreError: The store can't be read, or does not take it at the moment.
        """
        known = source.recall(command, principal)
        if known is not None:
            return await self._kept_fork(known, principal)
        check_open(self._services)
        name = command.new or f"conv_{self._services.clock.token()}"
        key = principal.key(name)
        with source.held():
            entries = await read_whole(source.log)
            taken = await self.find(key) is not None
            # From here on nothing is awaited: the fork and its receipt go down as one.
            known = source.recall(command, principal)
            if known is not None:
                return await self._kept_fork(known, principal)
            if source.deleted:
                raise _not_found()
            if taken:
                raise refusal(
                    "bad_frame",
                    f"There is already a conversation {name!r}; choose another id.",
                    param="$.new",
                )
            if 0 < command.through < source.log.oldest:
                raise refusal(
                    "bad_frame",
                    f"{command.through} is not kept any more; the log begins with"
                    f" {source.log.oldest}.",
                    param="$.through",
                )
            through = end_of_turn(entries, command.through)
            if through is None:
                raise refusal(
                    "bad_frame",
                    f"{command.through} is not in a turn that has ended; the log's"
                    f" last number is {source.log.head}.",
                    param="$.through",
                )
            copied, state = copy(entries, through, name)
            made = self._new(key, state).log
            cuts = later_cuts(entries, through)
            fill(made, state, copied, cuts, config=source.state.config)
            reply = Reply(re=command.id, ok=True, outcome="created", conversation=name)
            source.keep(command, principal, reply)
        return await self._kept_fork(Applied(reply=reply), principal)

    async def _kept_fork(self, applied: Applied, principal: Principal) -> Applied:
        """Waits until the store knows of the fork; its receipt goes down with it."""
        assert applied.reply.conversation is not None, "it says what was made"
        made = self._loaded.get(principal.key(applied.reply.conversation))
        if made is not None:
            await made.log.until_kept()
        return applied

    async def delete(self, key: str, command: Delete, principal: Principal) -> Applied:
        """Removes a conversation from the store and stops what runs in it.

        Raises:
            CommandError: There is none.
            StoreError: The store can't be read, or does not do it at the moment.
        """
        found = await self.find(key)
        if found is None:
            if self._committer.deletes(key):  # it was told so before, and it took long
                await self._committer.until_deleted(key)
            raise _not_found()
        if self._committer.stalled:
            raise StoreError(f"{key} can't be deleted now")
        del self._loaded[key]
        found.delete()
        await self._committer.delete(key)
        log.info("conversation_deleted", key=key, by=principal.name)
        reply = Reply(re=command.id, ok=True, outcome="deleted")
        return Applied(reply=reply)

    async def recover(self) -> int:
        """Ends what a crash cut off; returns how many turns that were.

        Raises:
            StoreError: The store can't be read.
        """
        before = self._cut_off
        for key in await self._store.live():
            await self.find(key)
        return self._cut_off - before

    async def drain(self, seconds: float) -> None:
        """Lets running turns end for a while, then ends the rest.

        Returns when no turn runs; new ones are refused from now on.
        """
        self._services.draining = True
        with anyio.move_on_after(seconds):
            await self._quiet()
        for conversation in list(self._loaded.values()):
            conversation.shut_down()
        with anyio.move_on_after(STOP_SECONDS):
            await self._quiet()

    async def retain(self, at_once: int = IDLE_AT_ONCE) -> int:
        """Applies retention to what is in memory and to what lies idle.

        A conversation that is neither is trimmed when it is loaded. Returns how
        many idle conversations were dropped: all there are, `at_once` a commit.

        Raises:
            StoreError: The store can't be read, or does not take it at the moment.
        """
        wall = self._services.clock.wall()
        for loaded, conversation in list(self._loaded.items()):
            if self._loaded.get(loaded) is not conversation:
                continue  # it left memory while another was looked at
            with conversation.held():
                key = conversation.log.key
                point = await self._retention.trim_point(self._store, key, wall)
                _trim(conversation, point)
        before = self._retention.before(wall)
        dropped = 0
        while before is not None:
            drop = await self._drop_idle(before, at_once)
            dropped += len(drop)
            if len(drop) < at_once:
                break
            await self._committer.until_deleted(drop[-1])
        return dropped

    async def _drop_idle(self, before: float, most: int) -> list[str]:
        self._left.clear()
        # What is open somewhere may be idle too, and must not stand before the rest.
        idle = await self._store.idle(before, most + len(self._loaded))
        free = [key for key in idle if not (key in self._left or self._in_use(key))]
        for key in free[:most]:
            self._committer.discard(key)
        return free[:most]

    def statistics(self) -> tuple[int, int]:
        """Returns how many conversations are in memory and how many turns run."""
        return len(self._loaded), sum(self._services.active.values())

    def _in_use(self, key: str) -> bool:
        return key in self._loaded or key in self._loading

    @contextmanager
    def _busy(self, key: str) -> Generator[None]:
        """Lets others that look for the same key wait."""
        self._loading[key] = anyio.Event()
        try:
            yield
        finally:
            self._loading.pop(key).set()

    async def _quiet(self) -> None:
        while self._services.active:
            self._services.quiet = anyio.Event()
            await self._services.quiet.wait()

    async def _load(self, key: str, meta: Meta) -> Conversation:
        """Loads a conversation; it is found only once it is whole."""
        clock, state = self._services.clock, load(meta.state)
        wall = clock.wall()
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
        # From here on nothing is awaited: a log that was changed is the one in use.
        _trim(conversation, point)
        if recover(conversation.log, state, clock):
            self._cut_off += 1
            log.warning("turn_cut_off_by_restart", key=key, turn=state.last_turn)
        self._loaded[key] = conversation
        return conversation

    def _new(self, key: str, state: ConversationState) -> Conversation:
        epoch = self._services.clock.token()
        meta = Meta(epoch=epoch, head=0, oldest=1, live=False, state=b"")
        made = self._conversation(key, meta, state, Receipts(), kept=False)
        self._loaded[key] = made
        return made

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
                kept=kept,
            ),
            state,
            receipts=receipts,
            services=self._services,
            pre_cancelled=self._pre_cancelled,
            unused=self._drop_unused,
        )

    def _stored(self, written: ConversationLog) -> None:
        if self._failing:
            self._failing = False
            for conversation in list(self._loaded.values()):
                conversation.store_works()
        conversation = self._loaded.get(written.key)
        if conversation is not None:
            self._drop_unused(conversation)

    def _store_failed(self) -> None:
        self._failing = True
        for conversation in list(self._loaded.values()):
            conversation.store_failed()

    def _misfits(self, misfit: ConversationLog) -> None:
        conversation = self._loaded.get(misfit.key)
        if conversation is not None:
            conversation.store_failed()

    def _drop_unused(self, conversation: Conversation) -> None:
        key = conversation.log.key
        if conversation.unused and self._loaded.get(key) is conversation:
            del self._loaded[key]
            conversation.leave()
            if self._retention.seconds is not None:
                self._left.add(key)

    def _drop_fresh(self) -> None:
        """Drops what was loaded and then not used, as nothing else will."""
        fresh, self._fresh = self._fresh, set()
        for key in fresh:
            conversation = self._loaded.get(key)
            if conversation is not None:
                self._drop_unused(conversation)


def _trim(conversation: Conversation, through: int) -> None:
    """Drops all up to a number, unless messages that wait are among it."""
    log = conversation.log
    if log.oldest <= through < conversation.needed_from and not log.deleted:
        log.trim(through)


def _not_found() -> CommandError:
    return refusal("conversation_not_found", "There is no such conversation.")
