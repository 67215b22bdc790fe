"""Which file the store is."""

import pytest

from wsserver.assembly.store_file import store_file
from wsserver.settings import Settings, SettingsError


def test_what_names_no_store_is_a_fault_of_the_setting() -> None:
    with pytest.raises(SettingsError, match="store is 'sqlite::memory:', but has to"):
        store_file(Settings(store="sqlite::memory:"))
