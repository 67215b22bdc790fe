"""What takes time takes none on trio's clock, which jumps when all tasks wait."""

from tests.fakes.clocks import jumping_time  # noqa: F401 - a fixture
