"""Patterns of frames, and the names that a scenario gives to values of them."""

from typing import Any


class Names:
    """What names stand for: `$name` is bound where it is first met.

    In a pattern an object holds for one that has these members, whatever else it
    has; null for what is missing; `*` for anything that is there.
    """

    def __init__(self, known: dict[str, Any] | None = None) -> None:
        self._known = dict(known or {})

    def forget(self, name: str) -> None:
        """Lets a name stand for something else."""
        self._known.pop(name, None)

    def fits(self, pattern: Any, value: Any) -> bool:
        """Says whether a value is like a pattern; only then binds its names."""
        before = dict(self._known)
        try:
            self.match(pattern, value)
        except AssertionError:
            self._known = before
            return False
        return True

    def match(self, pattern: Any, value: Any) -> None:
        """Compares a value with a pattern.

        Raises:
            AssertionError: Says where they differ.
        """
        if isinstance(pattern, dict):
            assert isinstance(value, dict), f"{value!r} is not {pattern}"
            for key, wanted in pattern.items():
                self.match(wanted, value.get(key))
        elif isinstance(pattern, list):
            assert isinstance(value, list), f"{value!r} is not {pattern}"
            assert len(value) == len(pattern), f"{value} is not {pattern}"
            for wanted, each in zip(pattern, value, strict=True):
                self.match(wanted, each)
        elif isinstance(pattern, str) and pattern.startswith("$"):
            assert value is not None, f"there is no {pattern}"
            known = self._known.setdefault(pattern, value)
            assert value == known, f"{pattern} was {known!r} and is {value!r}"
        elif pattern == "*":
            assert value is not None, "it is missing"
        else:
            assert value == pattern, f"{value!r} is not {pattern!r}"

    def put_into(self, given: Any) -> Any:
        """Puts what names stand for in their place."""
        if isinstance(given, dict):
            return {key: self.put_into(value) for key, value in given.items()}
        if isinstance(given, list):
            return [self.put_into(value) for value in given]
        return self._known.get(given, given) if isinstance(given, str) else given
