"""The stack's database: the embedded server or a given one, with a role for each service."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psutil

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.credentials import read_passwords, write_passwords
from parley.cli.home.layout import Home, write_private
from parley.cli.progress import Progress, ending, step
from parley.cli.stack.plan import Readiness, Sign
from parley.cli.supervision.process_table import ProcessIdentity, ProcessRecord
from parley.cli.supervision.stop_deadline import StopDeadline
from parley.cli.supervision.supervisor import failures_in_a_row, restart_delay_s
from parley.clock import Clock
from parley.postgres import (
    BinariesMissing,
    DatabaseError,
    DatabaseMisconfigured,
    DirectoryUnusable,
    EmbeddedServer,
    ServiceRole,
    WrongMajorVersion,
    provision,
    without_password,
)

DATABASE = "parley"
#: Service -> the schema it owns.
SCHEMAS = {"gateway": "identity", "chatd": "chat", "mcpgateway": "mcp"}
SERVICE = "postgres"
#: Query parameters of a URL that would override its login.
LOGIN_NAMES = ("user", "password")

_CONFIGURATION = (BinariesMissing, DatabaseMisconfigured, DirectoryUnusable, WrongMajorVersion)


@dataclass(slots=True)
class StackDatabase:
    """A database that is ready, and its server process if it is embedded."""

    url: str
    server: EmbeddedServer | None = None
    restarts: int = 0

    def record(self) -> ProcessRecord | None:
        """Return the embedded server for the process table."""
        pid = self.server.pid if self.server is not None else None
        if self.server is None or pid is None:
            return None
        address = f"unix:{self.server.socket_directory}/.s.PGSQL.{self.server.port}"
        return ProcessRecord(
            name=f"{SERVICE}-0",
            service=SERVICE,
            identity=ProcessIdentity(pid, psutil.Process(pid).create_time()),
            address=address,
            restarts=self.restarts,
            readiness=(Readiness(Sign.ACCEPTS, address),),
        )


@asynccontextmanager
async def database(
    home: Home,
    given_url: str | None,
    *,
    clock: Clock,
    progress: Progress,
    stop_time: StopDeadline | None = None,
) -> AsyncIterator[StackDatabase]:
    """Yield a database in which every service has its role and schema.

    Without a shared `stop_time`, stopping the server may take a whole deadline.

    Raises:
        ConfigurationProblem: the server, its address or its directory cannot be used.
        CliError: it failed for another reason.
    """
    server = None if given_url else embedded_server(home, clock)
    began = clock.monotonic()
    try:
        with _as_cli_errors():
            if server is not None:
                await server.start()
            found = await _provisioned(home, given_url, server)
        where = without_password(found.url) if given_url else str(home.postgres)
        progress.say(step(SERVICE, clock.monotonic() - began, where))
        yield found
    finally:
        if server is not None:
            stopping = stop_time or StopDeadline(clock.monotonic)
            await server.stop(within_s=stopping.for_database_s())


def embedded_server(home: Home, clock: Clock) -> EmbeddedServer:
    """Return the server of `home`, running or not."""
    return EmbeddedServer(home.postgres, clock=clock, runtime_root=home.temporary)


async def keep(
    found: StackDatabase,
    *,
    clock: Clock,
    progress: Progress,
    changed: Callable[[], None],
    restart_pause_max_s: float,
) -> None:
    """Restart the embedded server whenever it ends, until this is cancelled."""
    if found.server is None:
        return
    failures = 0
    while True:
        ready_at = clock.monotonic()
        status = await found.server.wait()
        failures = failures_in_a_row(failures, clock.monotonic() - ready_at)
        progress.say(f"  {SERVICE} ended with {ending(status)}; starts again")
        while True:
            await clock.sleep(restart_delay_s(failures, restart_pause_max_s))
            try:
                await found.server.start()
            except (DatabaseError, OSError) as error:
                failures += 1
                progress.say(f"  {SERVICE} does not start: {error}")
                continue
            break
        found.restarts += 1
        changed()


def url_for(given_url: str, role: str, password: str) -> str:
    """Return `given_url` with another login."""
    parts = urlsplit(given_url)
    where = parts.netloc.rpartition("@")[2]
    login = f"{quote(role, safe='')}:{quote(password, safe='')}"
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in LOGIN_NAMES]
    return urlunsplit(parts._replace(netloc=f"{login}@{where}", query=urlencode(kept)))


async def _provisioned(
    home: Home, given_url: str | None, server: EmbeddedServer | None
) -> StackDatabase:
    # Roles are global to the server: several databases of one server need several of them.
    owner = DATABASE if given_url is None else urlsplit(given_url).path.strip("/") or DATABASE
    passwords = read_passwords(home, SCHEMAS)
    roles = {
        service: _role(passwords, f"{owner}_{service}", schema, is_ours=server is not None)
        for service, schema in SCHEMAS.items()
    }
    needed = tuple(roles.values())

    def store() -> None:
        write_passwords(home, passwords | {role.name: role.password for role in needed})

    if server is not None:
        await provision(server.admin_url(), roles=needed, database=DATABASE, store=store)
        url = server.admin_url(DATABASE)
    else:
        assert given_url is not None
        await provision(given_url, roles=needed, store=store)
        url = given_url
    for service, role in roles.items():
        write_private(
            home.database_url_file(service), url_for(url, role.name, role.password) + "\n"
        )
    return StackDatabase(url, server)


def _role(passwords: Mapping[str, str], name: str, schema: str, *, is_ours: bool) -> ServiceRole:
    """Return the role with its earlier password, or with a new one."""
    if name in passwords:
        return ServiceRole(name, schema, passwords[name])
    return ServiceRole(name, schema, secrets.token_urlsafe(24), is_ours=is_ours)


@contextmanager
def _as_cli_errors() -> Iterator[None]:
    try:
        yield
    except _CONFIGURATION as error:
        raise ConfigurationProblem(str(error)) from error
    except DatabaseError as error:
        raise CliError(str(error)) from error
