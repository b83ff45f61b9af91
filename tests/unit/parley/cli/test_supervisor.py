import asyncio
import errno
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from parley.cli.stack.plan import ProcessSpec, Readiness, Sign
from parley.cli.stack.request import PAUSE_S_DEFAULT
from parley.cli.supervision.process_table import ProcessRecord
from parley.cli.supervision.restart_queue import HELD_S_MAX
from parley.cli.supervision.stop_deadline import StopDeadline
from parley.cli.supervision.supervisor import (
    PROBE_EVERY_S,
    READY_S_MAX,
    REFUSING_S_MAX,
    StartFailed,
    Supervisor,
)
from parley.clock import FakeClock
from support.cli.fake_children import FakeLauncher, FakeProbe
from support.cli.recorded_progress import RecordedProgress


def spec(service: str, *depends_on: str) -> ProcessSpec:
    return ProcessSpec(
        name=f"{service}-0",
        service=service,
        argv=(),
        environment={},
        address=f"unix:/{service}",
        readiness=(Readiness(Sign.ACCEPTS, service),),
        depends_on=depends_on,
    )


class RecordedReports:
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.deaths: asyncio.Queue[tuple[Path, int, tuple[str, ...]]] = asyncio.Queue()

    async def report(self, instance_file: Path, pid: int, living: tuple[str, ...]) -> None:
        self.deaths.put_nowait((instance_file, pid, living))


class FailingReports(RecordedReports):
    """Keeps what was reported, and fails as without free descriptors."""

    async def report(self, instance_file: Path, pid: int, living: tuple[str, ...]) -> None:
        await super().report(instance_file, pid, living)
        raise OSError(errno.EMFILE, "Too many open files")


class FailingTable(list[tuple[ProcessRecord, ...]]):
    """A table that cannot be saved."""

    def append(self, records: tuple[ProcessRecord, ...], /) -> None:
        super().append(records)
        raise psutil.AccessDenied(records[0].identity.pid)


class FailingProbe(FakeProbe):
    """Fails so many times before it looks."""

    failures = 0

    async def is_ready(self, signs: tuple[Readiness, ...]) -> bool:
        if self.failures > 0:
            self.failures -= 1
            raise ValueError("not an answer")
        return await super().is_ready(signs)


@dataclass
class Bench:
    """A supervisor over fakes, and everything it touched."""

    specs: tuple[ProcessSpec, ...]
    launcher: FakeLauncher = field(default_factory=FakeLauncher)
    probe: FakeProbe = field(default_factory=FakeProbe)
    clock: FakeClock = field(default_factory=FakeClock)
    progress: RecordedProgress = field(default_factory=RecordedProgress)
    told: list[tuple[ProcessRecord, ...]] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    starting_max: int = 1
    restarting_max: int = 2
    restart_pause_max_s: float = PAUSE_S_DEFAULT
    reports: RecordedReports = field(default_factory=RecordedReports)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(
            self.specs,
            launcher=self.launcher,
            probe=self.probe,
            clock=self.clock,
            progress=self.progress,
            changed=self.told.append,
            starting_max=self.starting_max,
            restarting_max=self.restarting_max,
            restart_pause_max_s=self.restart_pause_max_s,
            stop_time=StopDeadline(self.clock.monotonic),
            death_reports=self.reports,
        )

    async def run(self) -> None:
        await self.supervisor.run(self.ready.set)


async def test_processes_start_in_order_and_stop_in_reverse() -> None:
    bench = Bench((spec("first"), spec("second", "first"), spec("third", "second")))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.supervisor.stop()
    assert bench.launcher.journal.entries == [
        "launch first-0",
        "launch second-0",
        "launch third-0",
        "terminate third-0",
        "terminate second-0",
        "terminate first-0",
    ]


async def test_only_so_many_processes_start_at_once() -> None:
    bench = Bench((spec("third", "second"), spec("first"), spec("second")), starting_max=2)
    bench.probe.unready |= {"first", "second"}
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.clock.until_sleeping(2)
        assert bench.launcher.journal.entries == ["launch first-0", "launch second-0"]
        bench.probe.unready.clear()
        bench.clock.advance(1)
        await bench.ready.wait()
        bench.supervisor.stop()
    assert "launch third-0" in bench.launcher.journal.entries


async def test_a_crashed_process_is_started_again_ever_more_slowly() -> None:
    bench = Bench((spec("only"),))
    waits = []
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        for _ in range(8):
            bench.launcher.children["only-0"].end(1)
            waits.append(await bench.clock.until_sleeping())
            bench.clock.advance(waits[-1])
            await bench.launcher.journal.until("launch only-0", len(waits) + 1)
        bench.supervisor.stop()
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0])
    assert bench.told[-1][0].restarts == 8


async def test_the_pause_grows_to_the_one_that_was_set() -> None:
    bench = Bench((spec("only"),), restart_pause_max_s=0.5)
    waits = []
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        for _ in range(4):
            bench.launcher.children["only-0"].end(1)
            waits.append(await bench.clock.until_sleeping())
            bench.clock.advance(waits[-1])
            await bench.launcher.journal.until("launch only-0", len(waits) + 1)
        bench.supervisor.stop()
    assert waits == pytest.approx([0.2, 0.4, 0.5, 0.5])


async def test_thirty_seconds_of_health_forgive_earlier_crashes() -> None:
    bench = Bench((spec("only"),))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        for times, healthy_s, expected_s in ((2, 0, 0.2), (3, 0, 0.4), (4, 30, 0.2)):
            bench.clock.advance(healthy_s)
            bench.launcher.children["only-0"].end(1)
            assert await bench.clock.until_sleeping() == pytest.approx(expected_s)
            bench.clock.advance(expected_s)
            await bench.launcher.journal.until("launch only-0", times)
        bench.supervisor.stop()


async def test_a_process_that_ends_before_it_is_ready_fails_the_start_and_stops_the_rest() -> None:
    bench = Bench((spec("first"), spec("second", "first")))
    bench.probe.unready.add("second")
    with pytest.raises(StartFailed) as caught:
        async with asyncio.timeout(5):
            await run_until_second_fails(bench)
    assert (caught.value.name, caught.value.process_exit_code) == ("second-0", 3)
    assert bench.launcher.journal.entries[-1] == "terminate first-0"
    assert not bench.ready.is_set()


async def run_until_second_fails(bench: Bench) -> None:
    failed: StartFailed | None = None

    async def run() -> None:
        nonlocal failed
        try:
            await bench.run()
        except StartFailed as error:
            failed = error

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run())
        await bench.clock.until_sleeping()
        bench.launcher.children["second-0"].end(3)
        bench.clock.advance(1)
    if failed is not None:
        raise failed


async def test_a_process_that_never_gets_ready_is_killed_and_fails_the_start() -> None:
    bench = Bench((spec("only"),))
    bench.probe.unready.add("only")

    async def advance() -> None:
        await bench.clock.until_sleeping()
        bench.clock.advance(READY_S_MAX)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(advance())
        with pytest.raises(StartFailed) as caught:
            await bench.run()
    assert caught.value.process_exit_code is None
    assert "kill only-0" in bench.launcher.journal.entries


async def test_a_second_stop_kills() -> None:
    bench = Bench((spec("only"),))
    bench.launcher.ignoring_terminate.add("only-0")
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.supervisor.stop()
        await bench.launcher.journal.until("terminate only-0")
        bench.supervisor.stop()
        await running
    assert bench.launcher.journal.entries[-1] == "kill only-0"


async def test_the_table_is_told_of_every_start() -> None:
    bench = Bench((spec("only"),))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.supervisor.stop()
    record = bench.told[-1][0]
    assert (record.name, record.identity.pid, record.restarts) == ("only-0", 1, 0)


async def test_a_process_that_cannot_be_started_again_is_tried_again_later() -> None:
    bench = Bench((spec("only"),))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.launcher.refusals = 1
        bench.launcher.children["only-0"].end(-9)
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("refuse only-0")
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("launch only-0", 2)
        bench.supervisor.stop()
    assert "  only-0 cannot be started: no memory" in bench.progress.lines


async def test_all_processes_that_must_be_set_up_differently_are_named() -> None:
    bench = Bench((spec("first"), spec("second"), spec("third", "second"), spec("well")))
    names = ("first", "second", "third")
    bench.probe.unready |= {*names, *(f"unix:/{name}" for name in names)}

    async def refuse() -> None:
        for name in ("first-0", "second-0", "third-0"):
            await bench.launcher.journal.until(f"launch {name}")
            await bench.clock.until_sleeping()
            bench.launcher.children[name].end(2)
            bench.clock.advance(1)
        await bench.clock.until_sleeping()
        bench.clock.advance(1)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(refuse())
        with pytest.raises(StartFailed) as caught:
            await bench.run()
    assert (caught.value.name, caught.value.refusing) == (
        "first-0",
        ("first-0", "second-0", "third-0"),
    )


async def test_a_silent_process_does_not_delay_the_refusal_of_another_for_long() -> None:
    bench = Bench((spec("first"), spec("silent")), starting_max=2)
    bench.probe.unready |= {"first", "silent", "unix:/silent"}

    async def refuse() -> None:
        await bench.clock.until_sleeping(2)
        bench.launcher.children["first-0"].end(2)
        bench.clock.advance(1)
        await bench.clock.until_sleeping(2)
        bench.clock.advance(REFUSING_S_MAX)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(refuse())
        with pytest.raises(StartFailed) as caught:
            await bench.run()
    assert caught.value.refusing == ("first-0",)
    assert bench.launcher.journal.entries[-1] == "terminate silent-0"


async def test_a_process_that_listens_and_waits_for_another_does_not_delay_its_refusal() -> None:
    bench = Bench((spec("first"), spec("waiting")), starting_max=2)
    bench.probe.unready |= {"first", "waiting"}

    async def refuse() -> None:
        await bench.clock.until_sleeping(2)
        bench.launcher.children["first-0"].end(2)
        bench.clock.advance(PROBE_EVERY_S)

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(refuse())
        with pytest.raises(StartFailed) as caught:
            await bench.run()
    assert caught.value.refusing == ("first-0",)
    assert bench.clock.monotonic() < REFUSING_S_MAX


async def test_a_death_is_reported_to_the_living_of_its_service_before_the_restart() -> None:
    one, two, three = (
        replace(
            spec("chatd"),
            name=f"chatd-{number}",
            address=f"unix:/chatd-{number}",
            instance_file=Path(f"/run/chatd-{number}.instance"),
        )
        for number in range(3)
    )
    bench = Bench((one, two, three, spec("gateway", "chatd")))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        first, second = bench.launcher.children["chatd-0"], bench.launcher.children["chatd-1"]
        bench.launcher.children["gateway-0"].end(-9)
        first.end(-9)
        living = ("unix:/chatd-1", "unix:/chatd-2")
        assert await bench.reports.deaths.get() == (one.instance_file, first.pid, living)
        assert bench.launcher.journal.entries.count("launch chatd-0") == 1
        second.end(-9)
        death = (two.instance_file, second.pid, ("unix:/chatd-2",))
        assert await bench.reports.deaths.get() == death
        assert bench.reports.deaths.empty()
        bench.supervisor.stop()


async def test_a_death_that_cannot_be_reported_ends_no_process() -> None:
    first = replace(spec("chatd"), instance_file=Path("/run/chatd-0.instance"))
    bench = Bench((first, spec("gateway", "chatd")), reports=FailingReports())
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        for restarts in (1, 2):
            bench.launcher.children["chatd-0"].end(-9)
            await bench.reports.deaths.get()
            bench.clock.advance(await bench.clock.until_sleeping())
            await bench.launcher.journal.until("launch chatd-0", restarts + 1)
        assert not [entry for entry in bench.launcher.journal.entries if "terminate" in entry]
        bench.supervisor.stop()


async def test_a_table_that_cannot_be_saved_ends_no_process() -> None:
    bench = Bench((spec("first"), spec("second", "first")), told=FailingTable())
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.launcher.children["second-0"].end(-9)
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("launch second-0", 2)
        assert not [entry for entry in bench.launcher.journal.entries if "terminate" in entry]
        bench.supervisor.stop()
    assert [len(records) for records in bench.told] == [1, 2, 2]


async def test_a_readiness_check_that_fails_itself_is_repeated() -> None:
    probe = FailingProbe()
    bench = Bench((spec("first"), spec("second", "first")), probe=probe)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        probe.failures = 1
        bench.launcher.children["second-0"].end(-9)
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("launch second-0", 2)
        bench.clock.advance(await bench.clock.until_sleeping())
        bench.supervisor.stop()
    assert bench.launcher.journal.entries.count("terminate first-0") == 1


async def test_a_launch_that_fails_unexpectedly_is_tried_again_later() -> None:
    bench = Bench((spec("only"),))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.launcher.refusals = 1
        bench.launcher.refusal = psutil.NoSuchProcess(1)
        bench.launcher.children["only-0"].end(-9)
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("refuse only-0")
        bench.clock.advance(await bench.clock.until_sleeping())
        await bench.launcher.journal.until("launch only-0", 2)
        bench.supervisor.stop()


async def test_of_processes_that_ended_together_those_that_continue_turns_start_first() -> None:
    ranks = {"gateway": 2, "mcp": 3, "toolrunner": 1, "chatd": 0}
    bench = Bench(tuple(replace(spec(name), restart_rank=rank) for name, rank in ranks.items()))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.run())
        await bench.ready.wait()
        bench.probe.unready |= ranks.keys()
        for name in ranks:
            bench.launcher.children[f"{name}-0"].end(-9)
        bench.clock.advance(await bench.clock.until_sleeping(len(ranks)))
        await bench.launcher.journal.until("launch toolrunner-0", 2)
        bench.probe.unready.discard("chatd")
        await bench.clock.until_sleeping(2)
        bench.clock.advance(PROBE_EVERY_S)
        await bench.launcher.journal.until("launch gateway-0", 2)
        # The two that are not ready hold their slots for a limited time.
        await bench.clock.until_sleeping(2)
        bench.clock.advance(HELD_S_MAX)
        await bench.launcher.journal.until("launch mcp-0", 2)
        bench.supervisor.stop()
    again = [each for each in bench.launcher.journal.entries if each.startswith("launch")][4:]
    assert set(again[:2]) == {"launch chatd-0", "launch toolrunner-0"}
    assert again[2:] == ["launch gateway-0", "launch mcp-0"]
