"""`parley scaletest`: runs many chats at once on any Parley, and times, counts and checks them."""

import asyncio
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from parley.cli.api.server import Server, find_server
from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.layout import write_private
from parley.cli.invocation import Invocation, current
from parley.cli.load_test.machine import allow_open_files, stack_here
from parley.cli.load_test.models import MockedAnswer
from parley.cli.load_test.run import ScaleTest, run_scale_test
from parley.cli.options import HomeCommand
from parley.cli.progress import RunningLine
from parley.clock import SystemClock
from parley.testing.scaletest import ClientDied, Limits, Load, Plan, Report, Target, lines_of

CHATS_PER_CLIENT = 1000
STDOUT = "-"
EXECUTE = "execute"
EXECUTE_ARGUMENTS = '{"command":"echo scaletest"}'
PROMPT = "Reply with one short sentence."
EPILOG = """\b
Exit code 0 if every turn came to its end, every event came once and in order and every limit was
kept; 1 if not; 2 if something has to be set differently first. The processes, statements and
commits of Parley are shown when it runs on this machine in the home.
"""

_count = click.IntRange(min=1)
_some = click.IntRange(min=0)
_seconds = click.FloatRange(min=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command."""

    url: str | None
    chats: int
    turns: int
    prompt: str
    turn_start_delay_s: float
    start_jitter_s: float
    deltas: int
    delta_interval_ms: float
    tool_calls: int
    tool: str
    tool_arguments: str | None
    model: str | None
    mock_url: str | None
    timeout_s: float
    turn_timeout_s: float
    clients: int | None
    cut_every: int
    seed: int
    cleaners: int
    keeps: bool
    counts_statements: bool
    first_output_p95_ms: float | None
    turn_p95_ms: float | None
    wall_s: float | None
    json_file: str | None

    @property
    def processes(self) -> int:
        """The number of client processes."""
        wanted = self.clients or -(-self.chats // CHATS_PER_CLIENT)
        return min(wanted, self.chats)


@click.command(cls=HomeCommand, epilog=EPILOG)
@click.option(
    "--url", metavar="URL",
    help="Parley, with its key in PARLEY_API_KEY (default: PARLEY_URL, or the one in the home).",
)  # fmt: skip
@click.option("--chats", type=_count, required=True, metavar="N", help="Chats; all begin at once.")
@click.option("--turns", type=_count, default=10, show_default=True, help="Turns of each chat.")
@click.option("--prompt", default=PROMPT, show_default=True, help="What is said in every turn.")
@click.option(
    "--turn-start-delay", "turn_start_delay_s", type=_seconds, default=0.0, metavar="SECONDS",
    help="After turn 1 wait for everybody, then so long, then go on together.",
)  # fmt: skip
@click.option(
    "--start-jitter", "start_jitter_s", type=_seconds, default=0.0, metavar="SECONDS",
    help="Begin within so long instead of at once.",
)  # fmt: skip
@click.option("--deltas", type=_count, default=40, show_default=True, help="Pieces of an answer.")
@click.option(
    "--delta-interval-ms", type=_seconds, default=0.0, show_default=True,
    help="Time between two of them; 0 sends all at once.",
)  # fmt: skip
@click.option(
    "--tool-calls", type=_some, default=0, show_default=True,
    help="Steps of each turn that call a tool before the answer.",
)  # fmt: skip
@click.option(
    "--tool", default=EXECUTE, show_default=True, metavar="PATTERN",
    help="Which tool: the first offered one with a name like this, * and ? allowed.",
)  # fmt: skip
@click.option(
    "--tool-arguments", metavar="JSON",
    help="Its arguments (default: an echo for execute, else what its schema asks for).",
)  # fmt: skip
@click.option(
    "--model", metavar="NAME",
    help="A model that is there, by name or id, instead of a mock; all about answers is its own.",
)  # fmt: skip
@click.option(
    "--llm-mock-url", "mock_url", metavar="URL",
    help="A `parley llm-mock` that Parley can reach (http://HOST:PORT/v1), not an own one.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=_seconds, default=1800.0, show_default=True,
    help="Seconds after which turns that are not over have failed.",
)  # fmt: skip
@click.option(
    "--turn-timeout", "turn_timeout_s", type=_seconds, default=300.0, show_default=True,
    help="Seconds that one turn may take.",
)  # fmt: skip
@click.option(
    "--clients", type=_count, metavar="N",
    help=f"Client processes (default: one for {CHATS_PER_CLIENT} chats).",
)  # fmt: skip
@click.option(
    "--cut-every", type=_some, default=0, metavar="N",
    help="Cut each stream after N events on average, and resume it where it was.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="The same seed, the same cuts.")
@click.option(
    "--concurrency-of-clean-up", "cleaners", type=_count, default=8, show_default=True,
    help="Chats that each client process reads and deletes at once in the end.",
)  # fmt: skip
@click.option("--keep", "keeps", is_flag=True, help="Delete neither the chats nor the model.")
@click.option(
    "--count-statements/--no-count-statements", "counts_statements", default=True,
    help="Let the embedded PostgreSQL log some statements to count them; costs it a little.",
)  # fmt: skip
@click.option(
    "--max-first-output-p95-ms", "first_output_p95_ms", type=_seconds, metavar="MS",
    help="Fail if the first output takes longer, in either phase.",
)  # fmt: skip
@click.option(
    "--max-turn-p95-ms", "turn_p95_ms", type=_seconds, metavar="MS",
    help="Fail if turns take longer, in either phase.",
)  # fmt: skip
@click.option(
    "--max-wall-s", "wall_s", type=_seconds, metavar="SECONDS", help="Fail if all take longer."
)
@click.option(
    "--json", "json_file", is_flag=False, flag_value=STDOUT, metavar="[FILE]",
    help="Print one JSON object instead of tables, or write it to FILE beside them.",
)  # fmt: skip
def scaletest(**given: Any) -> int:
    """Have many chats at once on a Parley, and check every event of every stream.

    Each chat has one stream and sends the next message when the answer to the one before is whole.
    Without --model a mock of OpenAI's Chat Completions answers, under a provider `scaletest` that
    is made for it, which takes the key of an administrator.
    """
    options = Options(**given)
    invocation = current()
    if options.url is not None:
        environment = {**invocation.environment, "PARLEY_URL": options.url}
        invocation = replace(invocation, environment=environment)
    server = find_server(invocation)
    allow_open_files(-(-options.chats // options.processes))
    test = _test(options, server, invocation)
    try:
        found = asyncio.run(run_scale_test(test, clock=SystemClock(), line=RunningLine(sys.stderr)))
    except ExceptionGroup as group:
        # A task of the run failed; its message is the one for the user.
        raise _first(group) from group
    except ClientDied as error:
        raise CliError(str(error)) from error
    _show(found, options.json_file)
    return 0 if found.is_passed else 1


def _test(options: Options, server: Server, invocation: Invocation) -> ScaleTest:
    load = Load(
        chats=options.chats,
        turns=options.turns,
        clients=options.processes,
        tool_calls=options.tool_calls,
        deltas=options.deltas,
        delta_interval_ms=options.delta_interval_ms,
        turn_start_delay_s=options.turn_start_delay_s,
        start_jitter_s=options.start_jitter_s,
        cut_every=options.cut_every,
        seed=options.seed,
        model=options.model or "",
    )
    plan = Plan(
        target=Target(server.url, server.api_key),
        run="",
        chats=options.chats,
        turns=options.turns,
        prompt=options.prompt,
        start_jitter_s=options.start_jitter_s,
        waits_after_first=options.turn_start_delay_s > 0 and options.turns > 1,
        turn_timeout_s=options.turn_timeout_s,
        cut_every=options.cut_every,
        seed=options.seed,
        cleaners=options.cleaners,
        keeps=options.keeps,
    )
    return ScaleTest(
        server=server,
        stack=stack_here(invocation.home, server.url),
        load=load,
        plan=plan,
        answer=_answer(options),
        model=options.model,
        mock_url=options.mock_url,
        timeout_s=options.timeout_s,
        counts_statements=options.counts_statements,
        limits=Limits(options.first_output_p95_ms, options.turn_p95_ms, options.wall_s),
    )


def _answer(options: Options) -> MockedAnswer:
    if options.model is not None and options.mock_url is not None:
        raise ConfigurationProblem("--model and --llm-mock-url exclude each other: give one")
    arguments = options.tool_arguments
    if arguments is None:
        arguments = EXECUTE_ARGUMENTS if options.tool == EXECUTE else ""
    return MockedAnswer(
        options.deltas, options.delta_interval_ms, options.tool_calls, options.tool, arguments
    )


def _show(report: Report, json_file: str | None) -> None:
    document = msgspec.json.encode(report).decode()
    if json_file == STDOUT:
        click.echo(document)
        return
    if json_file is not None:
        write_private(Path(json_file), document + "\n")
    for line in lines_of(report):
        click.echo(line)


def _first(group: "ExceptionGroup[Exception]") -> Exception:
    """Return the first error inside a group, for the exit of the command."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return CliError(str(error)) if isinstance(error, ClientDied) else error
