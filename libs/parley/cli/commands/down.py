"""`parley down`: stop the stack, and whatever a killed supervisor left of it."""

import signal
from contextlib import suppress

import click
import psutil

from parley.cli.errors import CliError
from parley.cli.home import Home
from parley.cli.invocation import current
from parley.cli.leftovers import end, leftovers, running
from parley.cli.lock import locked
from parley.cli.options import HomeCommand
from parley.cli.process_table import load

STOPPING_S_MAX = 15.0


@click.command(cls=HomeCommand)
def down() -> None:
    """Stop Parley."""
    home = current().home
    home.check()
    if not home.root.exists():
        click.echo(f"Parley does not run in {home.root}.")
        return
    supervisor = running(load(home.processes_file).supervisor)
    if supervisor is not None:
        _stop(supervisor)
    ended = _end_leftovers(home)
    if supervisor is not None or ended:
        click.echo(f"Stopped Parley in {home.root}.")
    else:
        click.echo(f"Parley does not run in {home.root}.")


def _stop(supervisor: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        supervisor.send_signal(signal.SIGTERM)
    _, stubborn = psutil.wait_procs([supervisor], timeout=STOPPING_S_MAX)
    for process in stubborn:
        click.echo(f"The supervisor {process.pid} does not stop and is killed.", err=True)
        process.kill()
        psutil.wait_procs([process], timeout=STOPPING_S_MAX)


def _end_leftovers(home: Home) -> int:
    """End what still runs, unless a new supervisor took over already."""
    try:
        with locked(home, how_to_stop="parley down"):
            ended = end(leftovers(load(home.processes_file)))
            home.endpoints_file.unlink(missing_ok=True)
            home.processes_file.unlink(missing_ok=True)
            return ended
    except CliError:
        return 0
