"""Whether an upstream answers, and whether its answer streams."""

from collections.abc import Sequence

import anyio
from msgspec import Struct

from wsserver.assembly.upstreams import (
    LOCAL_MODEL,
    OPENAI_DEFAULT_MODEL,
    open_upstreams,
)
from wsserver.engine.model import (
    Failure,
    Finished,
    ModelEvent,
    ModelRequest,
    UpstreamError,
)
from wsserver.operations.checks.config import without_local
from wsserver.operations.checks.findings import Finding, Tell, fail, ok, warn
from wsserver.operations.counted import counted
from wsserver.settings import Model, Settings, SettingsError
from wsserver.turns.models import DEMO_PREFIX
from wsserver.turns.services import Target

QUESTION = "Count from 1 to 40 in figures, with a space between two numbers."
ENOUGH_PIECES = 200
LONGEST_SECONDS = 20.0
"""How long an answer is listened to after its first token."""

FEW_PIECES = 8
"""With fewer nothing can be said of how they came."""

AT_ONCE_SECONDS = 0.02
LUMP_PIECES = 8
SOON_SECONDS = 0.25

_REMEDIES = {
    "upstream_unavailable": "is it running, and is its base URL right?",
    "upstream_timeout": "is it running, and is its base URL right? If it is only slow,"
    " raise first_token_timeout_seconds in [models.NAME], or"
    " upstream_first_token_timeout_seconds",
    "upstream_rate_limited": "wait, or ask its owner for more",
}
_OTHER_REMEDY = "is the base URL right (it usually ends in /v1), and the model's name?"


class Sample(Struct, frozen=True, kw_only=True):
    """How one answer came. Times are in seconds since the request.

    Attributes:
        pieces: Pieces of text.
        reads: Reads of the connection that held any.
        first: When the first came; None for none.
        last: When the last did.
        end: When the answer ended, or was listened to no more.
        failure: Why it failed, if it did.
    """

    pieces: int
    reads: int
    first: float | None
    last: float
    end: float
    failure: Failure | None = None


async def upstreams(settings: Settings, tell: Tell) -> None:
    """Asks each upstream a short question, and tells what came of it.

    Nothing is told where the settings of the models are wrong: `config` has it.
    """
    names = {name: name for name in settings.models}
    if settings.openai_api_key or settings.openai_base_url:
        name = _general_model(settings)
        names[name] = f"other names, such as {name}" if settings.models else name
    if not names:
        tell(ok("upstream", "none configured; the demo models need none"))
        return
    async with open_upstreams(without_local(settings)) as opened:
        try:
            table = await opened.table()
        except SettingsError:
            return
        most = settings.upstream_first_token_timeout_seconds
        for name, shown in names.items():
            target = table.resolve(name)
            assert target is not None, "it is configured, or there is an upstream"
            sample = await ask(target, target.first_token_seconds or most)
            tell(judge(shown, sample, _key_remedy(settings.models.get(name))))


def _key_remedy(model: Model | None) -> str:
    """Says where the key of a model is looked for; None is the upstream for others."""
    if model is None:
        return "set OPENAI_API_KEY to a key that it takes"
    if model.api_key_env is None:
        return "name the variable that holds its key, as api_key_env of the model"
    return f"set {model.api_key_env} to a key that it takes"


def _general_model(settings: Settings) -> str:
    """Returns a model to ask for that leads to the upstream for all others."""
    name = settings.default_model
    if name is None or name == LOCAL_MODEL or name.startswith(DEMO_PREFIX):
        return OPENAI_DEFAULT_MODEL
    return OPENAI_DEFAULT_MODEL if name in settings.models else name


async def ask(target: Target, first_token_seconds: float) -> Sample:
    """Asks a model to count, and listens for a while.

    Args:
        target: The model.
        first_token_seconds: How long to wait for the first token.
    """
    listening = _Listening(anyio.current_time())
    request = ModelRequest(
        model=target.model,
        messages=[{"role": "user", "content": QUESTION}],
        params=target.members({}),
        request_id="wsserver-doctor",
    )
    try:
        with anyio.move_on_after(first_token_seconds) as listening.scope:
            async with target.provider.stream(request) as stream:
                await stream.pump(listening.take)
    except UpstreamError as error:
        listening.failure = error.failure
    if listening.scope.cancelled_caught and listening.first is None:
        listening.failure = Failure(
            code="upstream_timeout",
            message=f"no token within {first_token_seconds:g} s",
            retryable=True,
        )
    return listening.sample()


class _Listening:
    """Counts what comes."""

    scope: anyio.CancelScope

    def __init__(self, began: float) -> None:
        self.failure: Failure | None = None
        self.first: float | None = None
        self._began = self._last = began
        self._pieces = self._reads = 0

    def take(self, batch: Sequence[ModelEvent]) -> None:
        """Takes what one read held."""
        pieces = sum(not isinstance(event, Finished) for event in batch)
        for event in batch:
            if isinstance(event, Finished):
                self.failure = event.failure
        if not pieces:
            return
        self._last = anyio.current_time()
        if self.first is None:
            self.first = self._last
            self.scope.deadline = self._last + LONGEST_SECONDS
        self._pieces += pieces
        self._reads += 1
        if self._pieces >= ENOUGH_PIECES:
            self.scope.cancel()

    def sample(self) -> Sample:
        """Returns what was counted."""
        return Sample(
            pieces=self._pieces,
            reads=self._reads,
            first=None if self.first is None else self.first - self._began,
            last=self._last - self._began,
            end=anyio.current_time() - self._began,
            failure=self.failure,
        )


def judge(model: str, sample: Sample, key_remedy: str) -> Finding:
    """Says what a sample means.

    Args:
        model: What to call it.
        sample: What came.
        key_remedy: What to do where it refuses the credentials.
    """
    if sample.failure is not None:
        failure = sample.failure
        says = f"{model}: {failure.code}: {failure.message}"
        if failure.code == "upstream_auth":
            return fail("upstream", says, key_remedy)
        return fail("upstream", says, _REMEDIES.get(failure.code, _OTHER_REMEDY))
    if sample.first is None:
        return warn("upstream", f"{model}: answered without a token", _OTHER_REMEDY)
    says = (
        f"{model}: first token after {_ms(sample.first)},"
        f" {counted(sample.pieces, 'piece')} in {counted(sample.reads, 'read')}"
        f" over {_ms(sample.last - sample.first)}"
    )
    if sample.pieces < FEW_PIECES:
        return ok("upstream", f"{says}: too short to tell whether it streams")
    at_once = sample.last - sample.first < AT_ONCE_SECONDS
    in_lumps = sample.pieces / sample.reads >= LUMP_PIECES
    if (at_once or in_lumps) and sample.end > SOON_SECONDS:
        return warn(
            "upstream",
            f"{says}: the answer comes in lumps",
            "switch off buffering and compression in what stands between: `curl -N`"
            " at each place shows where",
        )
    return ok("upstream", says)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
