"""Group commit: everything that came in since the last commit is written as one.

All but the text that a store takes at once. One task owns all other writing, so a
log's entries reach the store in order and the wait for "stored before seen" is one
write, whatever the load.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, islice
from typing import Protocol

import anyio
import anyio.lowlevel
import structlog

from wsserver.foreign_code import stops
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.listeners import tell_all
from wsserver.log.store import MisfitError, Store, StoreError, Write
from wsserver.log.wakeup import Wakeup

log = structlog.get_logger(__name__)

LAZY_SECONDS = 0.25
"""Between commits to a store that is not durable: nobody waits for them."""

LAZY_LOGS = 16
"""How many logs go into one of those: the event loop does nothing else meanwhile."""

HURRY_SECONDS = 0.002
"""Between commits that somebody waits for. One that takes longer than half of that is
given twice what it takes, so that as much time is left for others; at most the interval."""

STALL_SECONDS = 1.0
"""A commit that takes longer is not waited for by whoever can be told meanwhile."""

RETRY_FIRST_SECONDS = 0.05
RETRY_MOST_SECONDS = 2.0


class CommitMetrics(Protocol):
    """Where commits are counted."""

    def commit(self, seconds: float, entries: int) -> None:
        """Counts a commit: how long it took, and how many entries were in it."""
        ...

    def commit_failed(self) -> None:
        """Counts a commit that failed and will be tried again."""
        ...


class Committer:
    """Writes what logs have appended.

    Attributes:
        failing: Whether the last commit failed; it is tried again until it
            succeeds, and nothing that was appended is lost meanwhile.
        on_failure: Called after each commit that failed.
        on_recovery: Called after the first one that did not.
        on_misfit: Called with a log that can't be written, as it does not follow on what
            is stored or has a defect: it stays as it is, and holds up no other.
        on_settled: Called with each log that a commit has written, unless a turn runs
            in it or is to come and there is more to write.
    """

    def __init__(
        self,
        store: Store,
        *,
        interval_seconds: float,
        wall: Callable[[], float],
        metrics: CommitMetrics,
    ) -> None:
        self.failing = False
        self._store = store
        lazy = 0.0 if store.durable else LAZY_SECONDS
        self._interval = max(interval_seconds, lazy)
        self._most = sys.maxsize if store.durable else LAZY_LOGS
        self._wall = wall
        self._metrics = metrics
        self._due: dict[str, ConversationLog] = {}
        self._deletes: set[str] = set()
        self._deleting: set[str] = set()  # in the commit under way
        self._work = Wakeup()  # something is due
        self._round = Wakeup()  # the commit under way has ended
        self._busy = False
        self._under_way: Iterable[ConversationLog] = ()  # what that commit writes
        self._began_at = 0.0  # the commit under way
        self._began = Wakeup()  # a commit begins
        self._overdue = False  # whether the commit under way takes too long
        self._urgent = False  # whether somebody waits for the next commit
        self._resting: anyio.CancelScope | None = None
        self._flushing = 0
        self.on_failure: Callable[[], None] = lambda: None
        self.on_recovery: Callable[[], None] = lambda: None
        self.on_misfit: Callable[[ConversationLog], None] = lambda _: None
        self.on_settled: Callable[[ConversationLog], None] = lambda _: None

    def mark(self, conversation: ConversationLog) -> None:
        """Takes note that a log has something to write."""
        if conversation.deleted:
            return
        due = self._due.setdefault(conversation.key, conversation)
        assert due is conversation, "one log of a key at a time has something to write"
        if self.stalled:
            conversation.stall()
        self._work.give()

    def hurry(self) -> None:
        """Lets the next commit be soon: somebody waits for it."""
        self._urgent = True
        if self._resting is not None:
            self._resting.cancel()

    def discard(self, key: str) -> None:
        """Lets a conversation go from the store."""
        self._due.pop(key, None)
        self._deletes.add(key)
        self._work.give()

    async def delete(self, key: str) -> None:
        """Removes a conversation from the store; returns when it is gone.

        It will go even if the caller is cancelled or told that it takes long.

        Raises:
            StoreError: The store does not do it at the moment.
        """
        self.discard(key)
        await self.until_deleted(key)

    async def until_deleted(self, key: str) -> None:
        """Waits until a conversation that was let go is gone.

        Raises:
            StoreError: The store does not do it at the moment.
        """
        self.hurry()
        while self.deletes(key):
            if self.stalled:
                raise StoreError(f"{key} is not deleted yet")
            await self._round.wait()

    async def until_gone(self, key: str) -> None:
        """Waits until a conversation that was let go is gone, however long it takes."""
        self.hurry()
        while self.deletes(key):
            await self._round.wait()

    @property
    def stalled(self) -> bool:
        """Whether the last commit failed, or the one under way takes too long."""
        return self.failing or self._overdue

    def deletes(self, key: str) -> bool:
        """Whether what the store has under a key is about to go."""
        return key in self._deletes or key in self._deleting

    @property
    def going(self) -> set[str]:
        """The keys of all that is about to go from the store."""
        return self._deletes | self._deleting

    async def flush(self) -> None:
        """Waits until the store has everything that was appended so far."""
        self._flushing += 1
        self.hurry()
        try:
            while self._due or self._deletes or self._busy:
                await self._round.wait()
        finally:
            self._flushing -= 1

    async def run(self) -> None:
        """Commits for ever; cancel it after `flush`."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            await self._go_on()

    async def _go_on(self) -> None:
        delay = RETRY_FIRST_SECONDS
        left = 0  # of the logs that were due at the last rest
        while True:
            if not (self._due or self._deletes):
                await self._work.wait()
            began = anyio.current_time()
            self._urgent = self._flushing > 0
            left = min(left, len(self._due)) or len(self._due)
            if await self._commit(began):
                delay = RETRY_FIRST_SECONDS
                left = max(0, left - self._most)
                if left:
                    await anyio.lowlevel.checkpoint()
                else:
                    await self._rest(began)
            else:
                await anyio.sleep(delay)
                delay = min(2 * delay, RETRY_MOST_SECONDS)

    async def _rest(self, began: float) -> None:
        """Lets some more come in, but little if somebody waits for the next commit."""
        took = anyio.current_time() - began
        if took < self._interval and not self._urgent:
            with anyio.CancelScope() as self._resting:
                await anyio.sleep(self._interval - took)
            self._resting = None
        if self._urgent:
            soon = min(max(HURRY_SECONDS, 2 * took), self._interval)
            await anyio.sleep_until(began + soon)

    async def _watch(self) -> None:
        """Tells who waits when a commit takes too long."""
        while True:
            if not self._busy:
                await self._began.wait()
            late_at = self._began_at + STALL_SECONDS
            await anyio.sleep_until(late_at)
            if self._busy and self._began_at + STALL_SECONDS <= late_at:
                self._overdue = True
                self._stall(chain(self._under_way, self._due.values()))
                await self._round.wait()

    def _stall(self, logs: Iterable[ConversationLog]) -> None:
        for conversation in list(logs):
            conversation.stall()
        self._round.give()

    def _take(self) -> dict[str, ConversationLog]:
        """Takes what a commit writes: first what has been due for longest."""
        if len(self._due) <= self._most:
            logs, self._due = self._due, {}
            return logs
        return {key: self._due.pop(key) for key in list(islice(self._due, self._most))}

    async def _commit(self, began: float) -> bool:
        """Writes what is due, or nothing; says which."""
        logs = self._take()
        self._deleting, self._deletes = self._deletes, set()
        self._busy, self._began_at = True, began
        self._under_way = logs.values()
        self._began.give()
        pairs = self._take_writes(logs)
        writes = [write for _, write in pairs]
        writes += [Write(key=key, delete=True) for key in self._deleting]
        try:
            with anyio.CancelScope(shield=True):
                await self._store.commit(writes, self._wall())
        except StoreError as error:
            if isinstance(error, MisfitError) and error.key in logs:
                self._set_right(logs, error)
                return True
            self._failed(logs, error)
            return False
        except BaseException as defect:
            # The boundary around stores, which may be anybody's code.
            self._failed(logs, defect)
            if not stops(defect):
                raise  # whoever runs this again finds all that is due
            log.exception("store_defective")
            return False
        finally:
            was_overdue, self._overdue = self._overdue, False
            self._busy = False
            self._under_way = ()
            self._round.give()
        if self.failing or was_overdue:
            for conversation in self._due.values():
                conversation.stalled = False
        entries = self._succeeded(pairs)
        self._metrics.commit(anyio.current_time() - began, entries)
        return True

    def _take_writes(
        self, logs: dict[str, ConversationLog]
    ) -> list[tuple[ConversationLog, Write]]:
        """Asks logs for their writes; takes out those that have none to give."""
        pairs: list[tuple[ConversationLog, Write]] = []
        for conversation in list(logs.values()):
            try:
                pairs.append((conversation, conversation.take_write()))
            except Exception:
                # The boundary of a log: the others are written.
                log.exception("log_defective", key=conversation.key)
                del logs[conversation.key]
                self._set_aside(conversation)
        return pairs

    def _set_aside(self, conversation: ConversationLog) -> None:
        """Lets a log be as it is until there is more to write."""
        conversation.stall()
        tell_all([partial(self.on_misfit, conversation)])

    def _take_back(self, logs: dict[str, ConversationLog]) -> None:
        """Takes note that nothing was written: all of it stays due."""
        for key, conversation in logs.items():
            if not conversation.deleted:
                conversation.not_committed()
                self._due[key] = conversation
        self._deletes |= self._deleting
        self._deleting = set()
        self._metrics.commit_failed()

    def _set_right(self, logs: dict[str, ConversationLog], error: MisfitError) -> None:
        """Takes what does not fit out of the next commit, and nothing else."""
        log.error("write_does_not_fit", key=error.key, error=str(error))
        self._take_back(logs)
        self._works()
        self.hurry()  # who waited for this commit waits for the next
        misfit = logs[error.key]
        if error.compaction:
            misfit.leave_uncompacted()
        elif self._due.get(error.key) is misfit:  # not deleted since
            del self._due[error.key]
            self._set_aside(misfit)

    def _failed(self, logs: dict[str, ConversationLog], error: BaseException) -> None:
        self._take_back(logs)
        if not self.failing:
            log.warning("store_failing", error=str(error))
        self.failing = True
        self._stall(self._due.values())
        tell_all([self.on_failure])

    def _works(self) -> None:
        """Takes note that the store has judged what it was given."""
        if self.failing:
            log.warning("store_works_again")
            self.failing = False
            tell_all([self.on_recovery])

    def _succeeded(self, pairs: list[tuple[ConversationLog, Write]]) -> int:
        """Lets all know; returns how many entries were stored since the last time."""
        self._works()
        self._deleting = set()
        entries = 0
        for conversation, write in pairs:
            try:
                entries += conversation.committed(write)
                settled = conversation.clean or not (write.meta and write.meta.live)
            except Exception:
                # The boundary of a log: the store has it, and the others too.
                log.exception("log_defective", key=conversation.key)
            else:
                if settled:
                    tell_all([partial(self.on_settled, conversation)])
        return entries
