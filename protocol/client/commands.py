"""The commands a client can give: each becomes a frame with an id of its own.

Building frames only; `protocol.client.machine` decides when they travel.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

from msgspec import UNSET, UnsetType

from protocol.client.events import Cursor
from protocol.commands import (
    Close,
    Command,
    Configure,
    Delete,
    Fork,
    Interrupt,
    Keep,
    Open,
    Policy,
    Refresh,
    Send,
    ToolFault,
    ToolResult,
)
from protocol.content import Config, Content

AnyCommand = TypeVar("AnyCommand", bound=Command)


class Commands(ABC):
    """Gives commands; every method but `again` returns a frame whose `id` is new.

    The same id travels again after a reconnect until the reply is there, which
    comes as a `Replied` with the same `command`.

    Raises:
        FrameError: From every method: it holds what JSON can't carry.
        ClientStateError: From every method: the client has stopped.
    """

    def __init__(self, *, prefix: str) -> None:
        """Takes a prefix that no other client of the principal uses.

        Args:
            prefix: 1 to 100 characters of an id, random enough to be unique.
        """
        self._prefix = prefix
        self._count = 0

    def open(
        self,
        conversation: str | None = None,
        *,
        cursor: Cursor | None = None,
        create: bool = True,
        config: Config | None = None,
        handles: Iterable[str] = (),
        view: Literal["merged", "frames"] = "merged",
        include: Iterable[Literal["tool_delta"]] = (),
        window_bytes: int | None = None,
        max_delay_ms: int | None = None,
    ) -> Open:
        """Opens a conversation, now and again on every new connection.

        One that is open already goes on from where it is, with these members.

        Args:
            conversation: None takes a name that is made here, so that the open
                can be sent again without making a second conversation.
            cursor: Where to go on, from an earlier client; None begins at the
                oldest event.
            create: False opens only what the server has; with a cursor that is so
                in any case. What it does not have is replied to with
                `conversation_not_found`.
            config: For a conversation that is new.
            handles: Tools whose requests this client wants.
            view: As in `Open`, like the rest.
            include: See there.
            window_bytes: See there; the application has to `ack`.
            max_delay_ms: See there.
        """
        command_id = self._new_id()
        after = UNSET if create else 0
        return self._submit(
            Open(
                id=command_id,
                conversation=conversation or command_id,
                epoch=cursor.epoch if cursor else None,
                after=cursor.last if cursor else after,
                config=config,
                handles=list(handles),
                view=view,
                include=list(include),
                window_bytes=window_bytes,
                max_delay_ms=max_delay_ms,
            )
        )

    def send(
        self,
        conversation: str,
        content: Content,
        *,
        policy: Policy = "queue",
        seen_seq: int | None = None,
        on_disconnect: Literal["continue", "cancel"] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Send:
        """Says something to the model; the members are those of `Send`."""
        return self._submit(
            Send(
                id=self._new_id(),
                conversation=conversation,
                content=content,
                policy=policy,
                seen_seq=seen_seq,
                on_disconnect=on_disconnect,
                metadata=metadata,
            )
        )

    def interrupt(
        self,
        conversation: str,
        *,
        turn: int | None = None,
        send: str | None = None,
        seen_seq: int | None = None,
        keep: Keep | None = None,
    ) -> Interrupt:
        """Stops a turn, or takes a send back.

        Name the `turn` or the `send`: without, an interrupt that has to wait for
        a reconnect stops whatever runs by then.
        """
        return self._submit(
            Interrupt(
                id=self._new_id(),
                conversation=conversation,
                turn=turn,
                send=send,
                seen_seq=seen_seq,
                keep=keep,
            )
        )

    def tool_result(
        self,
        conversation: str,
        call: str,
        *,
        output: Any | UnsetType = UNSET,
        error: str | None = None,
    ) -> ToolResult:
        """Answers a `ToolRequest`; exactly one of `output` and `error`."""
        return self._submit(
            ToolResult(
                id=self._new_id(),
                conversation=conversation,
                call=call,
                output=output,
                error=None if error is None else ToolFault(message=error),
            )
        )

    def configure(self, conversation: str, config: Config) -> Configure:
        """Changes settings for the turns that start from here on."""
        return self._submit(
            Configure(id=self._new_id(), conversation=conversation, config=config)
        )

    def fork(self, conversation: str, through: int, *, new: str | None = None) -> Fork:
        """Makes a new conversation with the log up to the end of a turn."""
        return self._submit(
            Fork(id=self._new_id(), conversation=conversation, through=through, new=new)
        )

    def close(self, conversation: str) -> Close:
        """Lets a conversation go; nothing of it is emitted from here on."""
        return self._submit(Close(id=self._new_id(), conversation=conversation))

    def delete(self, conversation: str) -> Delete:
        """Removes a conversation; nothing of it is emitted from here on.

        What was made anew under its name, as far as that can be told, stays.
        """
        cursor = self.cursor(conversation)
        return self._submit(
            Delete(
                id=self._new_id(),
                conversation=conversation,
                epoch=cursor.epoch if cursor else None,
            )
        )

    def refresh(self, token: str) -> Refresh:
        """Gives new credentials, to this connection and those that follow."""
        return self._submit(Refresh(id=self._new_id(), token=token))

    def again(self, command: AnyCommand) -> AnyCommand:
        """Gives a command once more, under its id, after a reply that was `retryable`.

        What it was to do is done once, whether or not it had been done before.
        """
        return self._submit(command)

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"

    @abstractmethod
    def cursor(self, conversation: str) -> Cursor | None:
        """The position in a conversation; None where there is none (yet)."""

    @abstractmethod
    def _submit(self, command: AnyCommand) -> AnyCommand:
        """Takes a command over, or raises and changes nothing."""
