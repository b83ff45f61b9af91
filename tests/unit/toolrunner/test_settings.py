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


@pytest.mark.parametrize(
    ("first", "count", "problem"),
    [
        ("1001", "10", "begins with 999: users below 1000 are the system's"),
        ("60000", "10000", "contains 65534, which is reserved"),
        ("65536", "10", "contains 65534, which is reserved"),
        ("4294967290", "10", "contains 4294967295, which is reserved"),
        ("5000000000", "10", "ends with 5000000009, and there are only 4294967295 users"),
    ],
)
def test_a_range_of_users_that_a_node_cannot_have_is_refused(
    first: str, count: str, problem: str
) -> None:
    given = {**GIVEN, "TOOLRUNNER_FIRST_USER": first, "TOOLRUNNER_USERS_MAX": count}
    with pytest.raises(SettingsError) as refused:
        read(Settings, given, prefix="TOOLRUNNER")
    assert refused.value.problems == (
        f"the range of TOOLRUNNER_FIRST_USER={first} and TOOLRUNNER_USERS_MAX={count} {problem}; "
        "choose another one",
    )


@pytest.mark.parametrize(("name", "value"), [("FIRST_USER", "-5"), ("USERS_MAX", "0")])
def test_a_range_without_users_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError):
        read(Settings, {**GIVEN, f"TOOLRUNNER_{name}": value}, prefix="TOOLRUNNER")


def test_the_lowest_and_the_highest_users_can_be_a_range() -> None:
    for first, count in (("1002", "64532"), ("65538", "4294901757")):
        given = {**GIVEN, "TOOLRUNNER_FIRST_USER": first, "TOOLRUNNER_USERS_MAX": count}
        found = read(Settings, given, prefix="TOOLRUNNER").user_range
        assert (found.first, found.count) == (int(first), int(count))


def test_it_has_no_database_and_no_key_of_a_provider() -> None:
    hints = get_type_hints(Settings)
    assert [field.name for field in fields(Settings) if hints[field.name] is Secret] == []
    words = ("database", "master_key", "api_key", "provider", "password")
    assert [name for name in hints if any(word in name for word in words)] == []


@pytest.mark.parametrize("name", ["DATABASE_URL", "MASTER_KEY_FILE", "ANTHROPIC_API_KEY"])
def test_a_secret_in_its_environment_is_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        read(Settings, {**GIVEN, f"TOOLRUNNER_{name}": "x"}, prefix="TOOLRUNNER")
