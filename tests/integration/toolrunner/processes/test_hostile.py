"""Processes that misbehave: rows of the fault matrix, each named for its row."""

import asyncio
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator

import grpc
import psutil
import pytest

from parley.api.workspace.v1 import process_pb2, process_service_pb2, workspace_pb2
from support.host.conditions import until
from support.host.memory_peak import memory_peak
from support.session.row_sizes import RowSizes
from support.session.told_results import NODE
from support.toolrunner.node import Client, House, connected, node, reason_of, running, toolrunner

WITHIN_S = 10.0
#: A chat may have 16 processes.
AT_ONCE = 15
MEGABYTE = 1024 * 1024
#: Row E6 allows half a second; the rest is for a machine that does other things as well.
PROMPT_S = 4.0
SNAPSHOT = process_pb2.WAIT_UNTIL_SNAPSHOT

#: A child that its parent traces is stopped by a signal that it sends itself.
TRACED = """
import ctypes, os, signal, time
child = os.fork()
if child == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGTRAP)
    time.sleep(7411)
os.waitpid(child, os.WUNTRACED)
print("up", flush=True)
time.sleep(7411)
"""


def spawner_pid() -> int:
    """Return the one spawner that is a child of this process, where the node runs."""
    (spawner,) = [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and "spawner" in " ".join(child.cmdline())
    ]
    return spawner.pid


def zombies_below(ancestor: int) -> list[int]:
    return [
        each.pid
        for each in psutil.Process(ancestor).children(recursive=True)
        if each.status() == psutil.STATUS_ZOMBIE
    ]


@pytest.fixture
def descriptors() -> Iterator[None]:
    """The node leaves as many descriptors open as there were before."""
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("command", ["yes", "cat /dev/urandom"])
async def test_e5_endless_output_keeps_head_and_tail_in_flat_memory(
    client: Client, command: str
) -> None:
    started = await client.start(command, log_bytes=4 * MEGABYTE)
    process_id = started.process.process_id

    async def printed(megabytes: int) -> None:
        async with asyncio.timeout(60):
            while (await client.get(process_id)).output_bytes < megabytes * MEGABYTE:
                await client.wait(process_id, max_wait_ms=50)

    await printed(20)
    before = psutil.Process().memory_info().rss
    await printed(100)
    grown = psutil.Process().memory_info().rss - before
    assert grown < 16 * MEGABYTE
    snapshot = await client.wait(process_id, SNAPSHOT)
    assert len(snapshot.output.text.encode()) <= 32 * 1024
    assert snapshot.output.truncation.original_bytes == snapshot.output.next_cursor
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    await client.wait(process_id)


async def test_e5_a_line_without_end_keeps_head_and_tail_in_flat_memory(
    client: Client, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    length = sizes.line_mib * MEGABYTE
    command = f"printf first; head -c {length} /dev/zero | tr '\\0' x; printf last"
    with memory_peak() as peak:
        started = await client.start(command, log_bytes=4 * MEGABYTE)
        process_id = started.process.process_id
        waited = await client.wait(process_id, max_wait_ms=300_000)
        assert waited.process.output_bytes == length + len("firstlast")
    text, truncation = waited.output.text, waited.output.truncation
    assert (text[:6], text[-5:]) == ("firstx", "xlast")
    assert len(text.encode()) <= 32 * 1024
    assert truncation.original_bytes == waited.process.output_bytes
    record_property(
        NODE, f"E5: a line of {sizes.line_mib} MiB added {peak.added_bytes // MEGABYTE} MiB"
    )
    assert peak.added_bytes < 24 * MEGABYTE


async def test_h11_many_noisy_processes_take_bounded_memory(client: Client) -> None:
    """A small variant of 200 processes that print 100 MB each, which bench/processes.py runs."""
    before = psutil.Process().memory_info().rss
    started = []
    for at in range(32):
        if at % 16 == 0:
            client.context.chat_id = client.new_id()
        started.append((client.context.chat_id, await client.start("yes | head -c 3000000")))
    for chat_id, each in started:
        client.context.chat_id = chat_id
        waited = await client.wait(each.process.process_id, max_wait_ms=60_000)
        assert waited.process.output_bytes == 3_000_000
        assert waited.output.text.startswith("y\n")
        assert waited.output.text.endswith("y\n")
    assert psutil.Process().memory_info().rss - before < 48 * MEGABYTE


@pytest.mark.parametrize(
    ("command", "is_held"),
    [
        ("sleep 7401 & echo x", True),
        ("sleep 7401 >/dev/null 2>&1 & echo x", False),
        ("(exec 3>&1; exec 1>/dev/null 2>&1; sleep 7401) & echo x", True),
        ("setsid sleep 7401 & echo x", True),
        ("(setsid sh -c 'sleep 7401 &' >/dev/null 2>&1 &); echo x", False),
        ("nohup sleep 7401 2>/dev/null & echo x", True),
        ("bash -c 'echo x > >(cat; sleep 7401)'; sleep 0.1", True),
    ],
    ids=["background", "detached", "silent-holder", "setsid", "double-fork", "nohup", "e7-tee"],
)
async def test_e6_e7_h3_an_exit_is_told_whoever_holds_the_output(
    house: House, marks: list[str], command: str, is_held: bool
) -> None:
    marks.append("sleep\x007401")
    async with node(house), connected(house) as client:
        started = await client.start(command)
        process_id = started.process.process_id
        async with asyncio.timeout(PROMPT_S):
            waited = await client.wait(process_id)
        assert (waited.output.text, waited.process.exit.exit_code) == ("x\n", 0)
        assert waited.process.exit.pipes_open is is_held
        await asyncio.to_thread(
            until, lambda: running(marks[0]), "the one left behind", within_s=WITHIN_S
        )


async def test_e6_h4_no_end_of_a_pipe_stays_with_the_service(
    descriptors: None, house: House
) -> None:
    async with node(house), connected(house) as client:
        spawner = spawner_pid()
        await client.run("true")
        before = len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{spawner}/fd"))
        for _ in range(20):
            await client.run("echo x", stdin=b"y")
        screen = process_pb2.TerminalSize(rows=5, columns=5)
        for _ in range(5):
            await client.run("echo x", terminal=screen)
        for _ in range(5):
            await client.run("no-such-program-at-all")

        def settled() -> bool:
            return len(os.listdir(f"/proc/{spawner}/fd")) <= before[1]

        await asyncio.to_thread(until, settled, "the spawner's forgetting", within_s=WITHIN_S)
        assert len(os.listdir("/proc/self/fd")) <= before[0] + 1


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT HUP; echo up; while :; do sleep 7411; done",
        "echo up; kill -STOP $$; sleep 7411",
        "trap '' TERM; (sleep 7411 & exec sleep 7411) & echo up; wait",
        "echo up; python3 -c 'import os, time; os.fork() or os._exit(0); time.sleep(7411)'",
        f"python3 -c {shlex.quote(TRACED)}",
    ],
    ids=["deaf", "stopped", "deaf-parent", "zombie-parent", "traced"],
)
async def test_e8_whoever_does_not_want_to_end_is_gone_after_a_cancellation(
    client: Client, marks: list[str], command: str
) -> None:
    marks.append("7411")
    key = await client.key("e1")
    started = await client.start(command, key=key)
    await client.wait(started.process.process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    spawner = spawner_pid()
    async with asyncio.timeout(6):
        await client.cancel(key)
    assert running("7411") == []
    await asyncio.to_thread(
        until, lambda: not zombies_below(spawner), "the reaping", within_s=WITHIN_S
    )


async def test_h24_no_zombie_stays_after_many_commands(
    each_house: House, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    async with node(each_house), connected(each_house) as client:
        spawner = spawner_pid()
        began_s = time.monotonic()
        for _ in range(sizes.commands // AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for _ in range(AT_ONCE):
                    tasks.create_task(client.run("(sleep 0.01 &) ; (true &); true"))
        await asyncio.to_thread(
            until, lambda: not zombies_below(spawner), "the reaping", within_s=WITHIN_S
        )
        took_s = time.monotonic() - began_s
    told = f"{sizes.commands} commands in {took_s:.0f} s, sandbox {each_house.sandbox_level}"
    record_property(NODE, f"H24: no zombie after {told}")


async def test_h12_a_deleted_log_takes_no_more_of_the_disk_than_a_log(
    client: Client, house: House
) -> None:
    started = await client.start("yes", log_bytes=2 * MEGABYTE)
    process_id = started.process.process_id
    logs = house.data / "workspaces" / client.context.workspace_id / "logs"
    async with asyncio.timeout(30):
        while (await client.get(process_id)).output_bytes < 20 * MEGABYTE:
            for path in logs.glob("*"):
                path.unlink(missing_ok=True)
            await client.wait(process_id, max_wait_ms=20)
    held = [
        os.stat(f"/proc/self/fd/{name}").st_size
        for name in os.listdir("/proc/self/fd")
        if link_of(name).startswith(str(logs)) and link_of(name).endswith("(deleted)")
    ]
    # One more is begun before the oldest is let go.
    assert sum(held) <= 2 * MEGABYTE + 65536
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    waited = await client.wait(process_id)
    assert waited.output.text.endswith("y\n")


def link_of(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


async def test_e21_escape_sequences_stay_out_of_the_text(client: Client) -> None:
    hostile = (
        r"\033]0;title\007\033[31mred\033[0m\033]8;;http://x\033\\link\033]8;;\033\\"
        r"\033P+q\033\\\033[2J\033[?1049h."
    )
    waited = await client.run(f"printf '{hostile}'")
    assert waited.output.text == "redlink."
    kept = await client.wait(
        waited.process.process_id, SNAPSHOT, budget=process_pb2.OutputBudget(keep_escapes=True)
    )
    assert "\x1b[31m" in kept.output.text


async def test_scenario_12_another_chat_sees_nothing(client: Client) -> None:
    started = await client.start("exec sleep 600", stdin_mode=process_pb2.STDIN_MODE_PIPE)
    process_id, workspace_id = started.process.process_id, client.context.workspace_id
    client.context = workspace_pb2.WorkspaceContext(
        workspace_id=workspace_id, chat_id=client.new_id(), profile=client.context.profile
    )
    for call in (
        client.write(process_id, b"x"),
        client.resize(process_id, 5, 5),
        anext(aiter(client.stream(process_id))),
    ):
        assert (await reason_of(call))[1] == "PROCESS_NOT_FOUND"


async def test_a18_a_toolrunner_that_was_stopped_goes_on_where_it_was(
    house: House, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    command = "sleep 0.3; echo ran >> runs; echo over"
    async with toolrunner(house) as process, connected(house) as client:
        key = await client.key("e1")
        lasting = await client.start("exec sleep 600")
        started = await client.start(command, key=key)
        process_id = started.process.process_id
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(Exception, match="Deadline"):
            await client.processes.WaitOutput(request_of(client, process_id), timeout=sizes.stop_s)
        os.kill(process.pid, signal.SIGCONT)
        again = await client.start(command, key=key)
        assert again.process.process_id == process_id
        assert (await client.wait(process_id)).output.text == "over\n"
        assert (await client.run("cat runs")).output.text == "ran\n"
        kept = await client.get(lasting.process.process_id)
        assert kept.state == process_pb2.PROCESS_STATE_RUNNING
    record_property(NODE, f"A18: stopped for {sizes.stop_s:.0f} s, 1 run, no false kill")


async def test_a31_a_full_disk_is_told_and_the_service_lives(house: House) -> None:
    async with toolrunner(house) as process, connected(house) as client:
        before = await client.start("while ! [ -e go ]; do sleep 0.02; done; seq 1 20000")
        service = psutil.Process(process.pid)
        kept = service.rlimit(psutil.RLIMIT_FSIZE)
        service.rlimit(psutil.RLIMIT_FSIZE, (4096, kept[1]))
        assert await reason_of(client.start("true")) == (
            grpc.StatusCode.UNAVAILABLE,
            "JOURNAL_UNAVAILABLE",
        )
        service.rlimit(psutil.RLIMIT_FSIZE, (64 * 1024, kept[1]))
        files = house.data / "workspaces" / client.context.workspace_id / "files"
        (files / "go").touch()
        waited = await client.wait(before.process.process_id)
        assert waited.output.text.endswith("\n20000\n")
        assert waited.process.exit.exit_code == 0
        service.rlimit(psutil.RLIMIT_FSIZE, kept)
        assert (await client.run("echo again")).output.text == "again\n"


def request_of(client: Client, process_id: str) -> process_service_pb2.WaitOutputRequest:
    return process_service_pb2.WaitOutputRequest(
        context=client.context,
        process_id=process_id,
        condition=process_pb2.WaitCondition(max_wait_ms=60_000),
    )
