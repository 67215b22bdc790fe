"""What was counted, in order."""

from typing import Any


class Recorder:
    """Notes what is counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *values: self.counted.append((name, *values))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [values for what, *values in self.counted if what == name]  # type: ignore[misc]
