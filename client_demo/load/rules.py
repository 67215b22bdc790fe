"""Rules of a scenario that its types can't say: what may follow what.

Pure. Each fault names its place by path, and what to do about it.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from client_demo.load.durations import Uniform
from client_demo.load.scenario import Group, Plan, Stage
from client_demo.load.steps import (
    AnyStep,
    DropStep,
    InterruptStep,
    LoopStep,
    OpenStep,
    ResumeStep,
    SendStep,
    ThinkStep,
    ToolsStep,
    WaitStep,
)
from client_demo.load.thresholds import ThresholdError, read_threshold
from protocol.events import LogEvent

_State = Literal["closed", "open", "sent", "dropped"]
EVENT_TYPES = frozenset(
    str(event.__struct_config__.tag) for event in LogEvent.__args__
) | {"caught_up", "tool_request"}


class ScenarioError(Exception):
    """A scenario that can't be run; the text says where, why and what to do."""


def check(plan: Plan) -> None:
    """Checks all rules.

    Raises:
        ScenarioError: One is broken.
    """
    scenario = plan.scenario
    _check_stages(scenario.stages, scenario.runs)
    names = [group.name for group in scenario.groups]
    for place, group in enumerate(scenario.groups):
        path = f"$.groups[{place}]"
        if names.index(group.name) != place:
            raise ScenarioError(f"{path}.name: {group.name!r} stands twice; rename one")
        _check_group(group, path)
    for place, text in enumerate(scenario.thresholds):
        try:
            read_threshold(text)
        except ThresholdError as error:
            raise ScenarioError(f"$.thresholds[{place}]: {error}") from None


def every_step(steps: Sequence[AnyStep]) -> Iterator[AnyStep]:
    """Goes through steps and those within them."""
    for step in steps:
        yield step
        if isinstance(step, LoopStep):
            yield from every_step(step.steps)


def _check_stages(stages: Sequence[Stage], runs: int | None) -> None:
    kinds: set[bool] = set()
    for place, stage in enumerate(stages):
        if (stage.users is None) is (stage.arrivals_per_second is None):
            raise ScenarioError(
                f"$.stages[{place}]: give one of `users` and `arrivals_per_second`"
            )
        kinds.add(stage.users is None)
    if len(kinds) > 1:
        raise ScenarioError(
            "$.stages: some have `users` and some `arrivals_per_second`;"
            " give all the same, or make two scenarios"
        )
    if not any(stage.users or stage.arrivals_per_second for stage in stages):
        raise ScenarioError("$.stages: nobody ever comes; give a number above 0")
    if kinds == {True}:
        if runs is not None:
            raise ScenarioError(
                "$.runs: who arrives runs its script once; leave `runs` out"
            )
        if not any(stage.seconds for stage in stages):
            raise ScenarioError("$.stages: arrivals need time; give `seconds` above 0")


def _check_group(group: Group, path: str) -> None:
    walk = _Walk(group)
    walk.steps(group.steps, f"{path}.steps")
    if walk.dropped:
        raise ScenarioError(
            f"{path}.steps: ends while the connection is dropped; add a `resume`"
        )


class _Walk:
    """Goes through the steps of a group as a client would."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._state: _State = "closed"

    @property
    def dropped(self) -> bool:
        return self._state == "dropped"

    def steps(self, steps: Sequence[AnyStep], path: str) -> None:
        for place, step in enumerate(steps):
            self._step(step, f"{path}[{place}]")

    def _step(self, step: AnyStep, path: str) -> None:
        self._needs(step, path)
        _check_times(step, path)
        match step:
            case OpenStep():
                self._state = "open"
            case SendStep():
                _check_send(step, path)
                self._state = "sent"
            case WaitStep():
                _check_wait(step, path)
            case DropStep():
                self._state = "dropped"
            case ResumeStep():
                self._state = "sent"
            case ToolsStep() if not self._group.tools:
                raise ScenarioError(
                    f"{path}: the group {self._group.name!r} has no tools; add"
                    " `[[groups.tools]]` with a name"
                )
            case LoopStep():
                # Twice, as the second time begins where the first has ended.
                for _ in range(min(step.times, 2)):
                    self.steps(step.steps, f"{path}.steps")
            case _:
                pass

    def _needs(self, step: AnyStep, path: str) -> None:
        kind = step.__struct_config__.tag
        if self._state == "dropped":
            if not isinstance(step, (ResumeStep, ThinkStep, LoopStep)):
                raise ScenarioError(
                    f"{path}: `{kind}` while the connection is dropped; `resume` first"
                )
        elif isinstance(step, ResumeStep):
            raise ScenarioError(f"{path}: nothing was dropped; `drop` first")
        elif self._state == "closed":
            if isinstance(step, (SendStep, DropStep, InterruptStep)) or (
                isinstance(step, WaitStep) and step.seconds is None
            ):
                raise ScenarioError(
                    f"{path}: `{kind}` before there is a conversation; `open` first"
                )
        elif self._state == "open" and (
            isinstance(step, InterruptStep)
            or (isinstance(step, (WaitStep, DropStep)) and _counts_tokens(step))
        ):
            raise ScenarioError(
                f"{path}: `{kind}` waits for an answer that nobody asked for;"
                " `send` first"
            )


def _counts_tokens(step: WaitStep | DropStep) -> bool:
    match step:
        case WaitStep():
            return bool(step.tokens) or step.event == "done"
        case DropStep():
            return bool(step.after_tokens)


def _check_times(step: AnyStep, path: str) -> None:
    for name in step.__struct_fields__:
        time = getattr(step, name)
        if isinstance(time, Uniform) and time.min > time.max:
            raise ScenarioError(f"{path}.{name}: `min` is above `max`; swap them")


def _check_send(step: SendStep, path: str) -> None:
    if (step.text is None) is (step.prompts is None):
        raise ScenarioError(f"{path}: give one of `text` and `prompts`")


def _check_wait(step: WaitStep, path: str) -> None:
    given = [
        name
        for name, value in (
            ("event", step.event), ("tokens", step.tokens), ("seconds", step.seconds),
        )
        if value is not None
    ]  # fmt: skip
    if len(given) != 1:
        raise ScenarioError(
            f"{path}: give exactly one of `event`, `tokens` and `seconds`,"
            f" not {' and '.join(given) or 'none'}"
        )
    if step.event is not None and step.event not in EVENT_TYPES:
        raise ScenarioError(
            f"{path}.event: there is no {step.event!r}; one of"
            f" {', '.join(sorted(EVENT_TYPES))}"
        )
