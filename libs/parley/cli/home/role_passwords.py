"""The passwords of the database roles that this home created, for all databases it was used with.

A role in this list belongs to this home. `keys/SERVICE.database` has only the login for the
database of the last start; homes of earlier versions have only that.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home, write_private


def read_passwords(home: Home, services: Iterable[str]) -> dict[str, str]:
    """Return role name -> password, with the logins that `services` used last.

    Raises:
        ConfigurationProblem: the list was edited and cannot be parsed.
    """
    passwords = dict(_last_login(home, service) for service in services)
    passwords.pop("", None)
    with suppress(FileNotFoundError):
        passwords |= _parsed(home)
    return passwords


def write_passwords(home: Home, passwords: Mapping[str, str]) -> None:
    """Replace the list by `passwords`."""
    write_private(home.role_passwords_file, json.dumps(passwords, indent=2, sort_keys=True) + "\n")


def _parsed(home: Home) -> dict[str, str]:
    path = home.role_passwords_file
    remedy = "restore it from a backup, or remove it to make new roles"
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise ConfigurationProblem(f"{path} is not JSON: {remedy}") from error
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ConfigurationProblem(f"{path} does not map roles to passwords: {remedy}")
    return found


def _last_login(home: Home, service: str) -> tuple[str, str]:
    """Return role and password of the last start, or empty strings."""
    try:
        login = urlsplit(home.database_url_file(service).read_text().strip())
    except FileNotFoundError:
        return "", ""
    if not login.username or not login.password:
        return "", ""
    return unquote(login.username), unquote(login.password)
