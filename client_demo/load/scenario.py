"""A scenario: who comes when, what each does, and what must hold.

The Structs are the format of the file; `client_demo.load.scenario_file` reads it.
"""

from typing import Annotated

from msgspec import Meta, Struct

from client_demo.load.durations import Seconds
from client_demo.load.steps import AnyStep, Count
from protocol.content import Tool


class Stage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of the run; goes evenly from the number before it to its own.

    A ramp is a stage with another number than the one before, a hold one with the
    same. All stages of a scenario have `users`, or all have `arrivals_per_second`.

    Attributes:
        seconds: How long; 0 goes to the number at once.
        users: How many are at it at the end of the stage. Who has finished begins
            again.
        arrivals_per_second: How many come at the end of the stage, however long
            those before them take. Each runs its script once.
    """

    seconds: Seconds
    users: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    arrivals_per_second: Annotated[float, Meta(ge=0, le=100_000)] | None = None


class Group(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Users who do the same.

    Attributes:
        name: For the errors.
        steps: What each conversation does, in order.
        weight: How many users are of this group, beside the other weights.
        model: Who answers; absent leaves it to the server.
        instructions: What the model is told before the conversation.
        tools: What the model may call; this client runs them.
        conversations: How many run at once on one socket, each with all the steps.
        measured: Whether its times count. Its faults do in any case.
    """

    name: str
    steps: Annotated[list[AnyStep], Meta(min_length=1)]
    weight: Annotated[float, Meta(gt=0)] = 1
    model: str | None = None
    instructions: str | None = None
    tools: list[Tool] = []
    conversations: Annotated[int, Meta(ge=1, le=128)] = 1
    measured: bool = True


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file.

    Attributes:
        title: For the report.
        description: What it is for.
        stages: Who comes when, in order.
        groups: Who does what.
        runs: How often each user runs its script; absent goes on while the stages
            last.
        rounds: How often the whole is run, one after the other, so that the
            report shows how far the figures spread.
        seed: Of all that is drawn; the same draws the same.
        thresholds: What must hold, such as `ttft_ms.p99 < 500`.
        reread: The part of the conversations that a fresh connection reads again
            from the start, to be compared.
        delete: Whether conversations are deleted when they are over.
        drain_seconds: How long users may finish after the last stage. Where `runs` is
            given they have all the time they need.
    """

    title: str
    groups: Annotated[list[Group], Meta(min_length=1)]
    stages: Annotated[list[Stage], Meta(min_length=1)]
    description: str = ""
    runs: Count | None = None
    rounds: Annotated[int, Meta(ge=1, le=100)] = 1
    seed: int = 1
    thresholds: list[str] = []
    reread: Annotated[float, Meta(ge=0, le=1)] = 1
    delete: bool = True
    drain_seconds: Seconds = 60


class Prompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of a set of prompts.

    Attributes:
        name: For the report.
        text: What is said.
        language: Of the text, as a BCP 47 tag.
    """

    name: str
    text: Annotated[str, Meta(min_length=1)]
    language: str = ""


class PromptSet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of prompts: `prompts/NAME.toml` beside the scenario, or shipped.

    Attributes:
        prompts: In their order.
    """

    prompts: Annotated[list[Prompt], Meta(min_length=1)]


class Plan(Struct, frozen=True, kw_only=True):
    """A scenario with all that it refers to.

    Attributes:
        scenario: As it stands in the file.
        prompts: The sets of prompts it names.
    """

    scenario: Scenario
    prompts: dict[str, PromptSet] = {}
