"""What refuses a command."""

from wsserver.turns.errors import refusal


def test_a_path_that_a_client_made_long_is_cut() -> None:
    body = refusal("bad_frame", "No.", param="$.config.params." + "x" * 100_000).body
    assert body.param is not None
    assert len(body.param) == 200
