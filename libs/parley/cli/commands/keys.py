"""`parley keys`: the master keys that encrypt stored secrets, and the signing keys of services."""

import asyncio
import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.invocation import current
from parley.cli.keys.plan import Rotation, Stage
from parley.cli.keys.processes import Processes, ProcessKeys, RpcProcesses, Target
from parley.cli.keys.rotation import KeyKind, KeyRotator, Overlap, begin, summary_of
from parley.cli.keys.signing import signing_key_ids
from parley.cli.options import HomeGroup, json_option
from parley.cli.supervision.process_table import load
from parley.cli.supervision.stale_processes import running
from parley.cli.text import print_json
from parley.clock import SystemClock
from parley.identity import (
    CertificateError,
    ServiceName,
    SigningKeyUnreadable,
    TrustFile,
    TrustFileUnreadable,
    UnknownKey,
)
from parley.secrets import Keyring, KeyringUnreadable

#: As long as the longest token that a service signs for one call, and some more.
OVERLAP_S = 120
SERVICE_TOKEN_DAYS = 7
WAIT_S = 1800
DAY_S = 86_400

PROCESS = click.option(
    "--process", "named", multiple=True, metavar="SERVICE=ADDRESS",
    help="A process that runs apart, such as chatd=tls:host:7101; repeatable. Without it, those of "
    "the stack in the home.",
)  # fmt: skip


@click.group(cls=HomeGroup)
def keys() -> None:
    """Rotate keys while Parley runs, and end the trust in signing keys."""


@keys.command()
@PROCESS
@json_option
def status(named: tuple[str, ...], as_json: bool) -> None:
    """Show the ids of all keys, and what running processes need them for."""
    home = _home()
    processes = _processes(home, named)
    found = () if processes is None else asyncio.run(processes.keys())
    rotation = Rotation.load(home.rotation_file)
    if as_json:
        print_json(_document(home, rotation, found), as_ascii=True)
        return
    for number, key in enumerate(_keyring(home).keys):
        click.echo(f"master {key.id}: {'decrypts' if number else 'encrypts'}")
    signing = set(_signing_kids(home).values())
    for trusted in TrustFile(home.trust_file).read():
        end = trusted.retired_at
        until = "" if end is None else f" until {end:%Y-%m-%d %H:%M:%S} UTC"
        signs = ", signs" if trusted.kid in signing else ""
        click.echo(f"{trusted.service} {trusted.kid}: trusted{until}{signs}")
    for each in found:
        click.echo(_line_of(each))
    if rotation is not None:
        hint = current().hint("keys rotate")
        click.echo(f"A rotation is {rotation.stage}; `{hint}` goes on with it.")


@keys.command()
@click.option(
    "--only", "kinds", type=click.Choice([kind.value for kind in KeyKind]), multiple=True,
    help="Rotate these keys only; repeatable. Without it, all that there are.",
)  # fmt: skip
@PROCESS
@click.option(
    "--overlap", "overlap_s", type=click.FloatRange(min=0), default=OVERLAP_S, show_default=True,
    help="Seconds for which old keys are accepted beside the new ones.",
)  # fmt: skip
@click.option(
    "--service-token-days", type=click.FloatRange(min=0), default=SERVICE_TOKEN_DAYS,
    show_default=True, help="Days for which service tokens of the old key of the gateway are good.",
)  # fmt: skip
@click.option(
    "--wait", "wait_s", type=click.FloatRange(min=0), default=WAIT_S, show_default=True,
    help="Seconds to wait for processes before giving up; running this again goes on.",
)  # fmt: skip
def rotate(
    kinds: tuple[str, ...],
    named: tuple[str, ...],
    overlap_s: float,
    service_token_days: float,
    wait_s: float,
) -> None:
    """Replace the master key, the signing keys and the certificate authority.

    The stack may run. After an interruption the same command goes on where it was.
    """
    home = _home()
    _keyring(home)
    _signing_kids(home)
    overlap = Overlap(overlap_s, service_token_days * DAY_S, wait_s)
    with _changing(home):
        chosen = tuple(map(KeyKind, kinds)) or tuple(KeyKind)
        try:
            asyncio.run(_rotate(home, _processes(home, named), chosen, overlap))
        except (CertificateError, TrustFileUnreadable, SigningKeyUnreadable) as error:
            raise CliError(str(error)) from error


@keys.command()
@click.argument("kid")
@click.option(
    "--overlap", "overlap_s", type=click.IntRange(min=0), default=OVERLAP_S, show_default=True,
    help="Seconds for which it is still trusted.",
)  # fmt: skip
def retire(kid: str, overlap_s: int) -> None:
    """Trust the signing key KID for `overlap` more seconds; then its tokens are refused.

    Keys whose time is over are removed from the file. A key that a service signs with cannot be
    retired.
    """
    home, now = _home(), SystemClock().now()
    if kid in _signing_kids(home).values():
        raise CliError(
            f"a service signs with {kid}: every call would be refused. Give the service a new key "
            f"with `{current().hint('keys rotate --only signing')}`"
        )
    file = TrustFile(home.trust_file)
    with _changing(home):
        try:
            file.forget_retired(now=now)
            file.retire_key(kid, now=now, overlap_s=overlap_s)
        except UnknownKey as error:
            raise CliError(f"{error}: see `{current().hint('keys status')}`") from error
        except TrustFileUnreadable as error:
            raise CliError(str(error)) from error
    click.echo(f"{kid} is trusted for {overlap_s} s more.")


async def _rotate(
    home: Home, processes: Processes | None, kinds: tuple[KeyKind, ...], overlap: Overlap
) -> None:
    clock = SystemClock()
    rotator = KeyRotator(home, processes, clock, overlap, click.echo)
    rotation = begin(home, kinds, clock.now())
    while (advanced := await rotator.advance(rotation)) is not None:
        rotation = advanced
        if processes is None:
            click.echo(_next_step(rotation))
            return
    master_key_id = _keyring(home).writing_key.id
    issue = current().hint("token issue")
    for line in summary_of(rotation, overlap, master_key_id=master_key_id, issue=issue):
        click.echo(line)


def _next_step(rotation: Rotation) -> str:
    again = f"run `{current().hint('keys rotate')}` again"
    match rotation.stage:
        case Stage.USED:
            return (
                "The new keys are in use. Give the files to services that run apart "
                f"(`{current().hint('init DIRECTORY')}`), or start the stack "
                f"(`{current().hint('up')}`); then {again} to remove the old ones."
            )
        case _:
            return (
                "The new keys exist. If services run apart, give them the files "
                f"(`{current().hint('init DIRECTORY')}`); then {again} to use them."
            )


def _processes(home: Home, named: tuple[str, ...]) -> Processes | None:
    """Return the processes to ask; None if none is known."""
    table = load(home.processes_file)
    if named:
        targets = [_target(each) for each in named]
    elif running(table.supervisor) is not None:
        targets = [
            Target(each.name, ServiceName(each.service), each.address)
            for each in table.processes
            if each.service in list(ServiceName)
        ]
    else:
        return None
    return RpcProcesses(home, targets, SystemClock())


def _target(text: str) -> Target:
    service, equals, address = text.partition("=")
    if not equals or service not in list(ServiceName):
        raise ConfigurationProblem(
            f"--process {text}: write SERVICE=ADDRESS, with one of {', '.join(ServiceName)}"
        )
    if not address.startswith(("unix:", "tcp:", "tls:")):
        raise ConfigurationProblem(
            f"--process {text}: the address begins with unix:, tcp: or tls:, such as tls:host:7101"
        )
    return Target(text, ServiceName(service), address)


def _line_of(process: ProcessKeys) -> str:
    if not process.answers:
        return f"{process.name}: does not answer"
    values = {} if process.master is None else process.master.values
    sealed = ", ".join(f"{count} values of {key_id}" for key_id, count in sorted(values.items()))
    return f"{process.name}: signs with {process.signing_key_id}" + (sealed and f"; {sealed}")


def _document(
    home: Home, rotation: Rotation | None, found: Sequence[ProcessKeys]
) -> dict[str, object]:
    return {
        "master_key_ids": [key.id for key in _keyring(home).keys],
        "signing_key_ids": _signing_kids(home),
        "trusted": [
            {
                "kid": key.kid,
                "service": key.service,
                "until": None if key.retired_at is None else key.retired_at.isoformat(),
            }
            for key in TrustFile(home.trust_file).read()
        ],
        "rotation": None if rotation is None else rotation.stage,
        "processes": [
            {
                "name": each.name,
                "answers": each.answers,
                "signing_key_id": each.signing_key_id,
                "values": {} if each.master is None else dict(each.master.values),
                "damaged": [] if each.master is None else list(each.master.damaged),
            }
            for each in found
        ],
    }


def _home() -> Home:
    return current().local_home


@contextmanager
def _changing(home: Home) -> Iterator[None]:
    """Exclude other commands that change keys."""
    descriptor = os.open(home.rotation_lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise CliError("another command changes the keys of this home: wait for it") from error
    finally:
        os.close(descriptor)


def _keyring(home: Home) -> Keyring:
    try:
        return Keyring.load(home.master_key_file)
    except KeyringUnreadable as error:
        raise CliError(str(error)) from error


def _signing_kids(home: Home) -> dict[str, str]:
    """Return the ids of the keys that services sign with."""
    try:
        return signing_key_ids(home)
    except SigningKeyUnreadable as error:
        raise CliError(str(error)) from error
