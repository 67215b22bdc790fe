"""Which file the store is, looked at from outside: could it be one?

Nothing is opened or made here; that is for `wsserver.stores`.
"""

import os
import stat
from pathlib import Path

from wsserver.settings import Settings, SettingsError
from wsserver.stores.open import default_path, parse_store

_REMEDY = "name another with `--store sqlite:PATH`"


def store_file(settings: Settings) -> Path | None:
    """Returns the file that the settings name; None for the memory store.

    Raises:
        SettingsError: No store can be there; the message says what to do.
    """
    try:
        path = parse_store(settings.store, default_path(os.environ, Path("~")))
    except ValueError as error:
        raise SettingsError(f"store: {error}") from None
    if path is None:
        return None
    try:
        path = path.expanduser()
    except RuntimeError:
        raise SettingsError(
            f"store: {path}: nobody knows whose home that is; write it in full, as in"
            " `--store sqlite:PATH`"
        ) from None
    try:
        path = path.absolute()
    except FileNotFoundError:
        raise SettingsError(
            f"store: {path}: the working folder is gone; change into another, or write"
            " the path in full"
        ) from None
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path  # It may be made.
    except OSError as error:
        says = f"store: {path}: {error.strerror}"
        raise SettingsError(
            f"{says}; run this as the server's user, or {_REMEDY}"
        ) from None
    if stat.S_ISDIR(mode):
        raise SettingsError(
            f"store: {path} is a folder; name a file in it with `--store sqlite:PATH`"
        )
    if not stat.S_ISREG(mode):
        raise SettingsError(f"store: {path} is no file; {_REMEDY}")
    return path
