"""What an upstream is sent."""

from typing import Any

import anyio
import pytest

from tests.fakes.replies import text_events
from tests.fakes.upstream import FakeUpstream, Reply
from tests.providers.upstream_rig import Rig, call, provider_for, refusal, request, rig
from wsserver.engine.model import Finished, Text
from wsserver.providers.chat.provider import OpenAIChat, OpenAIChatSettings
from wsserver.providers.chat.request import request_members

TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "required": ["a"], "additionalProperties": False}


async def test_body_and_headers() -> None:
    async with rig(api_key="sk-1", headers={"X-Team": "a"}) as it:
        sent = await it.sent()
    assert (sent.method, sent.path) == ("POST", "/v1/chat/completions")
    assert sent.json == {
        "model": "toy",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert sent.headers["authorization"] == "Bearer sk-1"
    assert sent.headers["x-request-id"] == "req-1"
    assert sent.headers["accept-encoding"] == "identity"
    assert sent.headers["x-team"] == "a"


@pytest.mark.parametrize("ending", ["", "/", "//"])
async def test_a_base_url_may_end_in_a_slash(ending: str) -> None:
    async with FakeUpstream() as upstream:
        upstream.script(Reply(body=b"data: [DONE]\n\n"))
        async with provider_for(upstream.base_url + ending) as provider:
            await call(provider, request())
    assert upstream.requests[0].path == "/v1/chat/completions"


async def test_values_arrive_as_they_were_given() -> None:
    params = {"logit_bias": {"\u00e9\U0001f600": -(2**70)}, "seed": 2**64, "top_p": 0.1}
    async with rig() as it:
        sent = await it.sent(params=params)
    assert {name: sent.json[name] for name in params} == params


async def test_no_key_is_sent_that_was_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    async with rig() as it:
        sent = await it.sent()
    assert "authorization" not in sent.headers


async def test_a_header_can_be_the_credentials() -> None:
    async with rig(headers={"Authorization": "Basic eA=="}) as it:
        sent = await it.sent()
    assert sent.headers["authorization"] == "Basic eA=="


async def test_no_proxy_is_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with rig() as it:
        await it.sent()


async def test_a_proxy_of_the_environment_when_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeUpstream() as proxy:
        where = proxy.base_url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", f"http://user:word@{where}")
        monkeypatch.setenv("NO_PROXY", "direct.invalid")
        monkeypatch.delenv("REQUEST_METHOD", raising=False)
        proxy.script(Reply(body=b"data: [DONE]\n\n"))
        for host, there in (("upstream.invalid", True), ("direct.invalid", False)):
            base_url = f"http://ann:HUSH-123@{host}/v1"
            async with provider_for(base_url, trust_environment=True) as provider:
                if there:
                    await call(provider, request())
                else:
                    assert await refusal(provider, request())
    (sent,) = proxy.requests
    assert sent.path == "http://upstream.invalid/v1/chat/completions"
    assert sent.headers["authorization"] == "Basic YW5uOkhVU0gtMTIz"
    assert sent.headers["proxy-authorization"].startswith("Basic ")


async def test_the_conversation_is_never_named() -> None:
    async with rig(headers={"X-Conversation-ID": "c-1"}) as it:
        sent = await it.sent()
    assert not any("conversation" in name for name in sent.headers)


def members(
    defaults: dict[str, Any] | None = None, *, asks_usage: bool = True, **asked: Any
) -> dict[str, Any]:
    return request_members(request(**asked), defaults or {}, asks_usage=asks_usage)


def test_params_of_the_request_go_before_those_of_the_upstream() -> None:
    got = members({"temperature": 1, "seed": 7}, params={"temperature": 0})
    assert (got["temperature"], got["seed"]) == (0, 7)


def test_params_can_not_change_what_is_asked() -> None:
    own = {"model": "x", "messages": [], "stream": False}
    own |= {name.title(): value for name, value in own.items()}
    own |= {"MODEL": "x", "\u017ftream": False}  # a long s
    got = members(own, params=own)
    assert got["messages"] == [{"role": "user", "content": "hi"}]
    assert not {"model", "stream"}.intersection(map(str.casefold, got))
    assert [name for name in got if name.casefold() == "messages"] == ["messages"]


def test_stream_options_of_ones_own() -> None:
    params = {"stream_options": {"include_usage": False, "more": 1}}
    asked = members(params)["stream_options"]
    assert asked == {"include_usage": True, "more": 1}
    assert members(params, asks_usage=False)["stream_options"] == {"more": 1}
    assert "stream_options" not in members(asks_usage=False)


@pytest.mark.parametrize("options", [5, "x", [1], {}, None, False])
def test_stream_options_that_are_none(options: Any) -> None:
    params = {"stream_options": options}
    assert members(params=params)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in members(params=params, asks_usage=False)


@pytest.mark.parametrize("options", ["x", {"include_usage": False}])
def test_stream_options_in_another_spelling(options: Any) -> None:
    params = {"Stream_Option\u017f": options, "STREAM_OPTIONS": {"INCLUDE_USAGE": 0}}
    got = members({"stream_options": {"more": 1}}, params=params)
    assert got.pop("stream_options") == {"include_usage": True, "more": 1}
    assert not [name for name in got if name.casefold() == "stream_options"]


def test_tools() -> None:
    got = members(tools=[TOOL], tool_choice="required")
    assert (got["tools"], got["tool_choice"]) == ([TOOL], "required")
    assert "tool_choice" not in members(tools=[TOOL])
    assert not {"tools", "tool_choice"} & set(members(tool_choice="auto"))


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (OPEN, False),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "properties": {"a": OPEN}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, OPEN]}}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED]}}}, True),
        ({"type": "object"}, False),
        ({"type": "string"}, True),
    ],
)
def test_response_format(schema: dict[str, Any], strict: bool) -> None:
    assert members(response_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": strict},
    }


async def test_a_large_prompt() -> None:
    messages = [{"role": "user", "content": "é" * 2_000_000}]
    async with rig() as it:
        sent = await it.sent(messages=messages)
    assert sent.json["messages"] == messages


def refused(status: int, body: bytes) -> Reply:
    return Reply(status=status, content_type="application/json", body=body)


REFUSED = refused(
    400, b'{"error":{"message":"Unrecognized request argument: stream_options"}}'
)
FORBIDDEN = refused(
    422,
    b'{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body",'
    b'"stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}}',
)
ANSWER = Reply(body=b"".join(text_events("a")))


def asked(it: Rig) -> list[bool]:
    return ["stream_options" in sent.json for sent in it.upstream.requests]


@pytest.mark.parametrize("reply", [REFUSED, FORBIDDEN])
async def test_an_upstream_that_minds_being_asked_for_usage(reply: Reply) -> None:
    async with rig() as it:
        events = await it.call(reply, ANSWER)
        await it.call()
    assert Text("a") in events
    assert asked(it) == [True, False, False]


@pytest.mark.parametrize("status", [401, 404, 413, 429, 500, 503])
async def test_what_only_quotes_the_request_does_not_mind_it(status: int) -> None:
    quoting = refused(status, b'no room for {"stream_options":{"include_usage":true}}')
    async with rig() as it:
        await it.refusal(quoting)
        assert len(it.upstream.requests) == 1
        await it.call(ANSWER)
    assert asked(it) == [True, True]


async def test_a_model_that_minds_does_not_speak_for_the_others() -> None:
    async with rig() as it:
        await it.call(REFUSED, ANSWER)
        await it.call(model="other")
        await it.call()
    assert asked(it) == [True, False, True, False]


async def test_a_model_that_minded_is_asked_again_some_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wsserver.providers.chat.usage_asked.PAUSE_SECONDS", 0.0)
    async with rig() as it:
        await it.call(REFUSED, ANSWER)
        await it.call()
    assert asked(it) == [True, False, True]


async def test_an_upstream_that_minds_everything() -> None:
    async with rig() as it:
        failure = await it.refusal(REFUSED)
        assert (failure.code, failure.retryable) == ("upstream_error", False)
        assert len(it.upstream.requests) == 2
        sent = await it.sent()
    # It may be what somebody's own parameters were refused for.
    assert sent.json["stream_options"] == {"include_usage": True}


async def test_calls_that_come_at_once_load_the_sdk_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[OpenAIChatSettings] = []
    build = OpenAIChat.__init__.__globals__["_build_client"]

    def counting(settings: OpenAIChatSettings) -> Any:
        built.append(settings)
        return build(settings)

    monkeypatch.setattr("wsserver.providers.chat.provider._build_client", counting)
    async with rig() as it, anyio.create_task_group() as group:
        it.upstream.script(Reply(body=b"data: [DONE]\n\n"))
        group.start_soon(it.provider.warm_up)
        for _ in range(4):
            group.start_soon(call, it.provider, request())
    assert len(built) == 1
    assert len(it.upstream.requests) == 4


async def test_a_provider_that_was_never_used_closes() -> None:
    async with FakeUpstream() as upstream, provider_for(upstream.base_url):
        pass


def test_settings_do_not_show_the_key() -> None:
    settings = OpenAIChatSettings(base_url="http://x/v1", api_key="sk-secret")
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer HUSH-123"},
        {"authorization": "HUSH-123"},
        {"api-key": "HUSH-123"},
        {"X-Api-Key": "HUSH-123", "X-Team": "whatever"},
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_header_that_an_upstream_quotes_is_not_passed_on(
    headers: dict[str, str], streamed: bool
) -> None:
    error = b'{"error":{"message":"whatever: no such key: HUSH-123","code":"HUSH-123"}}'
    async with rig(headers=headers) as it:
        if streamed:
            (event,) = await it.call(Reply(body=b"data: " + error + b"\n\n"))
            assert isinstance(event, Finished)
            failure = event.failure
            assert failure is not None
        else:
            failure = await it.refusal(Reply(status=401, body=error))
    assert failure.message == "whatever: no such key: ***"
    assert failure.upstream_code == "***"


async def test_the_password_of_a_url_is_sent_and_not_passed_on() -> None:
    error = b'{"error":"bad HUSH-123 in Basic YW5uOkhVU0gtMTIz"}'
    async with FakeUpstream() as upstream:
        url = upstream.base_url.replace("//", "//ann:HUSH-123@")
        async with provider_for(url) as provider:
            upstream.script(Reply(status=401, body=error))
            failure = await refusal(provider, request())
            (asked,) = upstream.requests
    assert asked.headers["authorization"] == "Basic YW5uOkhVU0gtMTIz"
    assert failure.message == "bad *** in Basic ***"
    assert "HUSH" not in repr(OpenAIChatSettings(base_url=url))


async def test_a_key_that_an_upstream_quotes_is_not_passed_on() -> None:
    body = b'{"error":{"message":"Incorrect API key provided: sk-secret."}}'
    async with rig(api_key="sk-secret") as it:
        failure = await it.refusal(Reply(status=401, body=body))
    assert failure.code == "upstream_auth"
    assert failure.message == "Incorrect API key provided: ***."


@pytest.mark.parametrize(
    "body",
    [
        b"data: Incorrect API key provided: sk-secret.\n\n",
        b'data: {"error":"Incorrect API key provided: sk-secret."}\n\ndata: [DONE]\n\n',
        b'{"error":{"message":"Incorrect API key provided: sk-secret."}}',
    ],
)
async def test_nor_is_one_that_it_quotes_in_place_of_an_answer(body: bytes) -> None:
    async with rig(api_key="sk-secret") as it:
        *_, end = await it.call(Reply(body=body))
    assert isinstance(end, Finished)
    assert end.failure is not None
    assert end.failure.message == "Incorrect API key provided: ***."


async def test_what_is_yielded() -> None:
    async with rig() as it:
        events = await it.call(Reply(body=b"".join(text_events("a", "b"))))
    assert events[:2] == [Text("a"), Text("b")]
    assert isinstance(events[2], Finished)
