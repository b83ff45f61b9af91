"""`parley down`: stops the stack, and processes that a killed supervisor left."""

import signal
from contextlib import suppress

import click
import psutil

from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.home.lock import locked
from parley.cli.invocation import current
from parley.cli.options import HomeCommand
from parley.cli.supervision.process_table import load
from parley.cli.supervision.stale_processes import end, leftovers, running

#: A healthy supervisor needs at most nine seconds.
STOPPING_S_MAX = 10.0


@click.command(cls=HomeCommand)
def down() -> None:
    """Stop Parley."""
    home = current().local_home
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
    """End the processes that still run, unless a new supervisor has started already."""
    try:
        with locked(home, how_to_stop="parley down"):
            if not home.processes_file.exists():
                return 0
            ended = end(leftovers(load(home.processes_file)))
            _remove_sockets(home)
            home.endpoints_file.unlink(missing_ok=True)
            home.processes_file.unlink(missing_ok=True)
            return ended
    except CliError:
        return 0


def _remove_sockets(home: Home) -> None:
    # Only a killed supervisor leaves any; this module takes longer to import than all the rest.
    from parley.cli.supervision.database import embedded_server
    from parley.clock import SystemClock

    home.remove_sockets()
    embedded_server(home, SystemClock()).remove_runtime_directory()
