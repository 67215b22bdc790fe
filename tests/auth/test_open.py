import pytest

from wsserver.auth.open import OpenAuthority


@pytest.mark.parametrize("token", [None, "anything"])
async def test_everyone_is_the_local_principal_who_may_do_everything(
    token: str | None,
) -> None:
    authority = OpenAuthority()
    local = await authority.authenticate(token)
    assert (local.name, local.space, local.expires_at) == ("local", "local", None)
    authority.authorize(local, "delete", local.key("c1"))
