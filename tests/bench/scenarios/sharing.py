"""Many viewers of one conversation, and many conversations on one socket."""

from tests.bench.clients.chats import Chat, in_waves, open_chat
from tests.bench.clients.tally import Answer, Tally
from tests.bench.clients.wsserver import WsserverChat, connect_socket
from tests.bench.rows import Row
from tests.bench.scenario import Column, Figures, Rig, Scenario
from tests.bench.scenarios.costs import COST, DELAY, DELIVERED, RIG
from tests.bench.streams import Load, measured, through_own_connections

VIEWERS = 300
CONVERSATIONS = 50


async def _viewers(rig: Rig) -> Figures:
    if not rig.row.ours:
        # Without fan-out, as many streams are the same work for the sending side.
        return await through_own_connections(rig, Load(streams=VIEWERS, rate=30))
    load = Load(streams=1, rate=30)
    tally = Tally(VIEWERS, stamped=True)
    model = load.model

    async def view(_: int) -> Chat:
        port = rig.relay.port
        return await open_chat("wsserver", port, rig.run, model, Answer(tally))

    chats = [await view(0)]
    chats += await in_waves(VIEWERS - 1, view)
    try:
        return await measured(rig, load, tally, chats[:1])
    finally:
        for chat in chats:
            chat.close()


async def _one_socket(rig: Rig) -> Figures:
    load = Load(streams=CONVERSATIONS, rate=30)
    tally = Tally(CONVERSATIONS, stamped=True)
    config = {"model": load.model}
    socket = await connect_socket(rig.relay.port)
    names = [f"{rig.run}-{number}" for number in range(CONVERSATIONS)]
    for name in names:
        await socket.open(name, Answer(tally), config=config)
    try:
        askers = [WsserverChat(socket, name) for name in names]
        return await measured(rig, load, tally, askers)
    finally:
        socket.close()


def _floor_and_ours(row: Row) -> bool:
    return row.ours or row.name == "floor"


SCENARIOS = (
    Scenario(
        name="viewers",
        title=f"{VIEWERS} viewers of one conversation x 30 tokens a second",
        note="Per delivery. The floor sends as many streams.",
        columns=(
            Column(key="us", heading="µs/delivery", digits=1, compared=True),
            *(*DELAY, DELIVERED, *RIG),
        ),
        applies=_floor_and_ours,
        run=_viewers,
        rounds=2,
    ),
    Scenario(
        name="one-socket",
        title=f"{CONVERSATIONS} conversations on one socket x 30 tokens a second",
        note="They take turns on the socket.",
        columns=(COST, *DELAY, DELIVERED, *RIG),
        applies=lambda row: row.ours,
        run=_one_socket,
        rounds=2,
    ),
)
