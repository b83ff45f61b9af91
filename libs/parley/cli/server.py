"""Finding the stack that a command should talk to."""

import json
from dataclasses import dataclass, field

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import Invocation


@dataclass(frozen=True, slots=True)
class Server:
    """Where a stack answers over HTTP, and the key to it."""

    url: str
    api_key: str = field(repr=False)


def find_server(invocation: Invocation) -> Server:
    """Return the remote stack that PARLEY_URL names, or else the one that runs in the home.

    Raises:
        ConfigurationProblem: PARLEY_URL is no URL or has no key, or the key cannot be read.
        CliError: nothing runs in the home.
    """
    url = invocation.environment.get("PARLEY_URL")
    api_key = invocation.environment.get("PARLEY_API_KEY")
    if not url:
        return _local(invocation, api_key)
    if not url.startswith(("http://", "https://")):
        raise ConfigurationProblem(f"PARLEY_URL is {url!r}: it must start with http:// or https://")
    if not api_key:
        raise ConfigurationProblem("PARLEY_URL is set without PARLEY_API_KEY: set both")
    return Server(url.rstrip("/"), api_key)


def _local(invocation: Invocation, api_key: str | None) -> Server:
    home = invocation.home
    home.check()
    try:
        endpoints = json.loads(home.endpoints_file.read_text())
        return Server(endpoints["http"], api_key or home.api_key_file.read_text().strip())
    except FileNotFoundError as error:
        raise CliError(
            f"Parley does not run in {home.root}: start it with `{invocation.hint('up')}`, "
            "or set PARLEY_URL and PARLEY_API_KEY"
        ) from error
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationProblem(
            f"{home.endpoints_file} cannot be used: start again with `{invocation.hint('up')}`"
        ) from error
