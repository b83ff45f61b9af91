"""Finds the stack that a command should call."""

import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.home.stored_login import StoredLogin, stored_login
from parley.cli.invocation import Invocation


@dataclass(frozen=True, slots=True)
class Server:
    """The HTTP address of a stack, and the API key for it."""

    url: str
    api_key: str = field(repr=False)


def find_server(invocation: Invocation) -> Server:
    """Return the remote stack of PARLEY_URL, or else the one that a command calls by default.

    That is the one of `parley login`, unless a home is named, and else the one that runs in the
    home.

    Raises:
        ConfigurationProblem: PARLEY_URL is not a URL or has no key, or the key cannot be used.
        CliError: no stack runs in the home.
    """
    url = invocation.environment.get("PARLEY_URL", "").strip()
    api_key = invocation.environment.get("PARLEY_API_KEY", "").strip()
    if api_key:
        _check_key(api_key, "PARLEY_API_KEY")
    if not url:
        stored = None if api_key or _names_home(invocation) else stored_login(invocation)
        return _local(invocation, api_key) if stored is None else _of_login(stored)
    check_url(url, "PARLEY_URL")
    if not api_key:
        stored = stored_login(invocation)
        if stored is not None and stored.url == url.rstrip("/"):
            return _of_login(stored)
        raise ConfigurationProblem(
            "PARLEY_URL is set without PARLEY_API_KEY: set both, or sign in with "
            f"`{invocation.hint('login')}`"
        )
    return Server(url.rstrip("/"), api_key)


def default_url(invocation: Invocation) -> str:
    """Return the address of the stack to sign in to: PARLEY_URL, or the one in the home.

    Raises:
        ConfigurationProblem: PARLEY_URL is not a URL, or the home cannot be used.
        CliError: no stack runs in the home.
    """
    url = invocation.environment.get("PARLEY_URL", "").strip()
    if not url:
        return _local(invocation, "").url
    check_url(url, "PARLEY_URL")
    return url.rstrip("/")


def check_url(url: str, source: str) -> None:
    """Refuse what is no address of a server.

    Raises:
        ConfigurationProblem: it is none.
    """
    problem = _problem_of_url(url)
    if problem is not None:
        # The value is not repeated: it may contain a password, or be the key in the wrong variable.
        raise ConfigurationProblem(
            f"{source} is no address of a server ({problem}): write http://HOST:PORT"
        )


def _names_home(invocation: Invocation) -> bool:
    return invocation.home_option is not None or "PARLEY_HOME" in invocation.environment


def _of_login(stored: StoredLogin) -> Server:
    _check_key(stored.api_key, "the file of `parley login`")
    return Server(stored.url, stored.api_key)


def local_server(home: Home, url: str) -> Server:
    """Return the stack of a home at a URL; without a key its requests will be refused.

    Raises:
        ConfigurationProblem: the file with the key cannot be used.
    """
    try:
        found = home.api_key_file.read_text().strip()
    except OSError as error:
        raise ConfigurationProblem(f"{home.api_key_file} cannot be read: {error}") from error
    _check_key(found, str(home.api_key_file))
    return Server(url, found)


def _local(invocation: Invocation, api_key: str) -> Server:
    home = invocation.home
    home.check()
    try:
        url = json.loads(home.endpoints_file.read_text())["http"]
        found = api_key or home.api_key_file.read_text().strip()
    except FileNotFoundError as error:
        raise CliError(
            f"Parley does not run in {home.root}: start it with `{invocation.hint('up')}`, "
            f"sign in to a server with `{invocation.program} login URL`, "
            "or set PARLEY_URL and PARLEY_API_KEY"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationProblem(
            f"{home.endpoints_file} cannot be used: start again with `{invocation.hint('up')}`"
        ) from error
    _check_key(found, str(home.api_key_file))
    return Server(url, found)


def _check_key(api_key: str, source: str) -> None:
    """Refuse a key that a header cannot contain; the key itself is never printed."""
    if not api_key or not _is_one_word(api_key):
        raise ConfigurationProblem(
            f"{source} holds no API key: it must be one word of ASCII letters, digits and signs"
        )


def _problem_of_url(url: str) -> str | None:
    if not _is_one_word(url):
        return "it has spaces, or characters that are not ASCII"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        (host or "").encode("idna")
    except ValueError:
        return "its host is malformed"
    try:
        _ = parts.port
    except ValueError:
        return "its port is no number up to 65535"
    if parts.scheme not in ("http", "https"):
        return "it must start with http:// or https://"
    if not host:
        return "it names no host"
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "it may have a host, a port and a path, nothing else"
    return None


def _is_one_word(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
