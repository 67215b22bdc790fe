"""Drives the real client machine over links that fail, with one task per client."""

import heapq
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import count

import anyio

from protocol.backoff import Backoff
from protocol.client.events import ClientEvent
from protocol.client.machine import ClientProtocol
from tests.simulation.host import Host
from tests.simulation.link import Link


class Driver(ABC):
    """One client for the whole session, over as many connections as it takes.

    Attributes:
        name: Of the client, and of its principal.
        client: The machine.
        link: Its connection; None while there is none.
    """

    def __init__(self, name: str, host: Host, chance: random.Random) -> None:
        self.name = name
        self.client = ClientProtocol(
            prefix=name,
            token=name,
            random=chance.random,
            backoff=Backoff(random=chance.random),
        )
        self.link: Link | None = None
        self._host = host
        self._chance = chance
        self._wake = anyio.Event()
        self._todo: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._dialing = False
        self._reading = True

    @abstractmethod
    def handle(self, event: ClientEvent) -> None:
        """Takes what the machine tells."""

    @property
    @abstractmethod
    def unreplied(self) -> int:
        """Commands that wait for their reply."""

    @property
    def idle(self) -> bool:
        """Whether nothing is due here, on a connection that holds."""
        return (
            self.client.phase == "online"
            and not self.unreplied
            and self.client._subscriptions.next_timer() is None
            and not self._todo
            and self.link is not None
            and not self.link.lost
            and self.link.next_arrival is None
            and not self.link.unanswered
        )

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Does something later."""
        heapq.heappush(self._todo, (when, next(self._order), do))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Does something in a while."""
        self.at(anyio.current_time() + seconds, do)

    def wake(self) -> None:
        """Looks at once for what is due."""
        self._wake.set()

    def read(self, reading: bool) -> None:
        """Goes on to read, or stops."""
        self._reading = reading
        if self.link is not None:
            self.link.pause(reading)
        self.wake()

    def drop(self) -> None:
        """Gives the connection up."""
        link, self.link = self.link, None
        if link is not None:
            link.hang_up()
            self.client.disconnected(None, anyio.current_time())

    async def run(self) -> None:
        """Drives the machine for ever."""
        while True:
            now = anyio.current_time()
            while self._todo and self._todo[0][0] <= now:
                heapq.heappop(self._todo)[2]()
            self.client.timer(now)
            self._dial()
            self._receive(now)
            self._handle()
            self._flush()
            if self.client.phase == "connecting" and not self._dialing:
                continue
            if self.link is not None and self.link.ended and self._reading:
                continue  # it broke under what was said
            at = self._next()
            if at > anyio.current_time():
                self._wake = anyio.Event()
                with anyio.CancelScope(deadline=at):
                    await self._wake.wait()

    def _next(self) -> float:
        due = [self.client.next_timer(), self._todo[0][0] if self._todo else None]
        if self.link is not None and self._reading:
            due.append(self.link.next_arrival)
        return min((one for one in due if one is not None), default=float("inf"))

    def _dial(self) -> None:
        if self.client.phase == "connecting" and not self._dialing:
            self._dialing = True
            self.after(self._chance.choice([0.0, 0.05, 1.0]), self._connect)

    def _connect(self) -> None:
        now = anyio.current_time()
        self._dialing = False
        link = self._host.dial(self.name, self._chance, self.wake)
        if link is None:
            self.client.disconnected(None, now)
        else:
            link.pause(self._reading)
            self.link = link
            self.client.connected(now)

    def _receive(self, now: float) -> None:
        link = self.link
        if link is None or not self._reading:
            return
        for data in link.take():
            self.client.received(data, now)
            self._handle()
            if self.link is not link:
                return
        if link.ended:
            self.link = None
            self.client.disconnected(link.code, now)

    def _handle(self) -> None:
        for event in self.client.events():
            self.handle(event)

    def _flush(self) -> None:
        frames = self.client.data_to_send()
        if frames and self.link is not None:
            self.link.say(frames)
