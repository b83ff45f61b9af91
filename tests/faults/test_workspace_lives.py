"""Every state of a workspace's life, and the crash of everybody who has to do with it."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.faults.points import FaultPoints
from support.faults.workspace_lives import ENDS, Lives
from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


def victims(lives: Lives, name: str) -> list[psutil.Process]:
    """Return who dies: all of chatd, the service on the node, or the node with all that it runs."""
    stack = lives.watched.stack
    service = "chatd" if name == "chatd" else "toolrunner"
    found = [
        psutil.Process(each["pid"])
        for each in stack.status()["processes"]
        if each["service"] == service
    ]
    # Some of the node are nobody's children: they outlived a service that was killed before.
    return found if name != "node" else [*found, *lives.on_node()]


@pytest.mark.parametrize("victim", ["chatd", "toolrunner", "node"])
async def test_wherever_a_workspace_is_it_gets_where_it_was_going_after_a_crash(
    faulty_stack: LocalStack, pytestconfig: pytest.Config, victim: str
) -> None:
    """One crash hits workspaces in all states at once, held there where they would not stay."""
    points = FaultPoints(Path(faulty_stack.environment["TOOLRUNNER_FAULTPOINTS_DIRECTORY"]))
    async with watching(faulty_stack) as watched:
        lives = Lives(watched, points, pytestconfig.getoption("--lives"))
        try:
            await lives.lead()
            assert await lives.seen() == {state: {state} for state in ENDS}
            for process in victims(lives, victim):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            points.disarm()
            await lives.until_converged(survives=victim != "node")
            assert (await lives.leaks(), lives.losses()) == ([], [])
            await lives.usable()
            await lives.remove()
            assert await lives.leaks() == []
        finally:
            points.disarm()
