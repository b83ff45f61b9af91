"""`parley keys`: the master keys that encrypt stored secrets, and the signing keys of services."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.home.lock import locked
from parley.cli.invocation import current
from parley.cli.options import HomeGroup
from parley.clock import SystemClock
from parley.identity import TrustFile, TrustFileUnreadable, UnknownKey
from parley.secrets import Keyring, KeyringUnreadable

#: As long as the longest token that a service signs for one call, and some more.
OVERLAP_S = 120


@click.group(cls=HomeGroup)
def keys() -> None:
    """Rotate the master key, and end the trust in signing keys."""


@keys.command()
def show() -> None:
    """Show the ids of all keys; of master keys the first one encrypts."""
    home = _home()
    for number, key in enumerate(_keyring(home).keys):
        click.echo(f"master {key.id}: {'decrypts' if number else 'encrypts'}")
    for trusted in _trusted(home).read():
        end = trusted.retired_at
        until = "" if end is None else f" until {end:%Y-%m-%d %H:%M:%S} UTC"
        click.echo(f"{trusted.service} {trusted.kid}: trusted{until}")


@keys.command()
def rotate() -> None:
    """Make a new master key; services encrypt all secrets with it at their next start."""
    with _stopped_home() as home:
        keyring = _keyring(home).with_new_key()
        keyring.save(home.master_key_file)
    click.echo(
        f"{home.master_key_file} encrypts with {keyring.writing_key.id} from the next start. "
        f"Start with `{current().hint('up')}`; then stop again and remove the old keys with "
        f"`{current().hint('keys forget')}`."
    )


@keys.command()
def forget() -> None:
    """Remove old master keys; a service whose database still needs one will not start.

    The keyring as it was stays beside the new one, until you delete it.
    """
    with _stopped_home() as home:
        keyring = _keyring(home)
        if keyring == keyring.without_old_keys():
            click.echo(f"{home.master_key_file} has one key: there is nothing to remove.")
            return
        keyring.save(home.former_master_key_file)
        keyring.without_old_keys().save(home.master_key_file)
    click.echo(
        f"{home.master_key_file} has one key. Start with `{current().hint('up')}`, "
        f"then delete {home.former_master_key_file}. If a service does not start, "
        "move that file back."
    )


@keys.command()
@click.argument("kid")
@click.option(
    "--overlap", "overlap_s", type=click.IntRange(min=0), default=OVERLAP_S, show_default=True
)
def retire(kid: str, overlap_s: int) -> None:
    """Trust the signing key KID for `overlap` more seconds; then its tokens are refused.

    Keys whose time is over are removed from the file.
    """
    home, now = _home(), SystemClock().now()
    file = _trusted(home)
    try:
        file.forget_retired(now=now)
        file.retire_key(kid, now=now, overlap_s=overlap_s)
    except UnknownKey as error:
        raise CliError(f"{error}: see `{current().hint('keys show')}`") from error
    except TrustFileUnreadable as error:
        raise CliError(str(error)) from error
    click.echo(f"{kid} is trusted for {overlap_s} s more.")


def _home() -> Home:
    return current().local_home


@contextmanager
def _stopped_home() -> Iterator[Home]:
    """Hold the lock of the home, so that no service reads the keyring meanwhile."""
    home = _home()
    _keyring(home)
    with locked(home, how_to_stop=current().hint("down")):
        yield home


def _keyring(home: Home) -> Keyring:
    try:
        return Keyring.load(home.master_key_file)
    except KeyringUnreadable as error:
        raise CliError(str(error)) from error


def _trusted(home: Home) -> TrustFile:
    return TrustFile(home.trust_file)
