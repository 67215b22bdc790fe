"""What the server is built with where nothing is set."""

from wsserver.assembly import conversation_limits
from wsserver.settings import Settings
from wsserver.turns.services import ConversationLimits


def test_rooms_take_for_granted_what_the_settings_say() -> None:
    assert conversation_limits(Settings()) == ConversationLimits()
