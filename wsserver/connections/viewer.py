"""One conversation that a connection has open: a cursor into its log.

A view holds a position and the client's options, never a queue of frames. It is
the `Viewer` that the conversation knows, and what the writer takes events from.
"""

from collections.abc import Callable

from msgspec import Struct

from protocol.codec import encode
from protocol.control import CaughtUp, ToolRequest, Waiting
from protocol.ids import MAX_SEQ
from wsserver.connections.gates import Gates, Held
from wsserver.connections.gathering import Gathering
from wsserver.connections.lens import Lens
from wsserver.connections.window import Window
from wsserver.log.conversation_log import ConversationLog
from wsserver.log.entry import Entry
from wsserver.log.tail import ALL_BYTES
from wsserver.turns.alarms import Alarm, Alarms

BLOCK_BYTES = 65_536
"""How much is fetched at once from the store."""


class ViewOptions(Struct, frozen=True, kw_only=True):
    """What the client asked for in `open`.

    Attributes:
        handles: Names of the tools that it would run.
        frames: Never to join what it has not had yet.
        tool_deltas: To be sent `tool_delta` events.
        window_bytes: How much may be unacknowledged; None for no limit.
        max_delay_seconds: How long text may be gathered, and is then cut between
            characters only; None to send it as it comes.
    """

    handles: frozenset[str] = frozenset()
    frames: bool = False
    tool_deltas: bool = False
    window_bytes: int | None = None
    max_delay_seconds: float | None = None


class View:
    """One connection's view of one conversation.

    Attributes:
        connection: The connection's id.
        handles: Names of the tools the connection runs; see `let_run`.
        log: The conversation's log.
        position: The cursor: everything up to it was handed to the transport, or
            trimmed before it could be.
        ready: Whether it stands in the writer's ring.
        debt: How many bytes it has sent beyond its turns.
        starved: Whether what comes next has to be fetched from the store.
        closed: Whether the client closed it or opened it anew.
    """

    __slots__ = (
        "_alarm", "_begun", "_block", "_block_used", "_caught_up_at", "_cut_by",
        "_flush_through", "_gates", "_gathering", "_lacks_after", "_lens", "_muted_from",
        "_now", "_offers", "_on_deleted", "_on_starved", "_on_wake", "_push", "_window",
        "closed", "connection", "debt", "handles", "log", "position", "ready", "starved",
    )  # fmt: skip

    def __init__(
        self,
        *,
        connection: str,
        log: ConversationLog,
        after: int,
        options: ViewOptions,
        gates: Gates,
        push: Callable[[bytes], None],
        alarms: Alarms,
        on_wake: Callable[["View"], None],
        on_starved: Callable[["View"], None],
        on_deleted: Callable[["View"], None],
    ) -> None:
        """Makes a view that sends what comes after the number `after`.

        Args:
            connection: See the attributes.
            log: See the attributes.
            after: Where the cursor stands at first.
            options: What the client asked for.
            gates: Where frames wait for the store.
            push: Takes a control frame.
            alarms: Tells when something is due.
            on_wake: Told when the view may have something to send; it then
                stands in the ring (`ready`).
            on_starved: Told when the next entries are not in memory; it calls
                `fetched` later.
            on_deleted: Told that the log is gone.
        """
        self.connection = connection
        self.handles: frozenset[str] = frozenset()
        self.log = log
        self.position = after
        self.ready = False
        self.debt = 0
        self.starved = False
        self.closed = False
        self._caught_up_at: int | None = log.stored  # where a replay ends; None: live
        self._begun: list[Entry] = []  # a block that goes on in what is fetched next
        self._block: list[Entry] = []  # entries that came from the store
        self._block_used: Callable[[], None] | None = None
        self._lacks_after = 0  # the store gave nothing after this number
        self._lens = Lens(
            b'"%b"' % log.conversation.encode(),  # ids hold nothing to be escaped
            frames=options.frames,
            tool_deltas=options.tool_deltas,
        )
        self._window = (
            None if options.window_bytes is None else Window(options.window_bytes)
        )
        self._offers = options.handles
        self._now = alarms.now
        self._gathering: Gathering | None = None
        self._alarm: Alarm | None = None
        if options.max_delay_seconds is not None:
            self._gathering = Gathering(
                log, self._lens, options.max_delay_seconds, alarms.now()
            )
            self._alarm = Alarm(alarms, self._wake)
        self._flush_through = 0  # a reply waits until this was sent; 0 for none
        # The last cut for which text is left out is stored with number `_cut_by`; the
        # turns of those that are not begin at `_muted_from`.
        self._cut_by = self._muted_from = 0
        self._gates = gates
        self._push = push
        self._on_wake = on_wake
        self._on_starved = on_starved
        self._on_deleted = on_deleted

    @property
    def wake(self) -> Callable[[], None]:
        """What the log calls; the same for the life of the view."""
        return self._wake if self._gathering is None else self._grew

    # What the conversation calls

    def sent_through(self) -> int:
        """Returns the last number that was sent on this connection."""
        return self.position

    def mute(self, turn: int) -> None:
        """From now on sends no text of that turn; its numbers go out as `skip`.

        They do once the log's cut is stored: a crash that takes the cut back must not
        leave a client beyond text that it was not sent.
        """
        muted = self._lens.muted
        pending = self.log.stored < self._cut_by  # a cut before
        self._muted_from = min(turn, self._muted_from) if pending else turn
        self._cut_by = self.log.head
        if turn <= self.position:  # turns do not overlap: those before it are behind us
            muted.difference_update([before for before in muted if before < turn])
        muted.add(turn)

    def request_tool(self, request: ToolRequest) -> None:
        """Asks this connection to run a tool, once the store has the call."""
        log = self.log
        held = Held(frame=encode(request), changes=log.changes, view=self)
        self._gates.hold(log, held)

    def show_waiting(self, frame: Waiting) -> None:
        """Tells this connection that the turn has no token yet."""
        self._push(encode(frame))

    # What the client's commands call

    def let_run(self, allowed: bool) -> bool:
        """Lets the connection run its tools, or not; returns whether that is new."""
        before = self.handles
        self.handles = self._offers if allowed else frozenset()
        return self.handles != before

    def flush(self, through: int) -> None:
        """Sends what comes up to `through`, then lets go the reply that waits for it.

        No window holds it up.
        """
        self._flush_through = max(self._flush_through, through)
        self._wake()

    def ack(self, seq: int) -> None:
        """Takes note that the client has taken everything up to `seq`."""
        if self._window is not None:
            self._window.ack(seq)
            self._wake()

    def close(self) -> None:
        """Sends nothing any more; what waited for it to be sent waits no longer."""
        self.closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._drop_block()
        self.log.unsubscribe(self.wake)
        self._gates.sent(self.log)

    # What the writer calls

    def take(self, max_bytes: int, out: list[bytes]) -> int:
        """Appends frames to `out`, moves the cursor, returns the frames' bytes.

        The caller hands `out` to the transport before anything else can run.
        Goes over `max_bytes` by less than a frame.
        """
        if self.log.gone and not self.closed:
            self._on_deleted(self)
        if self.closed or self.starved or self.log.deleted:
            return 0
        through, window = self._flush_through, self._window
        if self.position >= through:
            through = MAX_SEQ
            if window is not None:
                if window.room <= 0:
                    return 0
                max_bytes = min(max_bytes, window.room)
            if self._gathering is not None:
                through = self._allowed(self._gathering, max_bytes)
                max_bytes = ALL_BYTES
        if self._caught_up_at is None:
            size = self._send(through, max_bytes, out)
        else:
            size = self._replay(self._caught_up_at, through, max_bytes, out)
        if window is not None and size:
            self._fill(window, size)
        if self._flush_through:
            self._let_go()
        return size

    @property
    def due(self) -> bool:
        """Whether the next `take` may give something."""
        if self.closed or self.starved:
            return False
        through = self.log.stored
        if through < self._cut_by:
            through = min(through, self._muted_from)
        if self.position >= through and self._caught_up_at is None:
            return False
        window = self._window
        return window is None or window.room > 0 or self.position < self._flush_through

    @property
    def block_bytes(self) -> int:
        """How much it would send at once of what is fetched for it."""
        window = self._window
        flushing = self.position < self._flush_through
        if window is None or flushing or self._gathering is not None:
            return BLOCK_BYTES  # who gathers sees by what follows where to cut
        return min(BLOCK_BYTES, window.room)

    @property
    def fetch_after(self) -> int:
        """The number after which `starved` asks for more."""
        return self._begun[-1].seq if self._begun else self.position

    def fetched(self, entries: list[Entry], used: Callable[[], None]) -> None:
        """Takes what `starved` asked for: entries after `fetch_after`.

        Args:
            entries: Empty where all of it was trimmed, or the view or its log is gone.
            used: Called when they were sent or are not wanted any more.
        """
        self.starved = False
        begun, self._begun = self._begun, []
        if begun and not entries:
            self._lacks_after = begun[-1].seq
        entries = [e for e in [*begun, *entries] if e.seq > self.position]
        if self.closed or not entries:
            used()
            if not self.closed:
                self._pass_over_trimmed()
            return
        self._block, self._block_used = entries, used
        self._wake()

    def _before_cut(self, through: int) -> int:
        """Returns up to which number may be sent while a cut is not stored."""
        through = min(through, self._muted_from)
        if self.position >= through:
            self._drop_block()  # others may be waiting for theirs
        return through

    def _fill(self, window: Window, size: int) -> None:
        window.sent(self.position, size)
        if window.room <= 0:
            self._drop_block()  # others may be waiting for theirs

    def _let_go(self) -> None:
        """Lets a reply go that waits for something to be sent, if it was."""
        if self.position >= self._flush_through:
            self._flush_through = 0
            self._gates.sent(self.log)

    def _drop_block(self) -> None:
        used, self._block, self._block_used = self._block_used, [], None
        if used is not None:
            used()

    def _grew(self) -> None:
        """Wakes a view that gathers, when something may be sent."""
        assert self._gathering is not None, "others are woken by `_wake`"
        if self._gathering.arrived(self._now()) or self.log.deleted:
            self._wake()

    def _allowed(self, gathering: Gathering, max_bytes: int) -> int:
        """Returns up to which number may be sent; finds out if that is `starved`."""
        position, now = self.position, self._now()
        through = gathering.through(position, self._block, max_bytes, now)
        begun = self._block
        if through is None and begun and begun[-1].seq == self._lacks_after:
            through = self._lacks_after  # a hole follows, which shows when this is sent
        if through is None or gathering.holding:
            self._drop_block()
        if through is None:
            self._begun = begun
            self._starve()
            return position
        head = self._caught_up_at
        if head is not None:  # what is sent is not cut there; what is held is live
            self._caught_up_at = position if gathering.holding else max(head, through)
        if gathering.holding and self._alarm is not None:
            self._alarm.set(gathering.look_at)
        return through

    def _wake(self) -> None:
        if not self.ready:
            self.ready = True
            self._on_wake(self)

    def _starve(self) -> None:
        self.starved = True
        self._on_starved(self)

    def _pass_over_trimmed(self) -> None:
        """Moves behind what was trimmed before it was sent, if something was.

        Where nothing follows, the `caught_up` tells the client that it has a hole.
        """
        trimmed = self.log.oldest - 1
        if self.position < trimmed:
            self.position = self._caught_up_at = trimmed
            self._wake()

    def _replay(self, head: int, through: int, max_bytes: int, out: list[bytes]) -> int:
        size = 0
        if self.position < head:
            size = self._send(min(head, through), max_bytes, out)
        if self.position >= head:
            self._caught_up_at = None
            out.append(
                encode(CaughtUp(conversation=self.log.conversation, seq=self.position))
            )
        return size

    def _send(self, through: int, max_bytes: int, out: list[bytes]) -> int:
        position = self.position
        if self.log.stored < self._cut_by:
            through = self._before_cut(through)
        if through <= position:
            return 0
        entries = self._block or self.log.read(position, max_bytes)
        if not entries:
            if entries is None:
                self._starve()
            else:
                self._pass_over_trimmed()
            return 0
        # Where the log was trimmed beyond a cursor that lags, what comes next does not
        # fit: that tells the client to open again.
        if entries[0].first > through:
            through = entries[0].first
        self.position, size = self._lens.show(
            entries, position, through, max_bytes, out
        )
        if self._block:
            self._block = [entry for entry in entries if entry.seq > self.position]
            if not self._block:
                self._drop_block()
        return size
