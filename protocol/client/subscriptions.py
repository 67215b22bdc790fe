"""The conversations that a client has open, over all its connections.

It sends the opens, takes their verdicts, and lets through what fits: every
event once, in order. One conversation's cursor is `protocol.client.subscription`.
"""

from collections.abc import Callable

from msgspec.structs import replace

from protocol.backoff import Backoff
from protocol.client.events import Cursor, DropConnection, Lost, Replied, Reset
from protocol.client.output import Output
from protocol.client.subscription import Subscription
from protocol.commands import Close, Open
from protocol.content import ErrorBody
from protocol.control import CaughtUp, ErrorFrame, Reply
from protocol.events import LogEvent

MOST_MISSES = 3
"""How often a gap is asked for before the connection is given up."""

_DELETED = (
    "The server no longer has this conversation: it was deleted, or the server's store"
    " was."
)
"""For people; the server's own words are for who writes a client."""

_LET_GO = ErrorBody(
    code="conversation_not_found",
    message="the conversation was closed before it was open",
    retryable=False,
)


class Subscriptions:
    """Opens by conversation, and by the id of the frame whose verdict is due."""

    def __init__(
        self,
        output: Output,
        *,
        new_id: Callable[[], str],
        new_epoch: Callable[[str], None],
        over: Callable[[str, ErrorBody], None],
        deletes: Callable[[str], bool],
        backoff: Backoff,
    ) -> None:
        """Starts with none.

        Args:
            output: Where frames and events go.
            new_id: Makes the id of an open that nobody asked for.
            new_epoch: Told of a conversation whose old calls and numbers are void.
            over: Told of a conversation that somebody else deleted, and why nothing
                comes of what is held for it.
            deletes: Whether a `delete` of a conversation was not replied to: what is
                opened meanwhile is the next one of that name.
            backoff: Waits before what the server could not open is tried again.
        """
        self._output = output
        self._new_id = new_id
        self._new_epoch = new_epoch
        self._over = over
        self._deletes = deletes
        self._backoff = backoff
        self._online = False
        self._by_conversation: dict[str, Subscription] = {}
        self._by_opening: dict[str, Subscription] = {}
        self._held_by_server: set[str] = set()  # what it opened on this connection

    def cursor(self, conversation: str) -> Cursor | None:
        """The position in a conversation; None where there is none (yet)."""
        subscription = self._by_conversation.get(conversation)
        return subscription.cursor if subscription else None

    def wanted(self, conversation: str) -> bool:
        """Says whether a conversation is open, or shall be."""
        return conversation in self._by_conversation

    def attached(self, conversation: str) -> bool:
        """Says whether the verdict came: what comes of a conversation is of that open."""
        subscription = self._by_conversation.get(conversation)
        return subscription is not None and subscription.attached

    def want(self, wanted: Open) -> None:
        """Opens a conversation, or goes on with an open one under new members."""
        assert wanted.conversation is not None, "every open is given a name"
        subscription = self._by_conversation.get(wanted.conversation)
        if subscription is None:
            subscription = Subscription(wanted)
            self._by_conversation[wanted.conversation] = subscription
        else:
            subscription.change(wanted)
        self._attach(subscription)

    def drop(self, conversation: str) -> None:
        """Lets a conversation go; what still arrives of it is void."""
        subscription = self._by_conversation.get(conversation)
        if subscription is not None and subscription.requests:
            self._give_up(subscription, _LET_GO)
        self._by_conversation.pop(conversation, None)

    def gone(self, conversation: str, said: ErrorFrame) -> None:
        """Somebody else deleted a conversation: lets it go, and says why.

        One that is opened and had no verdict yet is the next of that name.
        """
        error = ErrorBody(code=said.code, message=said.message, retryable=False)
        subscription = self._by_conversation.get(conversation)
        if subscription is not None:
            if subscription.cursor is None:
                return
            self._give_up(subscription, error)
        self._over(conversation, error)

    def deleted(self, conversation: str) -> None:
        """A `delete` was replied to: opens what was to be opened after it."""
        subscription = self._by_conversation.get(conversation)
        if subscription is not None and not subscription.attached:
            self._attach(subscription)

    def take(self, event: LogEvent) -> bool:
        """Says whether an event is the next one; opens again where one is missing."""
        subscription = self._by_conversation.get(event.conversation)
        if subscription is None or not subscription.attached:
            return False
        placing = subscription.place(event)
        if placing == "gap":
            self._attach_again(subscription)
        return placing == "fits"

    def caught_up(self, frame: CaughtUp) -> bool:
        """Says whether a replay is complete; opens again where it is not."""
        subscription = self._by_conversation.get(frame.conversation)
        if subscription is None or not subscription.attached:
            return False
        if subscription.short_of(frame.seq):
            self._attach_again(subscription)
            return False
        return True

    def compare(self, heads: dict[str, int]) -> None:
        """Looks in a heartbeat for events that were lost on the way."""
        for conversation, head in heads.items():
            subscription = self._by_conversation.get(conversation)
            if subscription is not None and subscription.stuck_below(head):
                self._attach_again(subscription)

    def verdict(self, reply: Reply, now: float) -> bool:
        """Takes a reply, if it is an open's; of several opens the last counts."""
        subscription = self._by_opening.pop(reply.re, None)
        if subscription is None:
            return False
        if reply.error is None:
            self._held_by_server.add(subscription.conversation)
        current = self._by_conversation.get(subscription.conversation)
        if subscription is not current or subscription.wire_id != reply.re:
            return True
        if reply.error is None:
            self._attached(subscription, reply)
        else:
            self._refused(subscription, reply.error, now)
        return True

    def online(self) -> None:
        """A connection is there: opens everything again."""
        self._online = True
        for subscription in tuple(self._by_conversation.values()):
            self._attach(subscription)

    def offline(self) -> None:
        """The connection is gone."""
        self._online = False
        self._by_opening.clear()
        self._held_by_server.clear()
        for subscription in self._by_conversation.values():
            subscription.detach()

    def next_timer(self) -> float | None:
        """When `timer` must be called at the latest; None for never."""
        return min(
            (
                subscription.retry_at
                for subscription in self._by_conversation.values()
                if subscription.retry_at is not None
            ),
            default=None,
        )

    def timer(self, now: float) -> None:
        """Opens again what the server could not open a while ago."""
        for subscription in tuple(self._by_conversation.values()):
            if subscription.retry_at is not None and subscription.retry_at <= now:
                self._attach(subscription)

    def _attach(self, subscription: Subscription) -> None:
        if not self._online or self._deletes(subscription.conversation):
            return
        opening = subscription.opening(self._new_id())
        error = self._output.write(opening)
        if error is None:
            self._by_opening[opening.id] = subscription
        else:
            self._leave(subscription.conversation)
            self._give_up(subscription, error)

    def _attach_again(self, subscription: Subscription) -> None:
        subscription.misses += 1
        if subscription.misses <= MOST_MISSES:
            self._attach(subscription)
        else:
            subscription.attached = False
            self._output.emit(DropConnection(why="gap"))

    def _attached(self, subscription: Subscription, reply: Reply) -> None:
        self._backoff.reset()
        reason = subscription.attach(reply)
        for request in subscription.take_requests():
            self._reply(request, replace(reply, re=request.id))
        if reason == "epoch_changed":
            self._new_epoch(subscription.conversation)
        cursor = subscription.cursor
        if reason is not None and cursor is not None:
            self._output.emit(Reset(cursor=cursor, reason=reason))

    def _refused(
        self, subscription: Subscription, error: ErrorBody, now: float
    ) -> None:
        if error.code == "draining":
            return
        too_fast = error.code == "rate_limited"
        if too_fast or (error.retryable and not subscription.requests):
            at_least_seconds = (error.retry_after_ms or 0) / 1000
            subscription.retry_at = now + self._backoff.delay_seconds(at_least_seconds)
        elif error.code == "conversation_not_found" and subscription.resumes:
            error = replace(error, message=_DELETED)
            self._give_up(subscription, error)
            self._over(subscription.conversation, error)
        else:
            self._leave(subscription.conversation)
            self._give_up(subscription, error)

    def _leave(self, conversation: str) -> None:
        """Closes what the server still has open, as it was before a refused open.

        Nothing of it is taken any more; a call is to be asked of somebody else.
        """
        if conversation in self._held_by_server:
            self._held_by_server.discard(conversation)
            self._output.write(Close(id=self._new_id(), conversation=conversation))

    def _give_up(self, subscription: Subscription, error: ErrorBody) -> None:
        del self._by_conversation[subscription.conversation]
        requests = subscription.take_requests()
        for request in requests:
            self._reply(request, Reply(re=request.id, ok=False, error=error))
        if not requests:
            self._output.emit(Lost(conversation=subscription.conversation, error=error))

    def _reply(self, request: Open, reply: Reply) -> None:
        self._output.emit(Replied(command=request, reply=reply))
