from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.fakes.replies import streamed, text_events
from tests.fakes.upstream import FakeUpstream
from wsserver.assembly.upstream_headers import upstream_headers
from wsserver.assembly.upstreams import Upstreams
from wsserver.engine.model import ModelRequest
from wsserver.settings import Model, Settings, SettingsError

URL = "http://a.invalid/v1"


def headers(environ: dict[str, str] | None = None, **members: Any) -> dict[str, str]:
    return upstream_headers("a", Model(base_url=URL, **members), environ or {})


def test_values_come_from_the_file_and_from_variables() -> None:
    both = headers({"TOKEN": "t k"}, headers={"X-A": "1"}, headers_env={"b": "TOKEN"})
    assert both == {"x-a": "1", "b": "t k"}
    assert headers(headers={"Authorization": "Basic eA=="}) == {
        "authorization": "Basic eA=="
    }


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"headers": {"x y": "1"}}, r"headers\.x y: this is no name of a header"),
        ({"headers": {"Host": "b"}}, r"headers\.Host: the server sets this header"),
        ({"headers": {"X-Conversation-Id": "b"}}, "llama.cpp would go on"),
        ({"headers": {"a": "b\nc: d"}}, r"headers\.a: the value can't be sent"),
        ({"headers": {"a": "ü"}}, "has to be ASCII"),
        ({"headers": {"a": "b", "A": "b"}}, r"headers\.A: it is there twice"),
        (
            {"headers": {"a": "b"}, "headers_env": {"A": "T"}},
            r"headers_env\.A: it is there twice",
        ),
        ({"headers_env": {"a": "NO"}}, r"headers_env\.a: NO is not set"),
        ({"headers_env": {"a": "BAD"}}, r"headers_env\.a: the value can't be sent"),
        ({"headers_env": {"te": "T"}}, r"headers_env\.te: the server sets"),
        (
            {"headers": {"Authorization": "b"}, "api_key_env": "T"},
            r"headers\.Authorization: api_key_env makes this header",
        ),
    ],
)
def test_what_can_not_be_sent(members: dict[str, Any], expected: str) -> None:
    environ = {"T": "t", "BAD": "secret\r\n"}
    with pytest.raises(SettingsError, match=expected) as it:
        headers(environ, **members)
    assert str(it.value).startswith("models.a.")
    assert "secret" not in str(it.value)


async def test_each_model_sends_its_own() -> None:
    async with FakeUpstream() as upstream, AsyncExitStack() as stack:
        models = {
            "a": Model(base_url=upstream.base_url, headers={"X-Team": "red"}),
            "b": Model(base_url=upstream.base_url, headers={"x-team": "blue"}),
            "c": Model(base_url=upstream.base_url, headers={"x-team": "red"}),
        }
        table = await Upstreams(Settings(models=models), {}, stack).table()
        targets = {name: table.resolve(name) for name in models}
        for target in targets.values():
            assert target is not None
            upstream.script(streamed(text_events("a")))
            request = ModelRequest(model="m", messages=[], request_id="r")
            async with target.provider.stream(request) as stream:
                await stream.pump(lambda _: None)
        sent = [request.headers["x-team"] for request in upstream.requests]
    assert sent == ["red", "blue", "red"]
    a, b, c = (target.provider for target in targets.values() if target is not None)
    assert a is c
    assert a is not b
