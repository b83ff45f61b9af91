"""`parley up` with fake services in place of the real ones, as a program and as a fixture's tool.

Run as `python fake_stack.py HOME HOST:PORT [SERVICE=OPTION ...] [--report-fd N]`; the options go to
that service, the report to the one who started this in the background.
"""

import os
import subprocess
import sys
from pathlib import Path

FAKE_SERVICE = Path(__file__).with_name("fake_service.py")
SERVICES = ("mcp-demo", "toolrunner", "mcpgateway", "chatd", "gateway")


def programs(*options: str) -> dict[str, tuple[str, ...]]:
    """Return what to run for each service; `chatd=--orphan` adds an option to one."""
    chosen = [option.partition("=") for option in options]
    return {
        service: (
            str(FAKE_SERVICE),
            service,
            *(option for name, _, option in chosen if name == service),
        )
        for service in SERVICES
    }


def start(home: Path, http: str, *options: str) -> "subprocess.Popen[str]":
    """Start the program below and return it."""
    return subprocess.Popen(
        [sys.executable, __file__, str(home), http, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until_line(process: "subprocess.Popen[str]", beginning: str) -> list[str]:
    """Read what `process` writes up to the line that begins so; it must come."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.strip().startswith(beginning):
            return lines
    raise AssertionError(f"no line begins with {beginning!r}: {lines}")


def main(home: Path, http: str, *options: str) -> int:
    from parley.cli.commands.up import run_stack
    from parley.cli.errors import CliError
    from parley.cli.home.layout import Home
    from parley.cli.invocation import Invocation
    from parley.cli.progress import TextProgress
    from parley.cli.stack.request import UpRequest
    from parley.cli.stack.spec import Sizes
    from parley.cli.supervision.detach import Outcome, PipeReport

    environment = dict(os.environ)  # noqa: TID251 (this is a program of its own)
    request = UpRequest(Home.at(home), http, Sizes(), None, environment)
    report = PipeReport(int(options[-1])) if "--report-fd" in options else None
    try:
        run_stack(
            request,
            Invocation(environment, "parley"),
            report or TextProgress(sys.stdout),
            (lambda: report.end(Outcome(0))) if report else lambda: None,
            programs(*options),
        )
    except CliError as error:
        if report is not None:
            report.end(Outcome(error.exit_code, error.lines))
        print("\n".join(error.lines), flush=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
