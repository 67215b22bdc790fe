import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from wsserver.transports.files import File, load_files
from wsserver.transports.http import Site

PAGE = File(body=b"<!doctype html>", content_type="text/html", etag='"abc"')


class Operator:
    """What the site asks the server for."""

    reason: str | None = None

    def not_ready(self) -> str | None:
        return self.reason

    def metrics(self) -> bytes:
        return b"up 1\n"


def ask(
    path: str, method: str = "GET", *, reason: str | None = None, **headers: str
) -> Response:
    operator = Operator()
    operator.reason = reason
    site = Site(
        files={"/": PAGE}, not_ready=operator.not_ready, metrics=operator.metrics
    )
    known = Headers({name.replace("_", "-"): v for name, v in headers.items()})
    response = site.answer(method, path, known)
    assert response.headers["Connection"] == "close"
    return response


def test_the_page_is_served_under_a_strict_policy() -> None:
    page = ask("/")
    assert (page.status_code, page.body) == (200, PAGE.body)
    assert page.headers["Content-Length"] == str(len(PAGE.body))
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"


def test_a_page_that_is_known_is_not_sent_again() -> None:
    etag = ask("/").headers["ETag"]
    again = ask("/", If_None_Match=f'"other", {etag}')
    assert (again.status_code, again.body) == (304, b"")
    assert again.headers["ETag"] == etag
    assert ask("/").headers["Cache-Control"] == "no-cache"
    assert ask("/", If_None_Match='"other"').status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/chat", "/x"])
def test_what_changes_is_kept_nowhere(path: str) -> None:
    assert ask(path).headers.get_all("Cache-Control") == ["no-store"]


def test_health_does_not_depend_on_readiness() -> None:
    assert ask("/healthz", reason="draining").status_code == 200
    assert ask("/readyz").status_code == 200
    not_ready = ask("/readyz", reason="draining")
    assert (not_ready.status_code, not_ready.body) == (503, b"draining\n")
    assert not_ready.headers["Cache-Control"] == "no-store"


def test_metrics_are_prometheus_text() -> None:
    metrics = ask("/metrics")
    assert metrics.body == b"up 1\n"
    assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_other_methods_are_told_which_are_answered(method: str) -> None:
    response = ask("/healthz", method)
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"


def test_the_chat_without_an_upgrade_says_what_it_is() -> None:
    response = ask("/v1/chat")
    assert response.status_code == 426
    assert response.headers["Upgrade"] == "websocket"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "//",
        "/../pyproject.toml",
        "/%2e%2e/pyproject.toml",
        "/..%2fpyproject.toml",
        "/./",
        "",
        "*",
        "http://localhost/",
        "/v1/chat/",
        "/etc/passwd",
        "/\x00",
    ],
)
def test_everything_else_is_not_there(path: str) -> None:
    assert ask(path).status_code == 404
    assert ask(path, "POST").status_code == 404


def test_the_packages_files_are_found_by_their_whole_path() -> None:
    found = load_files()
    assert found
    for path, file in found.items():
        assert path.startswith("/")
        assert ".." not in path
        assert "/." not in path
        assert file.body
        assert file.etag.startswith('"')
    scripts = [file for path, file in found.items() if path.endswith(".js")]
    assert {file.content_type for file in scripts} <= {"text/javascript; charset=utf-8"}
