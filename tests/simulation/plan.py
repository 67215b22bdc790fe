"""What happens to one simulated session: faults and commands as data.

A plan is made from its seed alone. Each step carries the chance that decides its
details, so leaving a step out changes no other one: that is how a plan that fails
is made small.
"""

import random
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tests.simulation.lives import Keeping

Do = Literal[
    "send", "interrupt", "cut", "stall", "close", "open", "restart", "break_store",
    "fork", "delete", "configure", "again", "trim",
]  # fmt: skip

BEFALLS: frozenset[Do] = frozenset(("restart", "break_store", "trim"))
"""What no client does."""

_COMMANDS: list[Do] = ["send", "interrupt", "cut", "stall", "close", "open"]
_CHANGES: list[Do] = ["fork", "delete", "configure", "again"]
_LATER: frozenset[Do] = frozenset(("fork", "again", "trim"))
"""What changes more when something was said before."""

_ANY = 840
"""Any of so many conversations as a client may come to have, each alike."""

CHANGING_EVERY = 5
"""Each so manieth session has forks, deletions, other settings and retention too."""


class Step(Struct, frozen=True, kw_only=True):
    """One thing that is done.

    Attributes:
        at: When, in seconds from the beginning.
        client: Which client does it, or to whom it happens.
        conversation: In which conversation.
        chance: Seeds the step's details.
    """

    at: float
    do: Do
    client: int = 0
    conversation: int = 0
    chance: int = 0


class Plan(Struct, frozen=True, kw_only=True):
    """One world.

    Attributes:
        seed: Where all chance begins.
        clients: How many; the first one has all conversations open.
        conversations: How many.
        durable: Whether the store outlives a crash; else it forgets nothing, but
            the server is only stopped in good order.
        pings: Whether the transport pings by itself, as real sockets do here.
        steps: By their time.
        keeping: How much of a conversation is kept.
        changes: Whether conversations are forked, deleted and configured.
        asks: How likely it is that a model which may ask for tools does.
        severed: A client, and with which frame of its first connection, in either
            direction, that is lost; None for one that holds.
    """

    seed: int
    clients: int
    conversations: int
    durable: bool
    pings: bool
    steps: tuple[Step, ...]
    keeping: Keeping = Keeping()
    changes: bool = False
    asks: float = 0.4
    severed: tuple[int, int] | None = None


def make_plan(seed: int) -> Plan:
    """Makes the plan of a seed."""
    return _changing_plan(seed) if seed % CHANGING_EVERY == 0 else _plain_plan(seed)


def _plain_plan(seed: int) -> Plan:
    chance = random.Random(seed)
    clients = chance.choice([1, 1, 1, 2, 2, 3])
    conversations = chance.choice([1, 1, 1, 2, 2, 3, chance.randint(1, 20)])
    durable = chance.random() < 0.6
    weights = [4.0, chance.choice([0, 2, 4]), chance.choice([0, 1, 4]), 0.0, 0.3, 0.5]
    weights[3] = chance.choice([0, 1, 3])
    does = chance.choices(_COMMANDS, weights, k=chance.randint(3, 6 + conversations))
    if chance.random() < 0.3:
        does += ["restart"] * chance.randint(1, 3)
    if durable and chance.random() < 0.2:
        does.append("break_store")
    return Plan(
        seed=seed,
        clients=clients,
        conversations=conversations,
        durable=durable,
        steps=_steps(chance, does, clients, conversations),
        pings=chance.random() < 0.7,
    )


def _changing_plan(seed: int) -> Plan:
    """Few conversations, to which much happens."""
    chance = random.Random(seed)
    clients, conversations = chance.choice([1, 2, 2, 3]), chance.choice([1, 1, 2])
    durable = chance.random() < 0.8
    keeping = chance.choice(
        [
            Keeping(),
            Keeping(),
            Keeping(bytes=chance.choice([0, 1000, 3000])),
            Keeping(seconds=chance.choice([2.0, 20.0])),
        ]
    )
    does = chance.choices(
        [*_COMMANDS, *_CHANGES],
        [6.0, 1.0, 0.7, 0.4, 0.4, 0.4, *chance.choices([0.5, 1.0, 2.0], k=4)],
        k=chance.randint(6, 16),
    )
    if not keeping.all:
        does += ["trim"] * chance.randint(1, 4)
    if chance.random() < 0.4:
        does += ["restart"] * chance.randint(1, 3)
    if durable and chance.random() < 0.1:
        does.append("break_store")
    return Plan(
        seed=seed,
        clients=clients,
        conversations=conversations,
        durable=durable,
        steps=_steps(chance, does, clients, _ANY),
        pings=chance.random() < 0.7,
        keeping=keeping,
        changes=True,
    )


def _steps(
    chance: random.Random, does: list[Do], clients: int, conversations: int
) -> tuple[Step, ...]:
    when = _moments(chance)
    steps = [
        Step(
            at=when() + (chance.choice([0, 5, 30]) if do in _LATER else 0),
            do=do,
            client=chance.randrange(clients),
            conversation=chance.randrange(conversations),
            chance=chance.getrandbits(32),
        )
        for do in does
    ]
    return tuple(sorted(steps, key=lambda step: step.at))


def _moments(chance: random.Random) -> Callable[[], float]:
    """Spreads steps over a while, or crowds them so that they race."""
    span = chance.choice([5.0, 20.0, 90.0])
    if chance.random() < 0.6:
        return lambda: round(chance.uniform(0.0, span), 3)
    crowds = [chance.uniform(0.0, span) for _ in range(chance.randint(1, 4))]
    close = chance.choice([0.0, 0.01, 0.3])
    return lambda: round(chance.choice(crowds) + chance.uniform(0.0, close), 3)
