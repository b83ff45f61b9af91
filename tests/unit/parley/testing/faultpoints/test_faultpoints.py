import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from chatd.settings import Settings
from parley.clock import FakeClock, SystemClock
from parley.settings import SettingsError, read
from parley.testing.faultpoints import (
    Action,
    Arming,
    FaultInjected,
    FaultpointDirectory,
    OffsetClock,
)

CHATD = {
    "CHATD_LISTEN": "unix:/run/chatd.sock",
    "CHATD_TRUST_FILE": "/trust.json",
    "CHATD_SIGNING_KEY_FILE": "/key.pem",
    "CHATD_DATABASE_URL": "postgresql://chatd@/parley",
    "CHATD_MASTER_KEY_FILE": "/master.json",
    "CHATD_GATEWAY": "unix:/run/gateway.sock",
    "CHATD_TOOLRUNNER": "unix:/run/toolrunner.sock",
    "CHATD_MCPGATEWAY": "unix:/run/mcpgateway.sock",
}


def arm(directory: Path, point: str, arming: Arming) -> None:
    (directory / point).write_text(arming.to_json())


def reached(directory: Path) -> list[str]:
    lines = (directory / "reached.jsonl").read_text().splitlines()
    return [json.loads(line)["subject"] for line in lines]


def files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_a_point_that_nobody_armed_does_nothing(tmp_path: Path) -> None:
    await FaultpointDirectory(tmp_path, FakeClock()).reached("model.asked", "a")
    assert files(tmp_path) == []


async def test_an_armed_point_counts_visits_of_its_subjects_alone(tmp_path: Path) -> None:
    points = FaultpointDirectory(tmp_path, FakeClock())
    arm(tmp_path, "model.event", Arming("1", Action.RAISE, os.getpid(), ("a",), nth=2))
    await points.reached("model.event", "a")
    await points.reached("model.event", "b")
    await points.reached("model.event", "b")
    with pytest.raises(FaultInjected):
        await points.reached("model.event", "a")
    await points.reached("model.event", "a")
    assert reached(tmp_path) == ["a"]


async def test_a_point_armed_for_another_process_does_nothing(tmp_path: Path) -> None:
    points = FaultpointDirectory(tmp_path, FakeClock())
    arm(tmp_path, "model.asked", Arming("1", Action.RAISE, os.getpid() + 1))
    await points.reached("model.asked", "a")


async def test_whoever_is_held_goes_on_when_the_point_is_disarmed(tmp_path: Path) -> None:
    points = FaultpointDirectory(tmp_path, SystemClock())
    arm(tmp_path, "model.asked", Arming("1", Action.HOLD))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        held = tasks.create_task(points.reached("model.asked", "a"))
        while not (tmp_path / "reached.jsonl").exists():
            await asyncio.wait((held,), timeout=0.01)
        assert not held.done()
        (tmp_path / "model.asked").unlink()


async def test_a_gathering_waits_for_its_last_subject(tmp_path: Path) -> None:
    points = FaultpointDirectory(tmp_path, SystemClock())
    arm(tmp_path, "model.asked", Arming("1", Action.RAISE, gather=2))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(points.reached("model.asked", "a"))
        await asyncio.wait((first,), timeout=0.05)
        assert not first.done()
        with pytest.raises(FaultInjected):
            await points.reached("model.asked", "b")
        (tmp_path / "model.asked").unlink()


def test_an_offset_clock_is_wrong_only_in_its_own_process(tmp_path: Path) -> None:
    clock = FakeClock()
    offset = OffsetClock(clock, tmp_path)
    assert offset.now() == clock.now()
    (tmp_path / "clock").write_text(json.dumps({"pid": os.getpid(), "offset_s": 3600}))
    assert (offset.now(), offset.monotonic()) == (
        clock.now() + timedelta(hours=1),
        clock.monotonic(),
    )
    (tmp_path / "clock").write_text(json.dumps({"pid": os.getpid() + 1, "offset_s": 3600}))
    assert offset.now() == clock.now()


def test_faults_cannot_be_armed_in_production() -> None:
    armed = {**CHATD, "CHATD_FAULTPOINTS_DIRECTORY": "/faults"}
    with pytest.raises(SettingsError, match="not for production"):
        read(Settings, armed, prefix="CHATD")
    read(Settings, {**armed, "CHATD_ENVIRONMENT": "development"}, prefix="CHATD")


def test_a_lease_is_renewed_at_least_three_times() -> None:
    with pytest.raises(SettingsError, match="a third of CHATD_LEASE_S"):
        read(Settings, {**CHATD, "CHATD_LEASE_S": "6"}, prefix="CHATD")
    read(Settings, {**CHATD, "CHATD_LEASE_S": "6", "CHATD_LEASE_RENEW_S": "1"}, prefix="CHATD")
