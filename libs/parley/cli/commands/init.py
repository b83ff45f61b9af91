"""`parley init`: the secrets of services on separate machines, one directory for each of them.

A service gets only the secrets it needs, so that an attacker who controls a toolrunner finds
neither a database nor the key of another service. The originals stay in the home.
"""

import asyncio
import secrets
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import click

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.credentials import prepare_secrets
from parley.cli.home.layout import Home, make_private_directory, write_private
from parley.cli.home.lock import locked
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.progress import TextProgress
from parley.cli.supervision.database import SCHEMAS, database, url_for
from parley.clock import SystemClock
from parley.identity import (
    CertificateAuthority,
    CertificateError,
    CertificateFiles,
    ServiceName,
    needs_renewal,
)

DAYS_DEFAULT = 90
#: Services that seal secrets in their tables.
SEALING = (ServiceName.GATEWAY, ServiceName.CHATD, ServiceName.MCPGATEWAY)


@click.command(cls=HomeCommand)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--database", "database_url", metavar="URL",
    help="Also make each service's role in this PostgreSQL; without a password in the URL, that of "
    "DIRECTORY/postgres/password is used.",
)  # fmt: skip
@click.option(
    "--days", type=click.IntRange(min=1), default=DAYS_DEFAULT, show_default=True,
    help="Life of the certificates; a later call renews those that have used up two thirds of it.",
)  # fmt: skip
def init(directory: Path, database_url: str | None, days: int) -> None:
    """Make what is missing of keys, certificates and passwords, and put it into DIRECTORY.

    DIRECTORY gets one directory per service, to be given to that service and to nobody else.
    Calling it again changes nothing but the login token, and renews certificates that are due.
    """
    home = current().home
    home.check()
    try:
        for needed in (home.root, home.keys, directory):
            make_private_directory(needed)
        with locked(home, how_to_stop=current().hint("down")):
            prepare_secrets(home)
            password = _administrator_password(directory / "postgres")
            if database_url is not None:
                asyncio.run(_make_roles(home, _with_password(database_url, password)))
            for service in ServiceName:
                certificate = _certificate(home, service, timedelta(days=days))
                _hand_over(home, service, certificate, directory / service)
    except CertificateError as error:
        raise ConfigurationProblem(str(error)) from error
    except OSError as error:
        raise ConfigurationProblem(
            f"{error.filename or directory} cannot be written ({error.strerror}): "
            "name another directory, or fix its permissions"
        ) from error
    click.echo(f"{directory} is ready.")


def _administrator_password(directory: Path) -> str:
    """Return the password of the database's administrator, generated at the first call."""
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = directory / "password"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24) + "\n")
        # A database server in a container runs as another user, and only it mounts this directory.
        path.chmod(0o444)
    return path.read_text().strip()


def _with_password(database_url: str, password: str) -> str:
    parts = urlsplit(database_url)
    if parts.scheme not in ("postgresql", "postgres") or not parts.username:
        raise ConfigurationProblem(
            "--database is no PostgreSQL URL with a role: write postgresql://role@host:port/name"
        )
    return database_url if parts.password else url_for(database_url, parts.username, password)


async def _make_roles(home: Home, database_url: str) -> None:
    async with database(home, database_url, clock=SystemClock(), progress=TextProgress(sys.stdout)):
        pass


def _certificate(home: Home, service: ServiceName, lifetime: timedelta) -> CertificateFiles:
    """Return the service's certificate, issued or renewed if that is due."""
    clock = SystemClock()
    if not (home.tls / "ca.pem").exists():
        CertificateAuthority.create(home.tls, clock=clock)
    authority = CertificateAuthority.load(home.tls, clock=clock)
    directory = home.tls / service
    if directory.exists():
        files = CertificateFiles.read(directory)
        # A renewed one would not believe the authority that a rotation is about to use.
        is_rotated = home.rotation_file.exists()
        if is_rotated or not needs_renewal(files.certificate_pem, now=clock.now()):
            return files
    files = authority.issue(service, ("localhost", "127.0.0.1"), lifetime)
    files.write(directory)
    return files


def _hand_over(
    home: Home, service: ServiceName, certificate: CertificateFiles, directory: Path
) -> None:
    """Write the secrets of `service` into `directory`."""
    make_private_directory(directory)
    certificate.write(directory / "tls")
    given = {"signing.key": home.signing_key_file(service), "trust.json": home.trust_file}
    if service in SCHEMAS:
        given["database_url"] = home.database_url_file(service)
    if service in SEALING:
        given["master.keyring"] = home.master_key_file
    if service is ServiceName.GATEWAY:
        given |= {
            "api_key": home.api_key_file,
            "login_token": home.login_token_file,
            "audit.key": home.audit_key_file,
        }
    for name, original in given.items():
        # Before the roles are created there is no database URL yet.
        if original.exists():
            write_private(directory / name, original.read_text())
