"""How many there are of something, in words."""


def counted(count: float, noun: str) -> str:
    """Returns a whole number of things, as in `1 user` and `1,000 users`."""
    number = f"{count:,.0f}"
    return f"{number} {noun}{'' if number == '1' else 's'}"
