"""Who may connect, for how long, and what is told of it: over real sockets."""

import os
from pathlib import Path

import anyio
import pytest
from websockets.exceptions import InvalidStatus

from tests.auth.issuer import AUDIENCE, ISSUER, jwk, key_set, now, token
from tests.fakes.server import server
from tests.fakes.upstream import FakeUpstream, Reply
from tests.fakes.wire import Copy, wire
from tests.whole.keyed import hmac_token, tokens_by_secret

ROOT = Path(__file__).parents[2]
HELLO = {"type": "hello", "protocol": 1}
# Six seconds of answer.
SLOW_TURN = {"model": "demo/long:tokens=120,tokens_per_second=20"}


async def test_with_tokens_it_answers_to_any_name(tmp_path: Path) -> None:
    """Without credentials only loopback names are served."""
    async with tokens_by_secret(tmp_path) as running:
        host, port = running.http.removeprefix("http://").split(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            head = "GET / HTTP/1.1\r\nHost: chat.example.org\r\n\r\n"
            await stream.send(head.encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")


# The end of credentials (L-11)


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_token_that_ends_ends_the_connection_and_no_turn(
    tmp_path: Path,
) -> None:
    copies = {"c": Copy()}
    async with tokens_by_secret(tmp_path) as running:
        ends_at = now() + 3
        async with wire(running.url, copies, token=hmac_token(exp=ends_at)) as client:
            await client.until(lambda: client.controls)
            (notice,) = client.controls
            assert notice["type"] == "auth_expiring"
            assert 1000 < notice["in_ms"] <= 3000
            await client.open("c", config=SLOW_TURN)
            reply = await client.command("send", conversation="c", content="go")
            assert await client.closed() == 4401
            assert now() == pytest.approx(ends_at, abs=1)
        assert copies["c"].texts[reply["turn"]]
        assert reply["turn"] not in copies["c"].dones
        async with wire(running.url, copies, token=hmac_token()) as client:
            assert (await client.open("c"))["outcome"] == "replay"
            done = await client.done("c", reply["turn"])
            assert done["status"] == "completed"
            copies["c"].prove()


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_refresh_keeps_the_connection_until_the_new_end(
    tmp_path: Path,
) -> None:
    async with tokens_by_secret(tmp_path) as running:
        began = now()
        async with wire(running.url, token=hmac_token(exp=began + 3)) as client:
            await client.open("c", config=SLOW_TURN)
            reply = await client.command("send", conversation="c", content="go")
            turn = reply["turn"]
            for wrong, code in (
                (hmac_token(sub="eve"), "forbidden"),
                (hmac_token(**{"wsserver.space": "another"}), "forbidden"),
                (hmac_token(exp=began - 60), "unauthorized"),
                (hmac_token(aud="another"), "unauthorized"),
                ("nonsense", "unauthorized"),
            ):
                reply = await client.command("refresh", token=wrong)
                assert reply["error"]["code"] == code
                assert reply["error"]["retryable"] is False
            later = hmac_token(exp=began + 5)
            reply = await client.command("refresh", token=later)
            assert reply["outcome"] == "refreshed"
            with anyio.move_on_after(began + 4 - now()):
                await client.closed()
            assert client.close_code is None, "the old end has passed"
            assert (await client.command("close", conversation="x"))["ok"]
            notices = [f for f in client.controls if f["type"] == "auth_expiring"]
            assert len(notices) == 2, "one for each token"
            assert turn not in client.copies["c"].dones, "it still runs"
            assert await client.closed() == 4401
            assert now() == pytest.approx(began + 5, abs=1)


async def test_a_token_that_has_ended_lets_nobody_in(tmp_path: Path) -> None:
    async with tokens_by_secret(tmp_path) as running:
        for given in (hmac_token(exp=now() - 60), None, "", "x.y.z"):
            async with wire(running.url, hello=False) as client:
                await client.send(**HELLO, token=given)
                assert await client.closed() == 4401
                (error,) = client.frames
                assert error["code"] == "unauthorized"
        assert "the token has expired" in running.log


# An issuer that publishes its keys


# It asks again after ten seconds; here it does after one.
HASTY = "from wsserver.auth import key_set\nkey_set.RETRY_SECONDS = 1.0\n"


@pytest.mark.timeout(60)
async def test_a_server_starts_without_its_issuer_and_finds_it_later(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HASTY)
    async with FakeUpstream() as issuer:
        issuer.script(Reply(status=503, content_type=None))
        url = issuer.base_url.removesuffix("/v1") + "/keys"
        flags = [
            "--store=memory",
            f"--auth-jwt-jwks-url={url}",
            "--auth-jwt-algorithms=RS256",
            f"--auth-jwt-audience={AUDIENCE}",
            f"--auth-jwt-issuer={ISSUER}",
        ]
        path = f"{tmp_path}{os.pathsep}{ROOT}"
        env = {"no_proxy": "127.0.0.1", "PYTHONPATH": path}
        async with server(*flags, folder=tmp_path, env=env) as running:
            given = token(kid="k1")
            async with wire(running.url, hello=False) as client:
                await client.send(**HELLO, token=given)
                assert await client.closed() == 4401
            assert "signing_keys_unavailable" in running.log
            issuer.script(Reply(body=key_set(jwk("rsa", kid="k1"), jwk("ec"))))
            with anyio.fail_after(20):
                while "signing_keys_available" not in running.log:
                    await anyio.sleep(0.1)
            asked = len(issuer.requests)
            for options in (
                {"token": given},
                {"additional_headers": {"Authorization": f"Bearer {given}"}},
            ):
                async with wire(running.url, **options) as client:
                    assert (await client.open("c"))["ok"]
            for wrong in (
                token(kid="k2"),
                token("rsa", number=1, kid="k1"),
                token("ec"),
                token(kid="k1", iss="https://another.example"),
            ):
                async with wire(running.url, hello=False) as client:
                    await client.send(**HELLO, token=wrong)
                    assert await client.closed() == 4401
            assert len(issuer.requests) <= asked + 1, "not once for each token"


# Viewers


async def test_scopes_make_viewers(tmp_path: Path) -> None:
    scoped = {"WSSERVER_AUTH_JWT_SCOPE_CLAIM": "scope"}
    shared = {"wsserver.space": "team"}
    writer_token = hmac_token(sub="ann", scope="wsserver:all", **shared)
    viewer_token = hmac_token(sub="vera", scope="openid wsserver:read", **shared)
    async with (
        tokens_by_secret(tmp_path, **scoped) as running,
        wire(running.url, token=writer_token) as writer,
        wire(running.url, token=viewer_token) as viewer,
    ):
        await writer.open("c", config={"model": "demo/echo"})
        assert (await viewer.open("c"))["outcome"] == "replay"
        reply = await writer.command("send", conversation="c", content="hello")
        done = await viewer.done("c", reply["turn"])
        assert done["status"] == "completed"
        await writer.done("c", reply["turn"])
        assert viewer.copies["c"].texts == writer.copies["c"].texts
        reply = await viewer.command("send", conversation="c", content="me too")
        assert reply["error"]["code"] == "forbidden"
        async with wire(running.url, hello=False) as nobody:
            await nobody.send(**HELLO, token=hmac_token(scope="openid", **shared))
            assert await nobody.closed() == 4403


# Origins (L-09)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://{authority}", 101),
        ("https://chat.example.org", 101),
        (None, 101),
    ],
)
async def test_a_page_connects_from_where_it_may(
    tmp_path: Path, origin: str | None, status: int
) -> None:
    allowed = {"WSSERVER_ALLOWED_ORIGINS": "https://chat.example.org"}
    async with tokens_by_secret(tmp_path, **allowed) as running:
        authority = running.url.removeprefix("ws://").removesuffix("/v1/chat")
        headers = {"Authorization": f"Bearer {hmac_token()}"}
        if origin is not None:
            headers["Origin"] = origin.format(authority=authority)
        if status == 101:
            async with wire(running.url, additional_headers=headers) as client:
                assert client.welcome
        else:
            with pytest.raises(InvalidStatus) as caught:
                async with wire(running.url, additional_headers=headers):
                    pass
            assert caught.value.response.status_code == status
