"""The statements of the SQLite store, one a file."""

from importlib.resources import files


def statement(name: str) -> str:
    """Returns the text of `NAME.sql`."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
