"""When a server that failed is asked again."""

import asyncio
import itertools

import pytest

from mcpgateway.runtime.listing_failures import PAUSE_FIRST_S, PAUSE_MAX_S, ListingFailures
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import UpstreamFailed
from parley.clock import FakeClock
from support.mcpgateway.values import a_target

DOWN = UpstreamFailed(Reason.CONNECT_FAILED, "down")
NO_LOGIN = UpstreamFailed(Reason.NEEDS_CONNECT, "connect first")
ANN = a_target()


async def test_a_server_that_stays_dead_is_asked_less_and_less() -> None:
    clock = FakeClock()
    failures = ListingFailures(clock)
    failures.failed(ANN, DOWN)
    asked_at = []
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        due = tasks.create_task(failures.next_due())
        for second in range(1, 300):
            clock.advance(1)
            # Several listings want it, and it is asked once.
            for _ in range(3):
                with pytest.raises(UpstreamFailed, match="down"):
                    failures.check(ANN)
                await asyncio.sleep(0)  # noqa: TID251 (only lets others run)
            if due.done():
                asked_at.append(second)
                failures.failed(ANN, DOWN)
                due = tasks.create_task(failures.next_due())
        due.cancel()
    pauses = [later - sooner for sooner, later in itertools.pairwise(asked_at)]
    assert asked_at[0] == PAUSE_FIRST_S
    assert pauses == [4, 8, 16, 32, *[PAUSE_MAX_S] * (len(pauses) - 4)]


def test_failures_of_one_user_and_of_logins_are_not_those_of_others() -> None:
    failures = ListingFailures(FakeClock())
    failures.failed(ANN, DOWN)
    failures.check(a_target(user_id="bob"))
    failures.failed(ANN, NO_LOGIN)
    failures.check(ANN)


def test_an_error_is_raised_anew_each_time() -> None:
    failures = ListingFailures(FakeClock())
    failures.failed(ANN, DOWN)
    raised = []
    for _ in range(2):
        with pytest.raises(UpstreamFailed) as caught:
            failures.check(ANN)
        raised.append(caught.value)
    assert raised[0] is not raised[1]
