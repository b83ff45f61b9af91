"""`parley llm-mock` and `parley replay`: mock model providers, and recordings of real ones."""

import subprocess
import sys
from pathlib import Path

import click
import uvloop

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.clock import SystemClock
from parley.process.open_files import OpenFiles
from parley.process.signals import end_with_parent, stopping_on_signals
from parley.testing.llm_mock import MockError, MockModels, Recording, grammar_help, read_recording

EPILOG = f"""\b
How a model behaves is in its name: mock:deltas=40,delay=20ms,fail=429*2 or, behind any other
name, claude-sonnet-4-5?reasoning=8. "repeat after me: X" is answered with X. The words:

\b
{grammar_help()}

\b
GET /mock/stats counts, GET /mock/requests?last=N shows what was asked, POST /mock/reset forgets.
"""


@click.command(cls=HomeCommand, epilog=EPILOG)
@click.argument(
    "files", nargs=-1, metavar="[FILE]...", type=click.Path(dir_okay=False, path_type=Path)
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=0, show_default=True, help="Port to listen at; 0 for a free one.")
@click.option("--seed", default=0, show_default=True, help="The same seed, the same words and ids.")
@click.option(
    "--behaviour", default="", metavar="WORDS", help="How models behave whose names say nothing."
)
@click.option(
    "--replay", "is_replay", is_flag=True, help="Answer with the recordings in FILE..., in order."
)
@click.option("--parent-pid", type=int, hidden=True, help="End with this process.")
def llm_mock(
    files: tuple[Path, ...],
    host: str,
    port: int,
    seed: int,
    behaviour: str,
    is_replay: bool,
    parent_pid: int | None,
) -> None:
    """Serve Anthropic Messages, OpenAI Responses and Chat Completions until Ctrl-C.

    Azure's paths and Bedrock's framing are served too. Any key will do, but there must be one.
    """
    if bool(files) is not is_replay:
        raise ConfigurationProblem("--replay and the files to replay go together")
    if parent_pid is not None and not end_with_parent(parent_pid):
        return
    OpenFiles.raised()
    try:
        recordings = tuple(map(read_recording, files))
        uvloop.run(_serve(host, port, seed, behaviour, recordings))
    except MockError as error:
        raise ConfigurationProblem(str(error)) from error
    except OSError as error:
        raise CliError(f"{host}:{port} cannot be listened at: {error.strerror}") from error


async def _serve(
    host: str, port: int, seed: int, behaviour: str, recordings: tuple[Recording, ...]
) -> None:
    with stopping_on_signals("llm-mock") as stopping:
        async with MockModels.serving(
            clock=SystemClock(),
            seed=seed,
            behaviour=behaviour,
            recordings=recordings,
            host=host,
            port=port,
        ) as server:
            click.echo(f"ANTHROPIC_BASE_URL={server.url}")
            click.echo(f"OPENAI_BASE_URL={server.url}/v1")
            click.echo(f"AZURE_OPENAI_BASE_URL={server.url}/openai/v1")
            click.echo(f"ANTHROPIC_BEDROCK_BASE_URL={server.url}")
            await stopping.wait()


PROGRAM = ("-m", "chatd.replay")


@click.command(cls=HomeCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def replay(files: tuple[str, ...]) -> int:
    """Play each recording FILE through the real adapter, from a server on this machine.

    Prints one JSON object per file: text, reasoning, tool calls, sources, usage, why it ended or
    what the error was. Exit code 1 if a file is not a recording.
    """
    ended = subprocess.run(
        [sys.executable, *PROGRAM, "--", *files], env=dict(current().environment), check=False
    )
    return ended.returncode
