"""Plants faults in the server, to see that the simulation sees them."""

from collections.abc import Callable, Sequence

import pytest

from tests.simulation.plan import make_plan
from tests.simulation.world import play

Plant = Callable[[pytest.MonkeyPatch], None]


def check_seen(plant: Plant, patch: pytest.MonkeyPatch, seeds: Sequence[int]) -> None:
    """Plays sessions until one sees a fault; fails the test where none does."""
    plant(patch)
    if not any(play(make_plan(seed)) for seed in seeds):
        pytest.fail(f"{plant.__name__} goes unseen in {len(seeds)} sessions")
