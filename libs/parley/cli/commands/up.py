"""`parley up`: starts a stack on this machine and supervises it."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from parley.cli.chats.default_model import default_model_line
from parley.cli.errors import CliError
from parley.cli.home.lock import locked
from parley.cli.host import checks as machine
from parley.cli.host.sandbox_probe import probe_sandbox
from parley.cli.invocation import Invocation, current
from parley.cli.options import HomeCommand
from parley.cli.progress import Progress, TextProgress
from parley.cli.stack.plan import PROGRAMS
from parley.cli.stack.request import UpRequest, check_request
from parley.cli.stack.service_settings import PUBLIC_URL
from parley.cli.stack.spec import Sizes
from parley.cli.supervision.detach import Outcome, PipeReport, start_in_background
from parley.clock import SystemClock

if TYPE_CHECKING:
    from parley.cli.supervision.startup import PreparedStack

HTTP_DEFAULT = "127.0.0.1:8787"

UNPROTECTED = "  other machines can reach it without TLS: put a TLS proxy in front of it"

COUNT = click.IntRange(min=1, max=64)


class StartRefused(CliError):
    """The background process reported that the start failed."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("\n".join(outcome.lines))
        self.exit_code = outcome.exit_code  # type: ignore[misc] # Another process chose it.
        self._lines = outcome.lines

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines as they were reported."""
        return self._lines


@click.command(cls=HomeCommand)
@click.option("--detach", "is_detached", is_flag=True, help="Return when everything is ready.")
@click.option("--http", default=HTTP_DEFAULT, show_default=True, metavar="HOST:PORT")
@click.option("--chatd", type=COUNT, help="Processes of chatd (default: 2, on one core 1).")
@click.option("--gateway", type=COUNT, default=1, show_default=True)
@click.option("--toolrunner", type=COUNT, default=1, show_default=True)
@click.option("--mcpgateway", type=COUNT, default=1, show_default=True)
@click.option(
    "--database", "database_url", metavar="URL",
    help="Use this PostgreSQL, as a role that may create roles, instead of the embedded one "
    "(or PARLEY_DATABASE_URL, which no other user can see).",
)  # fmt: skip
@click.option(
    "--public-url", metavar="URL",
    help="The origin that people reach it by, such as https://chat.example.org, if that is not "
    "the address of --http (or GATEWAY_PUBLIC_URL).",
)  # fmt: skip
@click.option("--report-fd", type=int, hidden=True)
@click.option("--called-as", hidden=True)
def up(
    is_detached: bool,
    http: str,
    chatd: int | None,
    gateway: int,
    toolrunner: int,
    mcpgateway: int,
    database_url: str | None,
    public_url: str | None,
    report_fd: int | None,
    called_as: str | None,
) -> None:
    """Start Parley on this machine and look after it until Ctrl-C or `parley down`."""
    invocation = current()
    if called_as is not None:
        invocation = replace(invocation, program=called_as)
    chatd = chatd or min(2, machine.cores())
    request = UpRequest(
        home=invocation.home,
        http=http,
        sizes=Sizes(chatd=chatd, gateway=gateway, toolrunner=toolrunner, mcpgateway=mcpgateway),
        database_url=database_url or invocation.environment.get("PARLEY_DATABASE_URL"),
        environment=invocation.environment,
        public_url=_origin(public_url or invocation.environment.get(PUBLIC_URL)),
    )
    if is_detached:
        _detach(request, invocation)
    elif report_fd is not None:
        _run_in_background(request, invocation, PipeReport(report_fd))
    else:
        run_stack(request, invocation, TextProgress(sys.stdout), lambda: None)


def run_stack(
    request: UpRequest,
    invocation: Invocation,
    progress: Progress,
    on_ready: Callable[[], None],
    programs: Mapping[str, tuple[str, ...]] = PROGRAMS,
) -> None:
    """Run the stack of `request` until it is stopped.

    Raises:
        ConfigurationProblem: with everything that has to be configured differently.
        CliError: another stack runs in this home, or a process did not start.
    """
    check_request(request)
    request.home.prepare()
    # These imports take longer than the checks that may refuse the request.
    from parley.cli.supervision.startup import end_stale_processes, prepare, run_stack_processes

    with locked(request.home, how_to_stop=invocation.hint("down")):
        progress.say(f"Starting Parley in {request.home.root}")
        end_stale_processes(request.home, progress)
        prepared = prepare(request)
        missing = what_is_missing(invocation.environment.get("PATH"), request.home.root)

        def announce() -> None:
            tell_how_to_use(prepared, invocation, progress)
            for line in missing:
                progress.say(line)
            on_ready()

        running = run_stack_processes(
            prepared.stack,
            request.database_url,
            clock=SystemClock(),
            progress=progress,
            on_ready=announce,
            programs=programs,
        )
        try:
            asyncio.run(running)
        except asyncio.CancelledError as error:
            raise CliError("stopped before everything was ready") from error


def _run_in_background(request: UpRequest, invocation: Invocation, report: PipeReport) -> None:
    try:
        run_stack(request, invocation, report, lambda: report.end(Outcome(0)))
    except CliError as error:
        report.end(Outcome(error.exit_code, error.lines))
        raise


def _detach(request: UpRequest, invocation: Invocation) -> None:
    check_request(request)
    request.home.prepare()
    sizes = request.sizes
    named = () if invocation.home_option is None else ("--home", invocation.home_option)
    arguments = [
        "up", *named, "--http", request.http,
        "--chatd", str(sizes.chatd), "--gateway", str(sizes.gateway),
        "--toolrunner", str(sizes.toolrunner), "--mcpgateway", str(sizes.mcpgateway),
        "--called-as", invocation.program,
    ]  # fmt: skip
    if request.public_url:
        arguments += ["--public-url", request.public_url]
    environment = dict(invocation.environment)
    if request.database_url:
        # Its password must not be visible in the process list for as long as Parley runs.
        environment["PARLEY_DATABASE_URL"] = request.database_url
    outcome = start_in_background(
        arguments, environment, home=request.home, progress=TextProgress(sys.stdout)
    )
    if outcome.exit_code != 0:
        raise StartRefused(outcome)


def tell_how_to_use(prepared: "PreparedStack", invocation: Invocation, progress: Progress) -> None:
    """Print how to use a stack that is ready."""
    http, public_url = prepared.stack.ports.http[0], prepared.stack.public_url
    # Requested before anything is printed: a reader of the last line may stop the stack at once.
    models = default_model_line(prepared.stack.home, http.url)
    progress.say(f"Parley is ready at {public_url}")
    if public_url != http.url:
        progress.say(f"  served at:    {http.url}")
    progress.say_secret(f"  log in once:  {public_url}/login?token={prepared.login_token}")
    progress.say(f'  try it:       {invocation.hint("run")} "hello"')
    progress.say(f"  stop it:      {invocation.hint('down')}")
    progress.say(f"  models:       {models}")
    if not http.is_loopback:
        progress.say(UNPROTECTED)


def _origin(given: str | None) -> str | None:
    return (given or "").strip().rstrip("/") or None


def what_is_missing(search_path: str | None, home: Path) -> list[str]:
    """Return what this machine lacks, and the effect of that; the sandbox is probed."""
    optional = (
        machine.find_sandbox(probe_sandbox(home)),
        machine.find_browser(search_path),
        machine.find_node(search_path),
    )
    return [f"  no {found.name}: {found.cost}" for found in optional if not found.is_there]
