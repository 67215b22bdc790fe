"""The one error that settings, and what they name, can be refused with."""


class SettingsError(Exception):
    """Settings can't be used; each argument says of one which, why and what to do."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))
