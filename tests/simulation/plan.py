"""What happens to one simulated session: faults and commands as data.

A plan is made from its seed alone. Each step carries the chance that decides its
details, so leaving a step out changes no other one: that is how a plan that fails
is made small.
"""

import random
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Do = Literal[
    "send", "interrupt", "cut", "stall", "close", "open",
    "restart", "break_store", "trim",
]  # fmt: skip

OF_THE_SERVER: tuple[Do, ...] = ("restart", "break_store", "trim")

_COMMANDS: list[Do] = ["send", "interrupt", "cut", "stall", "close", "open"]


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
    asks: float = 0.4
    severed: tuple[int, int] | None = None


def make_plan(seed: int) -> Plan:
    """Makes the plan of a seed."""
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
    when = _moments(chance)
    steps = [
        Step(
            at=when(),
            do=do,
            client=chance.randrange(clients),
            conversation=chance.randrange(conversations),
            chance=chance.getrandbits(32),
        )
        for do in does
    ]
    end = max(step.at for step in steps)
    steps += _trims(random.Random(f"trims {seed}"), clients, conversations, end)
    return Plan(
        seed=seed,
        clients=clients,
        conversations=conversations,
        durable=durable,
        pings=chance.random() < 0.7,
        steps=tuple(sorted(steps, key=lambda step: step.at)),
    )


def _trims(
    chance: random.Random, clients: int, conversations: int, end: float
) -> list[Step]:
    """Makes trims, most of them while somebody does not read."""
    if chance.random() > 0.3:
        return []
    steps: list[Step] = []
    for _ in range(chance.randint(1, 4)):
        at, client = chance.uniform(0.0, end + 20.0), chance.randrange(clients)
        conversation = chance.randrange(conversations)
        does: list[Do] = ["trim"] * 3
        if chance.random() < 0.8:
            does += [chance.choice(["stall", "stall", "cut", "close"]), *["send"] * 3]
        steps += [
            Step(
                at=at + (chance.choice([1.0, 4.0, 15.0, 40.0]) if do == "trim" else 0),
                do=do,
                client=client,
                conversation=conversation,
                chance=chance.getrandbits(32),
            )
            for do in does
        ]
    return steps


def _moments(chance: random.Random) -> Callable[[], float]:
    """Spreads steps over a while, or crowds them so that they race."""
    span = chance.choice([5.0, 20.0, 90.0])
    if chance.random() < 0.6:
        return lambda: round(chance.uniform(0.0, span), 3)
    crowds = [chance.uniform(0.0, span) for _ in range(chance.randint(1, 4))]
    close = chance.choice([0.0, 0.01, 0.3])
    return lambda: round(chance.choice(crowds) + chance.uniform(0.0, close), 3)
