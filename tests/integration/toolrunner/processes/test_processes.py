"""Processes through gRPC: started, waited for, signalled, listed, seen by whom they concern."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, process_service_pb2, sandbox_pb2, workspace_pb2
from parley.rpc import problem_of
from support.toolrunner.node import Client, House
from toolrunner.processes.registry import CHAT_PROCESSES_MAX, WORKSPACE_PROCESSES_MAX

UNTIL_GO = "while ! [ -e go ]; do sleep 0.02; done"


async def reason_of(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    problem = problem_of(refused.value)
    return problem.status, problem.reason


async def test_a_command_runs_through_a_shell_and_tells_its_output(client: Client) -> None:
    waited = await client.run("echo one; echo two >&2; exit 3")
    assert waited.reason == process_pb2.WAIT_REASON_EXITED
    assert waited.process.state == process_pb2.PROCESS_STATE_EXITED
    assert waited.process.exit == process_pb2.ProcessExit(exit_code=3, shell_exit_code=3)
    assert waited.output == process_pb2.ProcessOutput(text="one\ntwo\n", next_cursor=8)
    assert waited.process.output_bytes == 8


def starting(
    client: Client, command: str, until: "process_pb2.WaitUntil.ValueType", wait_ms: int
) -> process_service_pb2.StartProcessRequest:
    return process_service_pb2.StartProcessRequest(
        context=client.context,
        request_id=f"start {command}",
        spec=process_pb2.ProcessSpec(command=command),
        condition=process_pb2.WaitCondition(until=until, max_wait_ms=wait_ms),
        budget=process_pb2.OutputBudget(max_bytes=1024),
    )


async def test_a_start_brings_the_end_of_what_is_over_in_time(client: Client) -> None:
    request = starting(client, "echo one; exit 3", process_pb2.WAIT_UNTIL_EXIT, 10_000)
    started = await client.processes.StartProcess(request)
    waited = await client.wait(started.process.process_id)
    assert started == process_service_pb2.StartProcessResponse(
        process=waited.process, output=waited.output, reason=process_pb2.WAIT_REASON_EXITED
    )
    assert (started.output.text, started.process.exit.exit_code) == ("one\n", 3)


async def test_a_start_that_waits_otherwise_is_the_same_start(client: Client) -> None:
    command = f"echo here; {UNTIL_GO}"
    first = await client.processes.StartProcess(
        starting(client, command, process_pb2.WAIT_UNTIL_OUTPUT, 10_000)
    )
    assert (first.reason, first.output.text) == (process_pb2.WAIT_REASON_OUTPUT, "here\n")
    late = await client.processes.StartProcess(
        starting(client, command, process_pb2.WAIT_UNTIL_EXIT, 20)
    )
    assert (late.reason, late.attached) == (process_pb2.WAIT_REASON_TIMEOUT, True)
    plain = starting(client, command, process_pb2.WAIT_UNTIL_EXIT, 20)
    plain.ClearField("condition")
    attached = await client.processes.StartProcess(plain)
    assert (attached.reason, attached.attached) == (process_pb2.WAIT_REASON_UNSPECIFIED, True)
    assert {each.process.process_id for each in (first, late, attached)} == {
        first.process.process_id
    }
    await client.run("touch go")


async def test_a_start_that_waits_for_a_match_starts_nothing(client: Client) -> None:
    request = starting(client, "echo one", process_pb2.WAIT_UNTIL_MATCH, 10)
    refusal = await reason_of(client.processes.StartProcess(request))
    assert refusal == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    listing = process_service_pb2.ListProcessesRequest(context=client.context)
    assert (await client.processes.ListProcesses(listing)).total == 0


async def test_words_run_without_a_shell(client: Client) -> None:
    request = process_service_pb2.StartProcessRequest(
        context=client.context,
        request_id="words",
        spec=process_pb2.ProcessSpec(
            argv=process_pb2.ArgumentVector(arguments=["echo", "$HOME", "a  b"])
        ),
    )
    started = await client.processes.StartProcess(request)
    waited = await client.wait(started.process.process_id)
    assert waited.output.text == "$HOME a  b\n"


async def test_a_program_that_is_not_there_never_ran(client: Client) -> None:
    request = process_service_pb2.StartProcessRequest(
        context=client.context,
        request_id="missing",
        spec=process_pb2.ProcessSpec(argv=process_pb2.ArgumentVector(arguments=["no-such-one"])),
    )
    process = (await client.processes.StartProcess(request)).process
    assert process.state == process_pb2.PROCESS_STATE_START_FAILED
    assert process.start_error.startswith("no-such-one cannot be run: No such file")
    waited = await client.wait(process.process_id)
    assert waited.process == process


async def test_nothing_confines_a_process_and_it_says_so(client: Client) -> None:
    used = (await client.start("true")).process.sandbox
    if sandbox_pb2.SANDBOX_LAYER_CGROUP in used.layers:
        # Some machines have it; it bounds and does not confine.
        used.layers.remove(sandbox_pb2.SANDBOX_LAYER_CGROUP)
    assert used == sandbox_pb2.SandboxUsed(
        level=sandbox_pb2.SANDBOX_LEVEL_NONE,
        layers=[sandbox_pb2.SANDBOX_LAYER_DESCRIPTORS, sandbox_pb2.SANDBOX_LAYER_RLIMITS],
        profile=sandbox_pb2.SANDBOX_PROFILE_FULL,
        network=sandbox_pb2.NETWORK_ACCESS_OPEN,
    )


async def test_a_process_gets_no_variable_and_no_descriptor_of_the_service(
    client: Client, house: House
) -> None:
    waited = await client.run("env | sort; ls -l /proc/self/fd | wc -l", environment={"MINE": "1"})
    names = [line.partition("=")[0] for line in waited.output.text.splitlines()[:-1]]
    assert set(names) - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "COLORTERM",
        "EDITOR",
        "GH_PAGER",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_SEQUENCE_EDITOR",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "MINE",
        "NO_COLOR",
        "PAGER",
        "PARLEY_AGENT",
        "PARLEY_CHAT_ID",
        "PARLEY_PROCESS_ID",
        "PATH",
        "TERM",
        "TMPDIR",
        "VISUAL",
    }
    # A header, three standard ones, and the directory that ls itself has open.
    assert waited.output.text.splitlines()[-1].strip() == "5"


async def test_standard_input_is_closed(client: Client) -> None:
    waited = await client.run("cat; echo done")
    assert waited.output.text == "done\n"


async def test_a_process_leads_a_session_of_its_own(client: Client) -> None:
    started = await client.start(
        "ps -o pid=,pgid=,sid= -p $$ 2>/dev/null || cut -d' ' -f1,5,6 /proc/$$/stat"
    )
    waited = await client.wait(started.process.process_id)
    assert {*waited.output.text.split()} == {str(started.process.pid)}


async def test_files_stay_between_the_processes_of_a_workspace(client: Client) -> None:
    await client.run("mkdir -p a/b && echo kept > a/b/file")
    waited = await client.run("cat file; pwd", workdir="a/b")
    assert waited.output.text == f"kept\n{waited.process.workdir}\n"
    assert waited.process.workdir.endswith(f"{client.context.workspace_id}/files/a/b")


@pytest.mark.parametrize(
    ("workdir", "reason"),
    [
        ("..", (grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE")),
        ("/etc", (grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE")),
        ("nowhere", (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")),
    ],
)
async def test_a_directory_must_be_in_the_workspace(
    client: Client, workdir: str, reason: tuple[grpc.StatusCode, str]
) -> None:
    assert await reason_of(client.start("pwd", workdir=workdir)) == reason


async def test_a_link_that_leads_out_is_no_way_out(client: Client, house: House) -> None:
    await client.run("ln -s / out")
    assert await reason_of(client.start("pwd", workdir="out")) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "OUTSIDE_WORKSPACE",
    )


async def test_running_out_of_time_is_an_answer(client: Client) -> None:
    started = await client.start("echo begun; exec sleep 60")
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    waited = await client.wait(process_id, max_wait_ms=50)
    assert waited.reason == process_pb2.WAIT_REASON_TIMEOUT
    assert waited.process.state == process_pb2.PROCESS_STATE_RUNNING
    assert waited.process.running_members == 1
    assert waited.output == process_pb2.ProcessOutput(text="begun\n", next_cursor=6)


async def test_a_wait_shorter_than_its_deadline_is_answered_in_time(client: Client) -> None:
    started = await client.start("sleep 60")
    request = process_service_pb2.WaitOutputRequest(
        context=client.context,
        process_id=started.process.process_id,
        condition=process_pb2.WaitCondition(max_wait_ms=300_000),
    )
    waited = await client.processes.WaitOutput(request, timeout=2.1)
    assert waited.reason == process_pb2.WAIT_REASON_TIMEOUT


async def test_a_snapshot_does_not_wait(client: Client) -> None:
    started = await client.start("sleep 60")
    waited = await client.wait(started.process.process_id, process_pb2.WAIT_UNTIL_SNAPSHOT)
    assert waited.reason == process_pb2.WAIT_REASON_SNAPSHOT
    assert waited.process.state == process_pb2.PROCESS_STATE_RUNNING


async def test_new_output_wakes_who_waits_for_it(client: Client) -> None:
    started = await client.start(
        "echo one; while ! [ -e go ]; do sleep 0.02; done; echo two; sleep 60"
    )
    process_id = started.process.process_id
    first = await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    assert (first.output.text, first.reason) == ("one\n", process_pb2.WAIT_REASON_OUTPUT)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        second = tasks.create_task(
            client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT, since_cursor=4)
        )
        tasks.create_task(client.run("touch go"))
    assert second.result().output == process_pb2.ProcessOutput(text="two\n", next_cursor=8)


async def test_many_wait_for_one_process(client: Client) -> None:
    started = await client.start(f"{UNTIL_GO}; exit 7")
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(client.wait(started.process.process_id)) for _ in range(50)]
        await client.run("touch go")
    assert {wait.result().process.exit.exit_code for wait in waits} == {7}


async def test_waiting_for_exit_is_not_waiting_for_the_end_of_output(client: Client) -> None:
    async with asyncio.timeout(5):
        waited = await client.run("sleep 600 & echo done")
    assert waited.output.text == "done\n"
    assert waited.process.exit == process_pb2.ProcessExit(exit_code=0, pipes_open=True)
    assert waited.process.running_members == 1
    after = await client.signal(waited.process.process_id, process_pb2.PROCESS_SIGNAL_KILL)
    assert after.exit.exit_code == 0


async def test_a_signal_reaches_the_whole_group_and_is_named(client: Client) -> None:
    started = await client.start("sleep 600 & sleep 601 & wait")
    process_id = started.process.process_id
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    waited = await client.wait(process_id)
    assert waited.process.exit == process_pb2.ProcessExit(signal="SIGKILL", shell_exit_code=137)
    assert waited.process.running_members == 0


async def test_a_signal_can_be_for_the_leader_only(client: Client) -> None:
    started = await client.start("sleep 600 & echo up; wait")
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    await client.signal(process_id, leader_only=True)
    waited = await client.wait(process_id)
    assert waited.process.exit == process_pb2.ProcessExit(
        signal="SIGTERM", shell_exit_code=143, pipes_open=True
    )
    assert waited.process.running_members == 1


async def test_what_ignores_a_signal_is_killed_if_asked_for(client: Client) -> None:
    started = await client.start("trap '' TERM; echo deaf; while :; do sleep 600; done")
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    await client.signal(process_id, escalate_after_ms=200)
    waited = await client.wait(process_id)
    assert waited.process.exit.signal == "SIGKILL"


async def test_a_process_that_ended_cannot_be_signalled(client: Client) -> None:
    waited = await client.run("true")
    assert await reason_of(client.signal(waited.process.process_id)) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "PROCESS_NOT_RUNNING",
    )


async def test_the_time_limit_ends_a_process(client: Client) -> None:
    waited = await client.run("sleep 600", timeout_ms=100)
    assert waited.process.exit.timed_out
    # A shell whose command was hit first ends by itself, with the same code for its caller.
    assert waited.process.exit.shell_exit_code == 128 + signal.SIGTERM


async def test_much_output_keeps_its_tail_and_can_be_read_on(client: Client) -> None:
    waited = await client.run("seq 1 200000; echo the end")
    assert waited.output.text.startswith("1\n2\n3\n")
    assert waited.output.text.endswith("200000\nthe end\n")
    assert len(waited.output.text.encode()) <= 32 * 1024
    total = waited.process.output_bytes
    assert waited.output.truncation.original_bytes == total == waited.output.next_cursor
    rest = await client.wait(
        waited.process.process_id,
        process_pb2.WAIT_UNTIL_SNAPSHOT,
        since_cursor=total - 500_000,
        budget=process_pb2.OutputBudget(max_bytes=600_000),
    )
    assert len(rest.output.text) == 500_000
    assert not rest.output.HasField("truncation")


async def test_the_log_stays_within_its_limit(client: Client, house: House) -> None:
    waited = await client.run("head -c 5000000 /dev/zero | tr '\\0' x", log_bytes=1_000_000)
    workspace = house.data / "workspaces" / client.context.workspace_id
    kept = sum(path.stat().st_size for path in (workspace / "logs").iterdir())
    assert kept <= 1_000_000 + 64 * 1024
    assert waited.process.output_bytes == 5_000_000
    assert waited.output.truncation.expired_bytes > 3_000_000


async def test_invalid_bytes_and_half_characters_do_no_harm(client: Client) -> None:
    started = await client.start(
        "printf 'a\\377b\\303'; while ! [ -e go ]; do sleep 0.02; done; printf '\\251'"
    )
    process_id = started.process.process_id
    first = await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    assert (first.output.text, first.output.next_cursor) == ("a�b", 3)
    await client.run("touch go")
    last = await client.wait(process_id, since_cursor=3)
    assert last.output.text == "é"


async def test_a_cursor_past_the_output_is_refused(client: Client) -> None:
    waited = await client.run("echo hi")
    assert await reason_of(client.wait(waited.process.process_id, since_cursor=4)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )


async def test_processes_are_listed_running_first_then_newest(client: Client) -> None:
    ended = [(await client.run("true")).process.process_id for _ in range(3)]
    running = (await client.start("sleep 600")).process.process_id
    later = (await client.run("true")).process.process_id
    expected = [running, later, *reversed(ended)]

    first = await client.processes.ListProcesses(
        process_service_pb2.ListProcessesRequest(context=client.context, page_size=3)
    )
    second = await client.processes.ListProcesses(
        process_service_pb2.ListProcessesRequest(
            context=client.context, page_size=3, page_token=first.next_page_token
        )
    )
    assert [each.process_id for each in (*first.processes, *second.processes)] == expected
    assert (first.total, second.next_page_token) == (5, "")

    only = await client.processes.ListProcesses(
        process_service_pb2.ListProcessesRequest(
            context=client.context, states=[process_pb2.PROCESS_STATE_RUNNING]
        )
    )
    assert [each.process_id for each in only.processes] == [running]


async def test_a_chat_sees_its_own_and_nobodys(client: Client) -> None:
    own = (await client.run("true")).process.process_id
    workspace_id = client.context.workspace_id
    profile = client.context.profile
    client.context = workspace_pb2.WorkspaceContext(workspace_id=workspace_id, profile=profile)
    nobodys = (await client.run("true")).process.process_id
    client.context = workspace_pb2.WorkspaceContext(
        workspace_id=workspace_id, chat_id=client.new_id(), profile=profile
    )
    assert (await client.get(nobodys)).process_id == nobodys
    not_found = (grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND")
    assert await reason_of(client.get(own)) == not_found
    assert await reason_of(client.wait(own)) == not_found
    assert await reason_of(client.signal(own)) == not_found
    assert await reason_of(client.get(client.new_id())) == not_found
    client.context = workspace_pb2.WorkspaceContext(workspace_id=client.new_id())
    assert await reason_of(client.get(nobodys)) == not_found


async def test_a_chat_has_so_many_processes_and_no_more(client: Client) -> None:
    started = [await client.start("sleep 600") for _ in range(CHAT_PROCESSES_MAX)]
    assert await reason_of(client.start("true")) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "TOO_MANY_PROCESSES",
    )
    await client.signal(started[0].process.process_id)
    await client.wait(started[0].process.process_id)
    assert (await client.run("true")).process.exit.exit_code == 0


async def test_a_workspace_has_so_many_processes_and_no_more_however_they_come(
    client: Client,
) -> None:
    async def started(chat_id: str) -> str:
        client.context.chat_id = chat_id
        try:
            await client.start("sleep 600")
        except grpc.aio.AioRpcError as refused:
            return problem_of(refused).reason
        return "started"

    chats = [client.new_id() for _ in range(5)]
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        starts = [tasks.create_task(started(chat_id)) for chat_id in chats * 14]
    told = Counter(start.result() for start in starts)
    assert told == {
        "started": WORKSPACE_PROCESSES_MAX,
        "TOO_MANY_PROCESSES": 70 - WORKSPACE_PROCESSES_MAX,
    }


async def test_a_workspace_name_is_no_path(client: Client, house: House) -> None:
    client.context = workspace_pb2.WorkspaceContext(workspace_id="../../escape")
    assert await reason_of(client.start("true")) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )
    assert not (house.directory / "escape").exists()


async def test_a_caller_without_a_token_is_refused(client: Client, house: House) -> None:
    path = Path(house.address.place)
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call = Client(channel, client.new_id).start("true")
        status, _ = await reason_of(call)
    assert status is grpc.StatusCode.UNAUTHENTICATED
