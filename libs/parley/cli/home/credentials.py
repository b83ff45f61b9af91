"""The secrets a stack needs before it starts: generated once, stored, checked at every start."""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home, write_private
from parley.identity import (
    ApiKey,
    IdentityError,
    MalformedApiKey,
    ServiceName,
    SigningKey,
    TrustedKey,
    TrustFile,
)
from parley.secrets import Keyring, SecretsError


def prepare_secrets(home: Home) -> str:
    """Generate missing secrets, check existing ones, and return the login token of this start.

    Raises:
        ConfigurationProblem: files exist that cannot be used; it lists all of them.
    """
    problems: list[str] = []
    for prepare in (_prepare_signing_keys, _prepare_audit_key, _prepare_keyring, _prepare_api_key):
        try:
            prepare(home)
        except ConfigurationProblem as error:
            problems += error.problems
        except (IdentityError, SecretsError) as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{error.filename}: {error.strerror}; fix its permissions")
    if problems:
        raise ConfigurationProblem(*problems)
    login_token = secrets.token_urlsafe(32)
    write_private(home.login_token_file, login_token)
    return login_token


def _prepare_signing_keys(home: Home) -> None:
    keys = []
    for service in ServiceName:
        path = home.signing_key_file(service)
        _make_once(path, lambda target: SigningKey.generate().save(target))
        keys.append(TrustedKey.of(service, SigningKey.load(path)))
    file = TrustFile(home.trust_file)
    trusted = file.read() if home.trust_file.exists() else ()
    known = {key.kid for key in trusted}
    missing = [key for key in keys if key.kid not in known]
    if missing:
        file.write((*trusted, *missing))


def _prepare_audit_key(home: Home) -> None:
    _make_once(home.audit_key_file, lambda target: SigningKey.generate().save(target))
    SigningKey.load(home.audit_key_file)


def _prepare_keyring(home: Home) -> None:
    _make_once(home.master_key_file, lambda target: Keyring.generate().save(target))
    Keyring.load(home.master_key_file)


def _prepare_api_key(home: Home) -> None:
    _make_once(
        home.api_key_file, lambda target: write_private(target, ApiKey.generate().reveal() + "\n")
    )
    try:
        ApiKey.parse(home.api_key_file.read_text(errors="replace").strip())
    except MalformedApiKey as error:
        raise ConfigurationProblem(
            f"{home.api_key_file} is damaged ({error}): restore it, or remove it to get a new key"
        ) from error


def _make_once(path: Path, make: Callable[[Path], None]) -> None:
    if not path.exists():
        make(path)


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
