"""A toolrunner that is killed: what the next one finds, and that nothing runs twice."""

import asyncio
import json
import os
import shlex
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2, process_service_pb2
from parley.testing.faultpoints import Action
from support.faults.points import FaultPoints
from support.host.conditions import until
from support.toolrunner.node import Client, House, connected, running, toolrunner
from toolrunner.spawner import running_processes

UNTIL_GO = "while ! [ -e go ]; do sleep 0.02; done"
WITHIN_S = 10.0


@asynccontextmanager
async def killed_later(house: House, **settings: str) -> AsyncIterator[Client]:
    """Have a toolrunner that is killed at the end, if it was not before."""
    async with toolrunner(house, **settings) as process:
        async with connected(house) as client:
            yield client
        if process.returncode is None:
            process.kill()
        async with asyncio.timeout(WITHIN_S):
            await process.wait()


@asynccontextmanager
async def next_one(house: House, before: Client) -> AsyncIterator[Client]:
    async with toolrunner(house), connected(house) as client:
        client.stands_for(before)
        yield client


def workspace_of(house: House, client: Client) -> Path:
    return house.data / "workspaces" / client.context.workspace_id / "files"


async def appears(path: Path) -> None:
    await asyncio.to_thread(until, path.exists, f"{path.name}", within_s=WITHIN_S)


async def test_a_process_goes_on_under_the_next_toolrunner(house: House, marks: list[str]) -> None:
    marks.append("sleep\x007301")
    command = f"echo one; {UNTIL_GO}; echo two; (setsid sleep 7301 >/dev/null 2>&1 &); exit 6"
    async with killed_later(house) as before:
        key = await before.key("e1")
        started = await before.start(command, key=key)
        process_id = started.process.process_id
        await before.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    async with next_one(house, before) as client:
        found = await client.get(process_id)
        assert found.state == process_pb2.PROCESS_STATE_RUNNING
        assert (found.pid, found.started_at) == (started.process.pid, started.process.started_at)
        again = await client.start(command, key=key)
        assert (again.attached, again.process.process_id) == (True, process_id)
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            wait = tasks.create_task(client.wait(process_id))
            await client.run("touch go")
        waited = wait.result()
        assert waited.output.text == "one\ntwo\n"
        assert waited.process.exit == process_pb2.ProcessExit(exit_code=6, shell_exit_code=6)
        assert running("sleep\x007301")


async def test_an_exit_while_nobody_was_there_is_told_with_all_the_output(house: House) -> None:
    async with killed_later(house) as before:
        started = await before.start(f"echo one; {UNTIL_GO}; seq 1 5000; touch over; exit 7")
        process_id = started.process.process_id
        await before.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    files = workspace_of(house, before)
    (files / "go").touch()
    await appears(files / "over")
    async with next_one(house, before) as client:
        waited = await client.wait(process_id)
        assert waited.output.text == "one\n" + "".join(f"{n}\n" for n in range(1, 5001))
        assert waited.process.exit == process_pb2.ProcessExit(exit_code=7, shell_exit_code=7)


async def test_no_byte_is_lost_or_doubled_when_a_toolrunner_is_killed_while_it_reads(
    house: House,
) -> None:
    command = "touch begun; i=0; while [ $i -lt 60 ]; do seq -f %08.0f 1 20000; i=$((i+1)); done"
    async with toolrunner(house) as process:
        async with connected(house) as before:
            started = await before.start(command, log_bytes=64 * 1024 * 1024)
            await appears(workspace_of(house, before) / "begun")
            process.kill()
        await process.wait()
    async with next_one(house, before) as client:
        process_id = started.process.process_id
        waited = await client.wait(process_id, max_wait_ms=60_000)
        assert waited.process.exit.exit_code == 0
        expected = b"".join(b"%08d\n" % number for number in range(1, 20_001))
        assert waited.process.output_bytes == 60 * len(expected)
        read = b"".join([each.chunk.data async for each in client.stream(process_id)])
        assert read == 60 * expected


async def test_input_terminals_and_time_limits_outlive_a_kill(house: House) -> None:
    screen = process_pb2.TerminalSize(rows=5, columns=50)
    async with killed_later(house) as before:
        pipe = await before.start("cat", stdin_mode=process_pb2.STDIN_MODE_PIPE)
        terminal = await before.start("cat", terminal=screen)
        limited = await before.start("exec sleep 600", timeout_ms=4000)
    async with next_one(house, before) as client:
        pipe_id, terminal_id = pipe.process.process_id, terminal.process.process_id
        await client.write(pipe_id, b"heard\n", end_of_input=True)
        assert (await client.wait(pipe_id)).output.text == "heard\n"
        await client.resize(terminal_id, 6, 60)
        await client.write(terminal_id, b"typed\n", keys=["ctrl-d"])
        waited = await client.wait(terminal_id)
        assert waited.output.text.replace("\r", "") == "typed\ntyped\n"
        ended = await client.wait(limited.process.process_id)
        assert (ended.process.exit.timed_out, ended.process.exit.signal) == (True, "SIGTERM")


async def test_signals_and_cancellation_reach_what_was_taken_over(
    house: House, marks: list[str]
) -> None:
    marks += ["sleep\x007311", "sleep\x007312", "sleep\x007313"]
    command = (
        "setsid sh -c 'trap \"\" TERM; sleep 7311; sleep 7311' & "
        "(setsid sleep 7312 >/dev/null 2>&1 &); sleep 7313"
    )
    async with killed_later(house) as before:
        key = await before.key("e1")
        await before.start(command, key=key)
        await asyncio.to_thread(
            until, lambda: all(map(running, marks)), "all sleepers", within_s=WITHIN_S
        )
    async with next_one(house, before) as client:
        async with asyncio.timeout(6):
            execution = await client.cancel(key)
        assert execution.state == execution_pb2.EXECUTION_STATE_FINISHED
        assert [mark for mark in marks if running(mark)] == []


async def test_without_a_next_toolrunner_nothing_stays(house: House, marks: list[str]) -> None:
    marks.append("sleep\x007321")
    async with killed_later(house, TOOLRUNNER_ADOPTION_S="0.5") as before:
        await before.start("setsid sleep 7321 & wait")
        await asyncio.to_thread(until, lambda: running(marks[0]), "the sleeper", within_s=WITHIN_S)
    await asyncio.to_thread(
        until, lambda: not running(marks[0]), "the sleeper's end", within_s=WITHIN_S
    )


async def test_what_neither_outlived_is_lost_and_says_why(house: House, marks: list[str]) -> None:
    marks.append("sleep\x007341")
    async with toolrunner(house) as process:
        async with connected(house) as before:
            started = await before.start("setsid sleep 7341 & echo begun; exec sleep 600")
            process_id = started.process.process_id
            await before.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
            await asyncio.to_thread(
                until, lambda: running(marks[0]), "the sleeper", within_s=WITHIN_S
            )
        (spawner,) = [each.pid for each in running_processes() if each.parent == process.pid]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(spawner, signal.SIGKILL)
        process.kill()
        await process.wait()
    async with next_one(house, before) as client:
        await asyncio.to_thread(
            until, lambda: not running(marks[0]), "the sleeper's end", within_s=WITHIN_S
        )
        waited = await client.wait(process_id)
        assert waited.process.state == process_pb2.PROCESS_STATE_LOST
        assert waited.process.lost_reason == process_pb2.PROCESS_LOST_REASON_RUNNER_RESTARTED
        assert waited.output.text == "begun\n"


async def test_a14_processes_of_a_journal_that_is_gone_are_ended(
    house: House, marks: list[str]
) -> None:
    marks.append("sleep\x007331")
    async with killed_later(house) as before:
        key = await before.key("e1")
        await before.start("sleep 7331", key=key)
    for path in house.data.glob("journal.sqlite*"):
        path.unlink()
    async with next_one(house, before) as client:
        await asyncio.to_thread(
            until, lambda: not running(marks[0]), "the stranger's end", within_s=WITHIN_S
        )
        with pytest.raises(grpc.aio.AioRpcError, match="the journal is another one"):
            await client.start("sleep 7331", key=key)


#: Connects, leaves the connection to a child and is gone before anyone looks who connected; the
#: child shows the secret, as whoever runs unconfined as the same user can.
TAKING_OVER = """
import os, socket, struct, sys
path, tries = sys.argv[1], int(sys.argv[2])
try:
    secret = open(path + "/spawner.secret").read()
except OSError:
    secret = ""
word = ('{"number": 1, "op": "adopt", "secret": "%s"}' % secret).encode()
result, result_end = os.pipe()
for number in range(tries):
    connecting = os.fork()
    if connecting == 0:
        spawner = socket.socket(socket.AF_UNIX)
        spawner.settimeout(5)
        spawner.connect(path + "/spawner.sock")
        gone, gone_end = os.pipe()
        if os.fork():
            os._exit(0)
        os.close(gone_end)
        os.read(gone, 1)
        try:
            spawner.send(struct.pack(">I", len(word)) + word)
            os.write(result_end, b"+" if spawner.recv(9) else b"-")
        except OSError:
            os.write(result_end, b"-")
        os._exit(0)
    os.waitpid(connecting, 0)
    answer = os.read(result, 1)
    print(answer.decode(), end="", flush=True)
"""


async def test_nobody_whom_it_started_can_take_the_spawner_over(house: House) -> None:
    program = f"""
import socket
spawner = socket.socket(socket.AF_UNIX)
spawner.settimeout(5)
spawner.connect({str(house.data / "spawner.sock")!r})
secret = open({str(house.data / "spawner.secret")!r}, "rb").read()
word = b'{{"number": 1, "op": "adopt", "secret": "%s"}}' % secret
try:
    spawner.send(len(word).to_bytes(4, "big") + word)
    print(spawner.recv(9).decode() or "refused")
except ConnectionError:
    print("refused")
"""
    async with killed_later(house) as before:
        started = await before.start(
            f"{UNTIL_GO}; python3 -c {shlex.quote(program)} 2>&1; touch tried"
        )
        process_id = started.process.process_id
    files = workspace_of(house, before)
    (files / "go").touch()
    await appears(files / "tried")
    async with next_one(house, before) as client:
        waited = await client.wait(process_id)
        assert waited.output.text == "refused\n"


async def test_whoever_connects_and_dies_leaves_its_children_nothing_to_take_over(
    house: House,
) -> None:
    tries = 50
    attack = f"python3 -c {shlex.quote(TAKING_OVER)} {shlex.quote(str(house.data))} {tries}"
    async with killed_later(house) as before:
        started = await before.start(f"{UNTIL_GO}; {attack}; touch tried")
        process_id = started.process.process_id
    files = workspace_of(house, before)
    (files / "go").touch()
    await appears(files / "tried")
    async with next_one(house, before) as client:
        waited = await client.wait(process_id)
        assert waited.output.text == "-" * tries


async def test_a_stranger_takes_the_spawner_over_only_with_the_secret(house: House) -> None:
    async with killed_later(house) as before:
        started = await before.start(f"{UNTIL_GO}; echo went on")
    # This test is nobody whom the spawner started.
    for secret in ("", "0" * 64):
        assert await asyncio.to_thread(answer_to, house.data, secret) == b""
    silent = socket.socket(socket.AF_UNIX)
    silent.connect(str(house.data / "spawner.sock"))
    with silent:
        (workspace_of(house, before) / "go").touch()
        async with next_one(house, before) as client:
            waited = await client.wait(started.process.process_id)
            assert waited.output.text == "went on\n"


def answer_to(data: Path, secret: str) -> bytes:
    """Return what the spawner answers to whoever shows a secret."""
    word = json.dumps({"number": 1, "op": "adopt", "secret": secret}).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(WITHIN_S)
        channel.connect(str(data / "spawner.sock"))
        try:
            channel.send(len(word).to_bytes(4, "big") + word)
            return channel.recv(9)
        except ConnectionError:
            return b""


MOMENTS = ("spawn.before", "spawn.after")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a13_a_kill_between_journal_and_result_runs_it_once_or_never(
    house: House, tmp_path: Path, moment: str
) -> None:
    points = FaultPoints(tmp_path / "points")
    points.directory.mkdir()
    faults = {
        "TOOLRUNNER_FAULTPOINTS_DIRECTORY": str(points.directory),
        "TOOLRUNNER_ENVIRONMENT": "development",
    }
    command = "echo ran >> runs"
    async with toolrunner(house, **faults) as process, connected(house) as before:
        key = await before.key("e1")
        points.arm(moment, Action.KILL)
        with pytest.raises(grpc.aio.AioRpcError):
            await before.processes.StartProcess(request_for(before, command, key), timeout=WITHIN_S)
        await process.wait()
    async with next_one(house, before) as client:
        execution = await client.execution(key)
        again = await client.start(command, key=key)
        waited = await client.wait(again.process.process_id)
        runs = (await client.run("cat runs 2>/dev/null | wc -l")).output.text.strip()
    assert again.attached
    if moment == "spawn.before":
        assert execution.state == execution_pb2.EXECUTION_STATE_UNKNOWN
        assert waited.process.lost_reason == process_pb2.PROCESS_LOST_REASON_START_UNCERTAIN
        assert runs == "0"
    else:
        assert execution.state == execution_pb2.EXECUTION_STATE_FINISHED
        assert waited.process.exit == process_pb2.ProcessExit(exit_code=0)
        assert runs == "1"


def request_for(
    client: Client, command: str, key: execution_pb2.ExecutionKey
) -> process_service_pb2.StartProcessRequest:
    return process_service_pb2.StartProcessRequest(
        context=client.context,
        request_id=key.execution_id,
        key=key,
        spec=process_pb2.ProcessSpec(command=command),
    )


async def test_a12_kills_at_any_moment_never_run_a_call_twice(house: House) -> None:
    """Starts keep coming while toolrunners are killed; each call is repeated until it answers."""
    calls = [f"call-{number}" for number in range(12)]
    async with toolrunner(house) as first, connected(house) as client:
        keys = [await client.key(call) for call in calls]
        before = client
        async with asyncio.TaskGroup() as tasks:
            for key in keys[:6]:
                tasks.create_task(client.start(counting(key), key=key))
        await client.start(counting(keys[6]), key=keys[6])
        first.kill()
        await first.wait()
    async with toolrunner(house) as second, connected(house) as client:
        client.stands_for(before)
        async with asyncio.TaskGroup() as tasks:
            for key in keys[:9]:
                tasks.create_task(client.start(counting(key), key=key))
        second.kill()
        await second.wait()
    async with next_one(house, before) as client:
        processes = [(await client.start(counting(key), key=key)).process for key in keys]
        ended = [await client.wait(process.process_id) for process in processes]
        assert {each.process.exit.exit_code for each in ended} == {0}
        counted = await client.run("sort runs | uniq -c | awk '{print $1}' | sort -u; wc -l < runs")
        assert counted.output.text.split() == ["1", str(len(calls))]


def counting(key: execution_pb2.ExecutionKey) -> str:
    return f"echo {key.execution_id} >> runs; sleep 0.2"


async def test_a_process_that_needs_an_owner_ends_when_its_toolrunner_was_killed(
    house: House, marks: list[str]
) -> None:
    marks.append("sleep\x007302")
    async with killed_later(house) as before:
        started = await before.start(
            "exec sleep 7302", stdin_mode=process_pb2.STDIN_MODE_PIPE, needs_owner=True
        )
        opening = process_service_pb2.AttachOpen(
            context=before.context, process_id=started.process.process_id, owns_process=True
        )
        call = before.processes.Attach()
        await call.write(process_service_pb2.AttachRequest(open=opening))
        await call.read()
    async with next_one(house, before) as client:
        waited = await client.wait(started.process.process_id)
        assert waited.process.state == process_pb2.PROCESS_STATE_EXITED
