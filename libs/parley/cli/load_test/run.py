"""Runs a load test: creates its model, runs the clients, and returns the report."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

import asyncpg

from parley.cli.api.client import Api
from parley.cli.api.server import Server
from parley.cli.load_test.machine import LocalStack, check_reachable, mock_here
from parley.cli.load_test.models import (
    MockedAnswer,
    ScaleModel,
    find_model,
    find_or_create,
    forget,
    try_out,
)
from parley.cli.progress import RunningLine
from parley.clock import Clock
from parley.testing.scaletest import (
    Clients,
    Costs,
    DatabaseActivity,
    DatabaseWatch,
    Limits,
    Load,
    LoggingRefused,
    Plan,
    Report,
    Target,
    costs,
    database_cost,
    machine_cost,
    machine_time,
    report_on,
    shares_of,
    usage_of,
)

MOCK, CLIENT = "llm-mock", "load test"
LOOK_S = 0.5
#: The approximate statements per turn and for one more call; only to choose the sampling rate.
STATEMENTS_PER_STEP = 8


@dataclass(frozen=True, slots=True)
class ScaleTest:
    """The parameters of a load test.

    Attributes:
        server: The Parley to test.
        stack: Its processes, if they run on this machine.
        load: The numbers of chats and turns.
        plan: The behaviour of the chats; its target, model and run are set later.
        answer: The behaviour of the mock.
        model: An existing model, instead of the mock.
        mock_url: The URL of a mock that already runs.
        timeout_s: How long all turns together may take.
        counts_statements: Whether PostgreSQL logs statements for counting.
        limits: The limits for passing the test.
    """

    server: Server
    stack: LocalStack | None
    load: Load
    plan: Plan
    answer: MockedAnswer
    model: str | None
    mock_url: str | None
    timeout_s: float
    counts_statements: bool
    limits: Limits


async def run_scale_test(test: ScaleTest, *, clock: Clock, line: RunningLine) -> Report:
    """Run a load test and return its report.

    Raises:
        CliError: It could not be run.
    """
    api = Api(test.server)
    async with AsyncExitStack() as around:
        services = dict(test.stack.services) if test.stack is not None else {}
        model = await around.enter_async_context(_model(test, api, services, clock, line))
        plan = _planned(test, model.model_id)
        clients = await around.enter_async_context(
            Clients.started(shares_of(plan, test.load.clients))
        )
        services[CLIENT] = clients.pids
        before, machine_before = usage_of(services), machine_time()
        began = clock.monotonic()
        database = await _conversed(test, clients, clock, line)
        after, machine_after = usage_of(services), machine_time()
        took_s = clock.monotonic() - began
        line.show("reading what is in the chats, and deleting them")
        outcomes = await clients.end()
        turns = sum(outcome.turns_completed for outcome in outcomes)
        by_service = costs(before, after, turns=turns, wall_s=took_s)
        own_cores = sum(cost.cores for cost in by_service.values())
        is_here = test.stack is not None
        found = Costs(
            clients=by_service.pop(CLIENT),
            services=by_service if is_here else None,
            database=database_cost(database, turns=turns),
            machine=(
                machine_cost(machine_before, machine_after, own_cores, wall_s=took_s)
                if is_here
                else None
            ),
        )
        line.clear()
        return report_on(test.load, outcomes, found, test.limits)


def _planned(test: ScaleTest, model_id: str) -> Plan:
    run = uuid.uuid4().hex  # noqa: TID251 (a command's own composition root)
    target = Target(test.server.url, test.server.api_key)
    return replace(test.plan, target=target, run=run, model_id=model_id)


@asynccontextmanager
async def _model(
    test: ScaleTest,
    api: Api,
    services: dict[str, tuple[int, ...]],
    clock: Clock,
    line: RunningLine,
) -> AsyncIterator[ScaleModel]:
    """Yield a model that works; a provider or model created for it is deleted at the end."""
    async with AsyncExitStack() as around:
        if test.model is not None:
            model = await asyncio.to_thread(find_model, api, test.model)
        else:
            url = test.mock_url or await _own_mock(test, services, around, line)
            model = await asyncio.to_thread(find_or_create, api, url, test.answer)
        try:
            line.show("trying the model out")
            await try_out(api, model, clock)
            yield model
        finally:
            if not test.plan.keeps:
                await asyncio.to_thread(forget, api, model)


async def _own_mock(
    test: ScaleTest,
    services: dict[str, tuple[int, ...]],
    around: AsyncExitStack,
    line: RunningLine,
) -> str:
    check_reachable(test.server.url)
    line.show("starting a mock")
    url, pid = await around.enter_async_context(mock_here())
    services[MOCK] = (pid,)
    return url


async def _conversed(
    test: ScaleTest, clients: Clients, clock: Clock, line: RunningLine
) -> DatabaseActivity | None:
    """Run all conversations, and return the database statistics of that time."""
    async with AsyncExitStack() as around:
        watch: DatabaseWatch | None = None
        if test.stack is not None and test.stack.database_url is not None:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, LoggingRefused):
                watch = await around.enter_async_context(_watch(test, test.stack))
        async with asyncio.TaskGroup() as tasks:
            looking = [tasks.create_task(_show(test, clients, clock, line))]
            if watch is not None:
                looking.append(tasks.create_task(watch.look(clock)))
            await _converse(test, clients, clock)
            for task in looking:
                task.cancel()
        return None if watch is None else await watch.activity()


@asynccontextmanager
async def _watch(test: ScaleTest, stack: LocalStack) -> AsyncIterator[DatabaseWatch]:
    load = test.load
    steps = load.chats * load.turns * (1 + load.tool_calls)
    async with DatabaseWatch.started(
        str(stack.database_url),
        stack.database_log if test.counts_statements else None,
        statements=steps * STATEMENTS_PER_STEP,
    ) as watch:
        yield watch


async def _converse(test: ScaleTest, clients: Clients, clock: Clock) -> None:
    """Run all conversations; those that are not over in time are cancelled."""
    delay_s = test.load.turn_start_delay_s

    async def pause() -> None:
        await clock.sleep(delay_s)

    try:
        async with asyncio.timeout(test.timeout_s):
            await clients.converse(pause if test.plan.waits_after_first else None)
    except TimeoutError:
        clients.stop()
        await clients.conversed()


async def _show(test: ScaleTest, clients: Clients, clock: Clock, line: RunningLine) -> None:
    """Show the progress of the clients, until this is cancelled."""
    asked, began = test.load.chats * test.load.turns, clock.monotonic()
    while True:
        await clock.sleep(LOOK_S)
        at = clients.standing
        took_s = clock.monotonic() - began
        failed = f", {at.failed} chats failed" if at.failed else ""
        line.show(f"{at.turns} of {asked} turns in {took_s:.0f} s{failed}")
