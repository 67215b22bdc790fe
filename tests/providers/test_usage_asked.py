"""Which models are asked for usage."""

from wsserver.providers.chat.usage_asked import MOST_MODELS, PAUSE_SECONDS, UsageAsked


def test_a_model_that_minds_is_left_alone_for_a_while() -> None:
    usage = UsageAsked()
    assert usage.asks("a", 5.0)
    usage.minded("a", 5.0)
    assert not usage.asks("a", 4.9 + PAUSE_SECONDS)
    assert usage.asks("b", 5.0)
    assert usage.asks("a", 5.0 + PAUSE_SECONDS)


def test_names_of_models_do_not_fill_the_memory() -> None:
    usage = UsageAsked()
    for number in range(2 * MOST_MODELS):
        usage.minded(str(number), 0.0)
    left = [n for n in range(2 * MOST_MODELS) if not usage.asks(str(n), 0.0)]
    assert left == list(range(MOST_MODELS, 2 * MOST_MODELS))
