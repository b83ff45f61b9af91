"""`parley certs`: the installation's certificate authority and the certificates it issues."""

from datetime import timedelta
from pathlib import Path

import click

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.layout import Home, make_private_directory
from parley.cli.invocation import current
from parley.cli.keys.plan import Rotation
from parley.cli.options import HomeGroup
from parley.clock import SystemClock
from parley.identity import (
    CertificateAuthority,
    CertificateAuthorityExists,
    CertificateError,
    CertificateFiles,
    CertificateUnreadable,
    ServiceName,
    describe_certificate,
    needs_renewal,
)

DAYS_DEFAULT = 30
#: The lifetime of the authority itself.
DAYS_MAX = 3650
DAYS = click.IntRange(min=1, max=DAYS_MAX)


@click.group(cls=HomeGroup)
def certs() -> None:
    """Issue and renew certificates for mTLS between machines."""


@certs.command()
def init() -> None:
    """Create the certificate authority of this home."""
    home = _home()
    try:
        CertificateAuthority.create(home.tls, clock=SystemClock())
    except CertificateAuthorityExists as error:
        raise CliError(
            f"{home.tls} already holds an authority: keep it, its certificates depend on it"
        ) from error
    click.echo(f"Created the authority in {home.tls}. Keep ca-key.pem there and secret.")


@certs.command()
@click.argument("holder")
@click.option("--name", "names", multiple=True, help="A host name or IP it answers on; repeatable.")
@click.option("--days", type=DAYS, default=DAYS_DEFAULT, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Directory (default: tls/HOLDER).")
def issue(holder: str, names: tuple[str, ...], days: int, out: Path | None) -> None:
    """Issue a certificate for HOLDER: a service, or any other name for an internal caller."""
    is_service = holder in list(ServiceName)
    if names and not is_service:
        raise ConfigurationProblem(
            f"{holder} is no service and answers nowhere: leave --name out, "
            f"or name one of {', '.join(ServiceName)}"
        )
    home = _home()
    _refuse_during_rotation(home)
    authority = _authority(home)
    lifetime = timedelta(days=days)
    try:
        if is_service:
            files = authority.issue(
                ServiceName(holder), names or ("localhost", "127.0.0.1"), lifetime
            )
        else:
            files = authority.issue_for_client(holder, lifetime)
    except CertificateError as error:
        raise CliError(str(error)) from error
    directory = out or home.tls / holder
    _write(files, directory)
    click.echo(f"{directory}: {_facts(files)}")


@certs.command()
@click.option("--all", "renew_all", is_flag=True, help="Also those that are not due yet.")
def renew(renew_all: bool) -> None:
    """Renew the certificates of this home that have used up two thirds of their life."""
    home = _home()
    _refuse_during_rotation(home)
    authority, now = _authority(home), SystemClock().now()
    broken = 0
    for directory in _issued(home):
        try:
            files = CertificateFiles.read(directory)
            if renew_all or needs_renewal(files.certificate_pem, now=now):
                files = authority.renew(files)
                _write(files, directory)
                click.echo(f"{directory}: renewed, {_facts(files)}")
            else:
                click.echo(f"{directory}: not due, {_facts(files)}")
        except (CertificateError, CliError) as error:
            # One failure must not let the other certificates expire.
            broken += 1
            click.echo(f"{directory}: {error}", err=True)
    if broken:
        raise CliError(f"{broken} of them cannot be renewed: issue them again or remove them")


@certs.command()
def show() -> None:
    """Show the certificates of this home."""
    home = _home()
    click.echo(f"{home.tls}: authority, {_when(_authority(home).certificate_pem)}")
    for directory in _issued(home):
        try:
            click.echo(f"{directory}: {_facts(CertificateFiles.read(directory))}")
        except CertificateUnreadable as error:
            click.echo(f"{directory}: {error}")


def _home() -> Home:
    home = current().home
    home.check()
    make_private_directory(home.keys)
    return home


def _refuse_during_rotation(home: Home) -> None:
    """Refuse to issue: the certificate would believe one of the two authorities only."""
    rotation = Rotation.load(home.rotation_file)
    if rotation is not None and rotation.authority:
        raise CliError(
            "the certificate authority is being replaced: finish that first with "
            f"`{current().hint('keys rotate')}`"
        )


def _authority(home: Home) -> CertificateAuthority:
    if not home.tls.exists():
        raise CliError(f"there is no authority yet: run `{current().hint('certs init')}`")
    try:
        return CertificateAuthority.load(home.tls, clock=SystemClock())
    except CertificateUnreadable as error:
        raise CliError(str(error)) from error


def _write(files: CertificateFiles, directory: Path) -> None:
    try:
        files.write(directory)
    except OSError as error:
        raise CliError(
            f"{directory} cannot be written ({error.strerror}): choose another with --out DIR"
        ) from error


def _issued(home: Home) -> list[Path]:
    return sorted(path for path in home.tls.iterdir() if path.is_dir())


def _facts(files: CertificateFiles) -> str:
    facts = describe_certificate(files.certificate_pem)
    names = f" for {', '.join(facts.names)}" if facts.names else ""
    return f"{facts.holder}{names}, {_when(files.certificate_pem)}"


def _when(certificate_pem: bytes) -> str:
    facts = describe_certificate(certificate_pem)
    return f"good until {facts.expires_at:%Y-%m-%d %H:%M} UTC"
