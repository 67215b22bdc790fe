"""What a token costs: paced, as fast as it goes, by the number of conversations."""

from tests.bench.rows import Row
from tests.bench.scenario import Column, Figures, Rig, Scenario
from tests.bench.streams import Load, through_own_connections

COST = Column(key="us", heading="µs/token", digits=1, compared=True)
DELIVERED = Column(key="delivered", heading="delivered %")
DELAY = (
    Column(key="p50", heading="added p50 ms", digits=2),
    Column(key="p99", heading="added p99 ms", digits=1),
)
RIG = (
    Column(key="relay_share", heading="its CPU %"),
    Column(key="upstream_share", heading="upstream CPU %"),
    Column(key="client_share", heading="client CPU %"),
    Column(key="machine_share", heading="all CPUs %"),
)
PACED = (50, 200, 500, 1000)
GROWTH = ((10, 300.0), (100, 30.0), (1000, 3.0))


def _paced(streams: int) -> Scenario:
    async def run(rig: Rig) -> Figures:
        return await through_own_connections(rig, Load(streams=streams, rate=30))

    return Scenario(
        name=f"paced-{streams}",
        title=f"{streams} streams x 30 tokens a second",
        note="Each stream on a connection of its own. `turn` is what it takes to start"
        " and end a stream, beyond its tokens.",
        columns=(
            *(COST, *DELAY, DELIVERED),
            Column(key="turn_us", heading="µs/turn"),
            *RIG,
        ),
        applies=_all,
        run=run,
        group="paced",
    )


def _growth(streams: int, rate: float) -> Scenario:
    async def run(rig: Rig) -> Figures:
        return await through_own_connections(rig, Load(streams=streams, rate=rate))

    return Scenario(
        name=f"growth-{streams}",
        title=f"3,000 tokens a second in {streams} conversations",
        note="The same work by more and more conversations. The floor has one connection"
        " for each, whatever relays has two.",
        columns=(COST, *DELAY, DELIVERED),
        applies=_compared,
        run=run,
        rounds=2,
    )


async def _flat_out(rig: Rig) -> Figures:
    return await through_own_connections(rig, Load(streams=10, rate=0, tokens=30_000))


FLAT_OUT = Scenario(
    name="flat-out",
    title="10 streams as fast as they go",
    note="30,000 tokens each; stopped when that takes too long, and then counted as far"
    " as they came.",
    columns=(
        COST,
        Column(key="tokens_per_second", heading="tokens/s"),
        DELIVERED,
        *RIG,
    ),
    applies=lambda row: True,
    run=_flat_out,
)


def _all(row: Row) -> bool:
    return True


def _compared(row: Row) -> bool:
    return row.ours or row.name in {"floor", "nginx", "node-ws"}


SCENARIOS = (
    *(_paced(streams) for streams in PACED),
    FLAT_OUT,
    *(_growth(streams, rate) for streams, rate in GROWTH),
)
