"""What the server is built with where nothing is set."""

from wsserver.assembly.rooms import conversation_limits
from wsserver.engine.breaker import BreakerPolicy
from wsserver.settings import Settings
from wsserver.turns.services import ConversationLimits

DEFAULTS = Settings()


def test_rooms_take_for_granted_what_the_settings_say() -> None:
    assert conversation_limits(DEFAULTS) == ConversationLimits()
    assert BreakerPolicy() == BreakerPolicy(
        failures=DEFAULTS.breaker_failures,
        window_seconds=DEFAULTS.breaker_window_seconds,
        open_seconds=DEFAULTS.breaker_open_seconds,
    )
