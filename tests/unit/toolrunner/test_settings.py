from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from parley.rpc import Address
from parley.settings import Secret, SettingsError, read
from toolrunner.settings import Settings

GIVEN = {
    "TOOLRUNNER_LISTEN": "unix:/run/toolrunner.sock",
    "TOOLRUNNER_TRUST_FILE": "/run/trust.json",
    "TOOLRUNNER_SIGNING_KEY_FILE": "/run/key.pem",
    "TOOLRUNNER_DATA_DIRECTORY": "/data",
}


def test_chatd_is_optional() -> None:
    settings = read(Settings, GIVEN, prefix="TOOLRUNNER")
    assert (settings.data_directory, settings.chatd) == (Path("/data"), ())


def test_chatd_is_a_list_of_addresses() -> None:
    given = {**GIVEN, "TOOLRUNNER_CHATD": "unix:/run/a.sock,unix:/run/b.sock"}
    assert read(Settings, given, prefix="TOOLRUNNER").chatd == (
        Address.parse("unix:/run/a.sock"),
        Address.parse("unix:/run/b.sock"),
    )


def test_it_has_no_database_and_no_key_of_a_provider() -> None:
    hints = get_type_hints(Settings)
    assert [field.name for field in fields(Settings) if hints[field.name] is Secret] == []
    words = ("database", "master_key", "api_key", "provider", "password")
    assert [name for name in hints if any(word in name for word in words)] == []


@pytest.mark.parametrize("name", ["DATABASE_URL", "MASTER_KEY_FILE", "ANTHROPIC_API_KEY"])
def test_a_secret_in_its_environment_is_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        read(Settings, {**GIVEN, f"TOOLRUNNER_{name}": "x"}, prefix="TOOLRUNNER")
