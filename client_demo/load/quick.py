"""A scenario from flags: so many conversations at once, each with so many turns."""

from client_demo.load.counted import counted
from client_demo.load.scenario import Group, Plan, Scenario, Stage
from client_demo.load.steps import AnyStep, LoopStep, OpenStep, SendStep, WaitStep


def quick(*, conversations: int, turns: int, prompt: str, model: str | None) -> Plan:
    """Makes a scenario.

    Args:
        conversations: How many at once, each on a socket of its own.
        turns: How many messages in each, one after the other.
        prompt: What they say.
        model: Who answers; None leaves it to the server.
    """
    turn: list[AnyStep] = [SendStep(text=prompt), WaitStep(event="done")]
    steps: list[AnyStep] = [OpenStep(), LoopStep(times=turns, steps=turn)]
    scenario = Scenario(
        title=f"{counted(conversations, 'conversation')} at once",
        stages=[Stage(seconds=0, users=conversations)],
        groups=[Group(name="all", steps=steps, model=model)],
        thresholds=["completed.rate == 1", "errors.count == 0"],
    )
    return Plan(scenario=scenario)
