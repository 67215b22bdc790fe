"""Which model name leads to which provider."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from wsserver.turns.services import Target

DEMO_PREFIX = "demo/"


class ModelTable:
    """Configured names, the demo provider's, and one upstream for all others.

    Attributes:
        default: The model of a conversation that names none.
    """

    def __init__(
        self,
        *,
        default: str,
        configured: Mapping[str, Target],
        demo: Target,
        demo_names: Sequence[str],
        accepts_demo: Callable[[str], bool],
        upstream: Target | None,
    ) -> None:
        """Makes the table.

        Args:
            default: Has to be resolvable.
            configured: Targets by name; names with a fixed meaning.
            demo: Serves names that begin with `demo/`.
            demo_names: Those of them to show.
            accepts_demo: Says which of them there are.
            upstream: Serves any other name, under that name; None for no such.
        """
        self.default = default
        self._configured = dict(configured)
        self._demo = demo
        self._demo_names = list(demo_names)
        self._accepts_demo = accepts_demo
        self._upstream = upstream
        assert self.resolve(default) is not None, "the default model has to exist"

    def replacing(self, configured: Mapping[str, Target]) -> "ModelTable":
        """Returns the table with other targets for some of the configured names."""
        return ModelTable(
            default=self.default,
            configured=self._configured | dict(configured),
            demo=self._demo,
            demo_names=self._demo_names,
            accepts_demo=self._accepts_demo,
            upstream=self._upstream,
        )

    def names(self) -> Sequence[str]:
        """Returns the names to show to clients, the default first."""
        names = [*self._configured, *self._demo_names]
        return [self.default, *(name for name in names if name != self.default)]

    def resolve(self, name: str) -> Target | None:
        """Returns where the name leads, None if nowhere."""
        found = self._configured.get(name)
        if found is not None:
            return found
        if name.startswith(DEMO_PREFIX):
            return _named(self._demo, name) if self._accepts_demo(name) else None
        return None if self._upstream is None else _named(self._upstream, name)

    def provider_name(self, model: str) -> str | None:
        """Returns what metrics call the provider of a model; None if there is none."""
        target = self.resolve(model)
        return None if target is None else target.provider_name


def _named(target: Target, model: str) -> Target:
    return structs.replace(target, model=model)
