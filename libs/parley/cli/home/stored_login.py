"""The server and the API key that `parley login` stores for later commands."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import make_private_directory, write_private
from parley.cli.invocation import Invocation


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """A sign-in of the command line.

    Attributes:
        url: The server.
        login: The user.
        api_key_id: The key's id, by which it is revoked.
        api_key: The key.
    """

    url: str
    login: str
    api_key_id: str
    api_key: str = field(repr=False)


def login_file(invocation: Invocation) -> Path:
    """Return the file with the sign-in: below XDG_CONFIG_HOME, or ~/.config.

    Raises:
        ConfigurationProblem: Neither XDG_CONFIG_HOME nor HOME is set.
    """
    directory = invocation.environment.get("XDG_CONFIG_HOME", "")
    if not directory:
        home = invocation.environment.get("HOME")
        if not home:
            raise ConfigurationProblem("HOME is not set: set it, or XDG_CONFIG_HOME")
        directory = f"{home}/.config"
    return Path(directory) / "parley" / "login.json"


def stored_login(invocation: Invocation) -> StoredLogin | None:
    """Return the sign-in of the command line; None without one.

    Raises:
        ConfigurationProblem: The file cannot be used.
    """
    if not (invocation.environment.get("XDG_CONFIG_HOME") or invocation.environment.get("HOME")):
        return None
    path = login_file(invocation)
    try:
        found = json.loads(path.read_text())
        return StoredLogin(**{name: str(found[name]) for name in StoredLogin.__dataclass_fields__})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationProblem(
            f"{path} cannot be used: remove it, and sign in again with `{invocation.hint('login')}`"
        ) from error


def store_login(invocation: Invocation, login: StoredLogin) -> Path:
    """Store a sign-in, readable by its owner only, and return the file."""
    path = login_file(invocation)
    make_private_directory(path.parent)
    write_private(path, json.dumps(asdict(login), indent=2) + "\n")
    return path
