"""Which conversations are in memory, and how they come and go.

A conversation is loaded (`loading`) when somebody needs it and leaves memory when
nobody watches it, nothing runs in it and the store has all of it. There is never
more than one of a key. What retention takes is `sweep`'s business.
"""

from collections.abc import Generator
from contextlib import contextmanager

import anyio
import structlog
from msgspec import structs

from protocol.commands import Delete, Fork
from protocol.content import Config
from protocol.control import Reply
from wsserver.auth.principal import Principal
from wsserver.engine.conversation import ConversationState
from wsserver.log.committer import Committer
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.listeners import tell_all
from wsserver.log.reading import read_whole
from wsserver.log.store import Store, StoreError, space_of
from wsserver.log.waiting import until_kept
from wsserver.turns.admission import check_change, check_open, check_params
from wsserver.turns.applied import Applied
from wsserver.turns.conversation import Conversation
from wsserver.turns.deletions import Deletions
from wsserver.turns.errors import refusal, unknown_conversation
from wsserver.turns.forking import branch_off, fill
from wsserver.turns.loading import Loader
from wsserver.turns.retention import Retention
from wsserver.turns.services import Services
from wsserver.turns.stored_counts import StoredCounts

log = structlog.get_logger(__name__)

STOP_SECONDS = 1.0
"""How long a turn that is stopped by a drain may take to close its upstream."""


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
        self._loader = Loader(
            store,
            committer,
            services,
            retention or Retention(),
            unused=self._drop_unused,
        )
        self._counts = StoredCounts(store, committer, services.limits.stored)
        self._deletions = Deletions()
        self._loaded: dict[str, Conversation] = {}
        self._loading: dict[str, anyio.Event] = {}
        self._fresh: set[str] = set()  # loaded, and maybe not used since
        self._departures: list[set[str]] = []  # of those who watch for them
        committer.on_failure = self._store_failed
        committer.on_recovery = self._store_works
        committer.on_misfit = self._misfits
        committer.on_settled = self._settled

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
        await self._until_settled(key)
        found = self._loaded.get(key)
        if found is not None:
            return found
        with self._busy(key):
            meta = await self._store.meta(key)
            if meta is None:
                return None
            self._drop_fresh()
            conversation = await self._loader.load(key, meta)
            self._loaded[key] = conversation
            self._fresh.add(key)
            return conversation

    async def create(
        self, key: str, config: Config | None, principal: Principal
    ) -> tuple[Conversation, bool]:
        """Makes a conversation; if it was made meanwhile, returns that one.

        Returns:
            The conversation, and whether this call made it.

        Raises:
            CommandError: The settings are refused, the space has too many
                conversations, or the store is failing.
            StoreError: The store can't be read or written.
        """
        check_open(self._services)
        check_change(config or Config(), self._services)
        if config is not None:
            check_params(config, self._services)
        await self._counts.learn(space_of(key))
        found = await self.find(key)
        if found is not None:
            return found, False
        check_open(self._services)  # it may fail by now, and half made is not made
        self._counts.check_room(space_of(key))
        log.info("conversation_created", key=key, by=principal.name)
        made = self._made(key, ConversationState())
        if config is not None:
            made.configure("config", config)
        made.log.touch()
        return made, True

    async def fork(
        self, source: Conversation, command: Fork, name: str, principal: Principal
    ) -> Applied:
        """Copies a conversation's log up to the end of a turn into a new one.

        Args:
            source: The conversation.
            command: The fork, which may have been made before.
            name: What the new one is called if it was not.
            principal: Who wants it.

        Raises:
            CommandError: The turn has not ended, the new id is in use, or the space
                has too many conversations.
            StoreError: The store can't be read, or does not take it at the moment.
        """
        known = source.recall(command, principal)
        if known is not None:
            return await self._kept_fork(known, principal)
        check_open(self._services)
        key = principal.key(name)
        with source.held():
            await self._counts.learn(space_of(key))
            entries = await read_whole(source.log)
            waiting = [message.seq for message in source.state.queue]
            taken = await self.find(key) is not None
            # From here on nothing is awaited: the fork and its receipt are written as one.
            known = source.recall(command, principal)
            if known is not None:
                return await self._kept_fork(known, principal)
            if source.deleted:
                await self.until_deleted(source.log.key)
                raise unknown_conversation()
            if taken:
                raise refusal(
                    "bad_frame",
                    f"There is already a conversation {name!r}; choose another id.",
                    param="$.new",
                )
            branch = branch_off(source.log, entries, waiting, command.through, name)
            self._counts.check_room(space_of(key))
            made = self._made(key, branch.state)
            fill(made.log, branch, config=source.state.config)
            reply = Reply(re=command.id, ok=True, outcome="created", conversation=name)
            source.keep(command, principal, reply)
        return await self._kept_fork(Applied(reply=reply), principal)

    async def _kept_fork(self, applied: Applied, principal: Principal) -> Applied:
        """Waits until the store knows of the fork; its receipt is written with it."""
        assert applied.reply.conversation is not None, "it says what was made"
        made = self._loaded.get(principal.key(applied.reply.conversation))
        if made is not None:
            await until_kept(made.log)
        return applied

    async def delete(self, key: str, command: Delete, principal: Principal) -> Applied:
        """Removes a conversation from the store and stops what runs in it.

        The same command again leaves alone what has the name since.

        Raises:
            CommandError: There is none, or none of this epoch; or its id was used before.
            StoreError: The store can't be read, or does not do it at the moment.
        """
        reply = Reply(re=command.id, ok=True, outcome="deleted")
        if self._deletions.knows(key, principal.name, command):
            await self.until_deleted(key)
            return Applied(reply=structs.replace(reply, duplicate=True))
        found = await self.find(key)
        if found is None:
            raise unknown_conversation()
        if command.epoch not in (None, found.log.epoch):
            raise refusal(
                "bad_frame",
                "This is not the conversation that `epoch` belongs to: it was made anew"
                " under the name, or its log was broken off. Open it to see it, then"
                " delete it.",
                param="$.epoch",
            )
        if self._committer.stalled:
            raise StoreError(f"{key} can't be deleted now")
        self._leaves(key)
        found.delete()
        self._counts.gone(key)
        self._services.tasks.start_soon(self._tell_gone, found)
        self._deletions.add(key, principal.name, command)
        await self._committer.delete(key)
        log.info("conversation_deleted", key=key, by=principal.name)
        return Applied(reply=reply)

    async def until_deleted(self, key: str) -> None:
        """Waits until the store has let go what was deleted.

        Nobody is told that it is gone before: a crash would bring it back.

        Raises:
            StoreError: The store does not do it at the moment.
        """
        await self._committer.until_deleted(key)

    async def _tell_gone(self, deleted: Conversation) -> None:
        await self._committer.until_gone(deleted.log.key)
        deleted.log.go()

    async def _until_settled(self, key: str) -> None:
        """Waits while a key is looked for, or the store has yet to let it go.

        Raises:
            StoreError: It does not let it go at the moment.
        """
        while True:
            if key in self._loading:
                await self._loading[key].wait()
            elif key in self._loaded or not self._committer.deletes(key):
                return
            else:
                await self.until_deleted(key)

    def discard(self, key: str) -> None:
        """Lets a stored conversation go that is not in memory."""
        self._counts.gone(key)
        self._committer.discard(key)

    async def recover(self) -> int:
        """Ends what a crash cut off; returns how many turns that were.

        A conversation that can't be loaded is left to whoever opens it.

        Raises:
            StoreError: The store can't be read.
        """
        before = self._loader.cut_off
        for key in await self._store.live():
            try:
                await self.find(key)
            except StoreError:
                raise
            except Exception:
                # The boundary of a conversation: the server serves all others.
                log.exception("conversation_not_recovered", key=key)
        return self._loader.cut_off - before

    async def drain(self, seconds: float) -> None:
        """Lets running turns end for a while, then ends the rest.

        Returns when no turn runs; new ones are refused from now on.
        """
        self._services.draining = True
        with anyio.move_on_after(seconds):
            await self._services.running.until_none()
        for conversation in self.in_memory():
            conversation.shut_down()
        with anyio.move_on_after(STOP_SECONDS):
            await self._services.running.until_none()

    def statistics(self) -> tuple[int, int]:
        """Returns how many conversations are in memory and how many turns run."""
        return len(self._loaded), self._services.running.total

    def in_memory(self) -> list[Conversation]:
        """Returns the conversations that are in memory now."""
        return list(self._loaded.values())

    def uses(self, key: str) -> bool:
        """Returns whether a conversation is in memory, or about to be."""
        return key in self._loaded or key in self._loading

    @contextmanager
    def departures(self) -> Generator[set[str]]:
        """Collects the keys of conversations that leave memory or are deleted meanwhile."""
        left = self._committer.going
        self._departures.append(left)
        try:
            yield left
        finally:
            # By identity: equal sets may be collected at the same time.
            self._departures = [each for each in self._departures if each is not left]

    def _made(self, key: str, state: ConversationState) -> Conversation:
        made = self._loaded[key] = self._loader.new(key, state)
        self._counts.made(key)
        return made

    @contextmanager
    def _busy(self, key: str) -> Generator[None]:
        """Lets others that look for the same key wait."""
        self._loading[key] = anyio.Event()
        try:
            yield
        finally:
            self._loading.pop(key).set()

    def _settled(self, written: ConversationLog) -> None:
        self._drop_unused(written.key)

    def _store_works(self) -> None:
        tell_all(conversation.store_works for conversation in self.in_memory())

    def _store_failed(self) -> None:
        tell_all(conversation.store_failed for conversation in self.in_memory())

    def _misfits(self, misfit: ConversationLog) -> None:
        conversation = self._loaded.get(misfit.key)
        if conversation is not None:
            conversation.store_failed()

    def _drop_unused(self, key: str) -> None:
        conversation = self._loaded.get(key)
        if conversation is not None and conversation.unused:
            self._leaves(key)
            conversation.leave()

    def _leaves(self, key: str) -> None:
        del self._loaded[key]
        for left in self._departures:
            left.add(key)

    def _drop_fresh(self) -> None:
        """Drops what was loaded and then not used, as nothing else will."""
        fresh, self._fresh = self._fresh, set()
        for key in fresh:
            self._drop_unused(key)
