"""The files that are served: the chat page and the protocol's schemas.

All are read once, at the start, and found by their whole path. No path from a
request ever reaches the file system.
"""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from msgspec import Struct

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_SCHEMAS = ("schema.json", "asyncapi.json")


class File(Struct, frozen=True, kw_only=True):
    """One file as it goes out.

    Attributes:
        body: Its content.
        content_type: Its media type.
        etag: A quoted hash of the content.
    """

    body: bytes
    content_type: str
    etag: str


def load_files() -> dict[str, File]:
    """Returns the packages' files by the path they are served at.

    `client_demo/web/` is served at `/`, its `index.html` as `/` itself.
    """
    found = load_page("client_demo", "web", "/")
    schemas = files("protocol") / "schemas"
    for name in _SCHEMAS:
        if (schemas / name).is_file():
            found[f"/{name}"] = _read(schemas / name)
    return found


def load_page(package: str, folder: str, path: str) -> dict[str, File]:
    """Returns a page's files; its `index.html` is served at `path` itself.

    Args:
        package: The package that has the folder.
        folder: Its name.
        path: Where the folder is served; ends in a slash.
    """
    found = dict(_walk(files(package) / folder, path))
    index = found.pop(f"{path}index.html", None)
    if index is not None:
        found[path.rstrip("/") or "/"] = index
    return found


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, File]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{path}{entry.name}/")
        elif not entry.name.startswith("."):
            yield path + entry.name, _read(entry)


def _read(entry: Traversable) -> File:
    body = entry.read_bytes()
    suffix = PurePosixPath(entry.name).suffix
    return File(
        body=body,
        content_type=_TYPES.get(suffix, "text/plain; charset=utf-8"),
        etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    )
