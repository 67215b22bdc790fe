"""What real gateways made of a model's answers, as they sent it.

LiteLLM's proxy 1.108.7 and Portkey's gateway 1.15.2, each in front of llama.cpp; ids and
times are shortened.
"""

import pytest

from tests.providers.decoding import DONE, decode, raw
from wsserver.engine.model import Usage

LITELLM = (
    b'data: {"id":"c","created":1,"model":"m","object":"chat.completion.chunk",'
    b'"system_fingerprint":"b0","choices":[%b]}\n\n'
)
PORTKEY = (
    b'data: {"choices":[%b],"created":1,"id":"c","model":"m","system_fingerprint":"b0",'
    b'"object":"chat.completion.chunk"}\n\n'
)
ROLE = LITELLM % b'{"index":0,"delta":{"role":"assistant"}}'
IT = LITELLM % b'{"index":0,"delta":{"content":"It"}}'
IS = LITELLM % b'{"index":0,"delta":{"content":" is"}}'
STOP = LITELLM % b'{"finish_reason":"stop","index":0,"delta":{}}'
COUNTS = raw(
    '{"id":"c","created":1,"model":"m","object":"chat.completion.chunk",'
    '"system_fingerprint":"b0","choices":[{"index":0,"delta":{}}],"usage":'
    '{"completion_tokens":2,"prompt_tokens":332,"total_tokens":334,'
    '"completion_tokens_details":{"reasoning_tokens":0,"text_tokens":2},'
    '"prompt_tokens_details":{"cached_tokens":263}}}'
)
LOST = raw(
    '{"error": {"message": "litellm.APIConnectionError: APIConnectionError: '
    'OpenAIException - Connection error.", "type": null, "param": null, "code": "500"}}'
)

in_any_reads = pytest.mark.parametrize("step", [1, 7, 100, 10_000])


@in_any_reads
def test_litellm_passes_an_answer_on(step: int) -> None:
    body = ROLE + IT + IS + STOP + COUNTS + DONE
    decoded = decode(body, cuts=range(step, len(body), step))
    assert decoded.texts == ["It", " is"]
    assert decoded.end.reason == "stop"
    assert decoded.end.usage == Usage(
        input_tokens=332, output_tokens=2, reasoning_tokens=0, cached_tokens=263
    )


@in_any_reads
def test_litellm_tells_that_the_model_was_killed(step: int) -> None:
    body = ROLE + IT + LOST
    decoded = decode(body, cuts=range(step, len(body), step))
    assert decoded.said == ("It", "error")
    failure = decoded.end.failure
    assert failure is not None
    assert (failure.code, failure.retryable) == ("upstream_error", True)
    assert failure.message.endswith("OpenAIException - Connection error.")


@in_any_reads
def test_portkey_ends_the_answer_of_a_model_that_was_killed(step: int) -> None:
    role = PORTKEY % (
        b'{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}'
    )
    it = PORTKEY % b'{"finish_reason":null,"index":0,"delta":{"content":"It"}}'
    body = role + it
    decoded = decode(body, cuts=range(step, len(body), step))
    assert decoded.said == ("It", "incomplete")
    assert decode(body, aborted=True).said == ("It", "incomplete")
