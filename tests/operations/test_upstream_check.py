"""Is an upstream there, and does its answer stream? Real sockets, scripted answers."""

from typing import Any

import msgspec
import pytest

from tests.fakes.replies import streamed, text_events
from tests.fakes.upstream import FakeUpstream, Reply
from wsserver.engine.model import Failure
from wsserver.operations.checks import upstream as upstream_check
from wsserver.operations.checks.findings import Finding
from wsserver.operations.checks.upstream import (
    LUMP_PIECES,
    Sample,
    judge,
    upstreams,
)
from wsserver.settings import Model, Settings

NUMBERS = [f"{number} " for number in range(1, 41)]


def counting(*, streams: bool, **how: Any) -> Reply:
    """An answer of 40 pieces, each in a write of its own or all in one."""
    events = text_events(*NUMBERS)
    return streamed(events, **how) if streams else Reply(body=b"".join(events), **how)


async def found(settings: Settings) -> list[Finding]:
    findings: list[Finding] = []
    await upstreams(settings, findings.append)
    return findings


async def asked(reply: Reply, **settings: Any) -> Finding:
    """Asks an upstream that answers so."""
    async with FakeUpstream() as upstream:
        upstream.script(reply)
        (finding,) = await found(
            Settings(openai_base_url=upstream.base_url, **settings)
        )
    return finding


async def test_an_answer_that_streams_is_ok() -> None:
    finding = await asked(
        counting(streams=True, before_body_seconds=0.1, between_writes_seconds=0.01)
    )

    assert finding.status == "ok"
    assert "gpt-4o-mini: first token after" in finding.says
    assert "40 pieces in 4" in finding.says


async def test_an_answer_in_one_lump_is_a_warning() -> None:
    finding = await asked(counting(streams=False, before_body_seconds=0.4))

    assert finding.status == "warn"
    assert "in lumps" in finding.says
    assert finding.remedy is not None
    assert "buffering" in finding.remedy


async def test_an_answer_in_several_lumps_is_a_warning() -> None:
    """As compression with a flush now and then makes them."""
    events = text_events(*NUMBERS)
    ends = [len(b"".join(events[:count])) for count in (10, 20, 30)]
    finding = await asked(
        Reply(body=b"".join(events), splits=ends, between_writes_seconds=0.2)
    )

    assert finding.status == "warn"
    assert "40 pieces in 4 reads" in finding.says


@pytest.mark.parametrize(
    ("reply", "says", "remedy"),
    [
        (Reply(status=401, body=b"{}"), "upstream_auth: ", "OPENAI_API_KEY"),
        (Reply(status=404, body=b"{}"), "upstream_error: ", "the base URL right"),
        (Reply(status=429, body=b"{}"), "upstream_rate_limited: ", "wait"),
    ],
)
async def test_a_refusal_is_a_failure_with_a_remedy(
    reply: Reply, says: str, remedy: str
) -> None:
    finding = await asked(reply)

    assert finding.status == "fail"
    assert says in finding.says
    assert finding.remedy is not None
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        ({}, "name the variable that holds its key, as api_key_env of the model"),
        ({"api_key_env": "A_KEY"}, "set A_KEY to a key that it takes"),
    ],
)
async def test_a_model_that_refuses_its_key_is_told_where_that_comes_from(
    monkeypatch: pytest.MonkeyPatch, model: dict[str, str], remedy: str
) -> None:
    monkeypatch.setenv("A_KEY", "wrong")
    async with FakeUpstream() as upstream:
        upstream.script(Reply(status=401, body=b"{}"))
        here = Model(base_url=upstream.base_url, **model)
        (finding,) = await found(Settings(models={"a": here}))

    assert finding.remedy == remedy


async def test_a_model_has_its_own_time_for_a_first_token() -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(before_headers_seconds=30))
        here = Model(base_url=upstream.base_url, first_token_timeout_seconds=0.2)
        (finding,) = await found(Settings(models={"a": here}))

    assert finding.status == "fail"
    assert "no token within 0.2 s" in finding.says
    assert "first_token_timeout_seconds" in (finding.remedy or "")


async def test_an_upstream_that_is_not_there_is_a_failure() -> None:
    (finding,) = await found(Settings(openai_base_url="http://127.0.0.1:1/v1"))

    assert finding.status == "fail"
    assert "upstream_unavailable" in finding.says


async def test_an_upstream_that_never_begins_is_a_failure() -> None:
    finding = await asked(
        Reply(before_headers_seconds=30), upstream_first_token_timeout_seconds=0.2
    )

    assert finding.status == "fail"
    assert "no token within 0.2 s" in finding.says


async def test_an_upstream_that_breaks_off_is_a_failure() -> None:
    events = text_events(*NUMBERS)
    error = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
    finding = await asked(Reply(body=b"".join(events[:5]) + error))

    assert finding.status == "fail"
    assert "out of memory" in finding.says


async def test_a_long_answer_is_not_listened_to_for_ever() -> None:
    reply = streamed(text_events(*["word "] * 5000), between_writes_seconds=0.001)
    async with FakeUpstream() as upstream:
        upstream.script(reply)
        (finding,) = await found(Settings(openai_base_url=upstream.base_url))
        await upstream.requests[0].disconnected.wait()

    assert finding.status == "ok"


async def test_an_answer_that_stalls_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upstream_check, "LONGEST_SECONDS", 0.3)
    beginning = text_events(*NUMBERS)[:20]
    finding = await asked(
        streamed(beginning, between_writes_seconds=0.005, end="stall")
    )

    assert finding.status == "ok", "what came did stream"


async def test_each_model_is_asked_under_its_name_there() -> None:
    async with FakeUpstream() as upstream:
        upstream.script(counting(streams=True))
        here = {"base_url": upstream.base_url}
        findings = await found(
            Settings(
                models={"a": Model(**here, model="big"), "b": Model(**here)},
                openai_base_url=upstream.base_url,
                default_model="c",
            )
        )
        models = [request.json["model"] for request in upstream.requests]

    assert models == ["big", "b", "c"]
    names = [finding.says.partition(":")[0] for finding in findings]
    assert names == ["a", "b", "other names, such as c"]


@pytest.mark.parametrize("default", [None, "local", "demo/echo", "a"])
async def test_the_upstream_for_all_others_is_asked_too(default: str | None) -> None:
    async with FakeUpstream() as upstream:
        upstream.script(counting(streams=True))
        here = upstream.base_url
        findings = await found(
            Settings(
                models={"a": Model(base_url=here)},
                openai_base_url=here,
                default_model=default,
            )
        )
        models = [request.json["model"] for request in upstream.requests]

    assert models == ["a", "gpt-4o-mini"]
    assert findings[1].says.startswith("other names, such as gpt-4o-mini: ")


async def test_without_an_upstream_there_is_nothing_to_ask() -> None:
    (finding,) = await found(Settings())

    assert finding.status == "ok"
    assert "none configured" in finding.says


async def test_what_is_wrong_with_the_models_is_for_others_to_tell() -> None:
    settings = Settings(models={"a": Model(base_url="http://x", api_key_env="NO_SUCH")})

    assert await found(settings) == []


STREAMED = Sample(pieces=40, reads=40, first=0.5, last=1.5, end=1.6)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "ok"),
        ({"pieces": 0, "reads": 0, "first": None}, "warn"),
        ({"last": 0.5}, "warn"),
        ({"last": 0.519}, "warn"),
        ({"last": 0.521}, "ok"),
        ({"reads": 40 // LUMP_PIECES}, "warn"),
        ({"reads": 40 // LUMP_PIECES + 1}, "ok"),
        ({"pieces": 7, "reads": 1, "last": 0.5}, "ok"),  # too short to tell
        ({"first": 0.01, "last": 0.02, "end": 0.02}, "ok"),  # a very fast one
    ],
)
def test_lumps_are_told_from_streams(changes: dict[str, Any], status: str) -> None:
    sample = msgspec.structs.replace(STREAMED, **changes)

    assert judge("m", sample, "a key").status == status


def test_a_failure_weighs_more_than_how_it_came() -> None:
    failure = Failure(code="upstream_error", message="gone", retryable=False)
    sample = msgspec.structs.replace(STREAMED, failure=failure)

    assert judge("m", sample, "a key").status == "fail"


async def test_it_is_asked_as_any_client_would_be() -> None:
    async with FakeUpstream() as upstream:
        upstream.script(counting(streams=False))
        model = Model(base_url=upstream.base_url, params={"top_p": 0.5})
        await found(Settings(models={"m": model}, params_max={"max_tokens": 64}))
        asked = upstream.requests[0].json
    assert (asked["top_p"], asked["max_tokens"]) == (0.5, 64)
