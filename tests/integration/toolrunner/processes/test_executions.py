"""Executions: begun at most once, whoever asks again, and after whatever happened."""

import asyncio
import signal

import grpc
import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2, process_service_pb2
from parley.api.workspace.v1 import execution_service_pb2 as api
from parley.rpc import problem_of
from support.toolrunner.node import Client, House, connected, node, running
from toolrunner.journal.journal import CANCELLED_ERROR

START = "/parley.api.workspace.v1.ProcessService/StartProcess"


async def reason_of(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    problem = problem_of(refused.value)
    return problem.status, problem.reason


async def execution_of(client: Client, key: execution_pb2.ExecutionKey) -> execution_pb2.Execution:
    return (await client.executions.GetExecution(api.GetExecutionRequest(key=key))).execution


async def cancel(client: Client, key: execution_pb2.ExecutionKey) -> execution_pb2.Execution:
    request = api.CancelExecutionRequest(request_id=client.new_id(), key=key)
    return (await client.executions.CancelExecution(request)).execution


async def test_the_same_execution_attaches_and_runs_once(client: Client) -> None:
    key = await client.key("e1")
    command = "echo ran >> runs; cat runs"
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        starts = [tasks.create_task(client.start(command, key=key)) for _ in range(20)]
    answers = [start.result() for start in starts]
    assert len({answer.process.process_id for answer in answers}) == 1
    assert sorted(answer.attached for answer in answers) == [False] + [True] * 19
    waited = await client.wait(answers[0].process.process_id)
    assert waited.output.text == "ran\n"
    again = await client.start(command, key=await client.key("e1", epoch=2))
    assert (again.attached, again.process) == (True, waited.process)


async def test_another_body_under_the_same_id_is_refused(client: Client) -> None:
    key = await client.key("e1")
    await client.start("true", key=key)
    assert await reason_of(client.start("false", key=key)) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "EXECUTION_ID_REUSED",
    )


async def test_a_person_s_request_is_started_once_too(client: Client) -> None:
    def request(command: str) -> process_service_pb2.StartProcessRequest:
        return process_service_pb2.StartProcessRequest(
            context=client.context,
            request_id="by hand",
            spec=process_pb2.ProcessSpec(command=command),
        )

    first = await client.processes.StartProcess(request("true"))
    second = await client.processes.StartProcess(request("true"))
    assert (second.attached, second.process.process_id) == (True, first.process.process_id)
    assert await reason_of(client.processes.StartProcess(request("false"))) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "REQUEST_ID_REUSED",
    )


async def test_an_older_owner_starts_nothing_after_a_newer_one_asked(client: Client) -> None:
    seen = await execution_of(client, await client.key("e1", epoch=5))
    assert seen == execution_pb2.Execution(
        execution_id="e1", state=execution_pb2.EXECUTION_STATE_NEVER_SEEN
    )
    stale = (grpc.StatusCode.FAILED_PRECONDITION, "STALE_OWNER")
    old = await client.key("e1", epoch=4)
    assert await reason_of(client.start("touch ran", key=old)) == stale
    assert await reason_of(execution_of(client, old)) == stale
    assert await reason_of(cancel(client, old)) == stale
    assert (await client.run("ls")).output.text == ""


async def test_another_journal_is_refused(client: Client) -> None:
    key = await client.key("e1")
    key.journal_generation = "another"
    changed = (grpc.StatusCode.FAILED_PRECONDITION, "JOURNAL_CHANGED")
    assert await reason_of(client.start("true", key=key)) == changed
    assert await reason_of(execution_of(client, key)) == changed
    request = api.AckExecutionsRequest(
        request_id="a", execution_ids=["e1"], journal_generation="another"
    )
    assert await reason_of(client.executions.AckExecutions(request)) == changed


async def test_a_finished_execution_tells_its_response_until_it_is_acknowledged(
    client: Client,
) -> None:
    key = await client.key("e1")
    started = await client.start("true", key=key)
    execution = await execution_of(client, key)
    assert execution.state == execution_pb2.EXECUTION_STATE_FINISHED
    assert (execution.method, execution.process_id) == (START, started.process.process_id)
    response = process_service_pb2.StartProcessResponse.FromString(execution.response)
    assert response.process.process_id == started.process.process_id

    request = api.AckExecutionsRequest(
        request_id="a",
        execution_ids=["e1", "never"],
        journal_generation=await client.generation(),
    )
    skipped = await client.executions.AckExecutions(request)
    assert list(skipped.skipped_execution_ids) == ["never"]
    assert (await execution_of(client, key)).response == b""
    assert (await client.start("true", key=key)).attached


async def test_cancelling_ends_everything_an_execution_started(
    client: Client, marks: list[str]
) -> None:
    marks += ["sleep\x007001", "sleep\x007002", "sleep\x007003"]
    key = await client.key("e1")
    command = (
        "setsid sh -c 'trap \"\" TERM; echo up; sleep 7001; sleep 7002' & "
        "(setsid sleep 7003 >/dev/null 2>&1 &); echo up; wait"
    )
    started = await client.start(command, key=key)
    process_id = started.process.process_id
    cursor = 0
    async with asyncio.timeout(10):
        while cursor < 6 or not running("sleep\x007003"):
            waited = await client.wait(
                process_id, process_pb2.WAIT_UNTIL_OUTPUT, since_cursor=cursor, max_wait_ms=100
            )
            cursor = waited.output.next_cursor
    async with asyncio.timeout(6):
        execution = await cancel(client, key)
    assert execution.state == execution_pb2.EXECUTION_STATE_FINISHED
    assert (await client.get(process_id)).state == process_pb2.PROCESS_STATE_EXITED
    assert [number for number in (7001, 7002, 7003) if running(f"sleep\x00{number}")] == []


async def test_what_is_cancelled_unseen_never_starts(client: Client) -> None:
    key = await client.key("e1")
    assert (await cancel(client, key)).state == execution_pb2.EXECUTION_STATE_CANCELLED
    started = await client.start("touch ran", key=key)
    assert started.attached
    assert started.process.state == process_pb2.PROCESS_STATE_START_FAILED
    assert started.process.start_error == CANCELLED_ERROR
    waited = await client.wait(started.process.process_id)
    assert waited.process == started.process
    assert (await client.run("ls")).output.text == ""


async def test_a_signal_with_a_key_is_sent_once(client: Client) -> None:
    started = await client.start("trap 'echo got' HUP; echo up; while :; do sleep 0.05; done")
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    request = process_service_pb2.SignalProcessRequest(
        context=client.context,
        request_id="s1",
        key=await client.key("s1"),
        process_id=process_id,
        signal=process_pb2.PROCESS_SIGNAL_HANGUP,
        leader_only=True,
    )
    for _ in range(3):
        await client.processes.SignalProcess(request)
        await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT, since_cursor=3)
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    assert (await client.wait(process_id)).output.text == "up\ngot\n"
    assert (await client.processes.SignalProcess(request)).process.exit.signal == "SIGKILL"


async def test_records_and_output_outlive_the_service(house: House) -> None:
    async with node(house), connected(house) as client:
        key = await client.key("e1")
        waited = await client.run("echo kept; exit 4")
        stopped = await client.start("echo begun; sleep 600", key=key)
        await client.wait(stopped.process.process_id, process_pb2.WAIT_UNTIL_OUTPUT)
        context, chat_id = client.context, client.chat_id
    async with node(house), connected(house) as client:
        client.context, client.chat_id = context, chat_id
        found = await client.wait(waited.process.process_id)
        assert (found.process, found.output) == (waited.process, waited.output)
        ended = await client.wait(stopped.process.process_id)
        assert ended.process.state == process_pb2.PROCESS_STATE_EXITED
        assert ended.process.exit.shell_exit_code == 128 + signal.SIGTERM
        assert ended.output.text == "begun\n"
        again = await client.start("echo begun; sleep 600", key=key)
        assert (again.attached, again.process) == (True, ended.process)


async def test_a5_a_call_that_never_left_is_never_seen_and_then_runs_once(client: Client) -> None:
    new_owner = await client.key("e1", epoch=2)
    seen = await execution_of(client, new_owner)
    assert seen.state == execution_pb2.EXECUTION_STATE_NEVER_SEEN
    started = await client.start("echo ran >> runs", key=new_owner)
    await client.wait(started.process.process_id)
    late = await client.key("e1", epoch=1)
    assert (await reason_of(client.start("echo ran >> runs", key=late)))[1] == "STALE_OWNER"
    assert (await client.run("cat runs")).output.text == "ran\n"


async def test_a6_the_next_owner_attaches_and_reads_everything(house: House) -> None:
    command = "echo one; while ! [ -e go ]; do sleep 0.02; done; echo two; echo ran >> runs"
    async with node(house):
        async with connected(house) as before:
            started = await before.start(command, key=await before.key("e1"))
            process_id = started.process.process_id
            await before.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
        async with asyncio.timeout(20), connected(house) as client:
            client.stands_for(before)
            again = await client.start(command, key=await client.key("e1", epoch=2))
            assert (again.attached, again.process.process_id) == (True, process_id)
            await client.run("touch go")
            waited = await client.wait(process_id)
            assert waited.output.text == "one\ntwo\n"
            assert (await client.run("cat runs")).output.text == "ran\n"


async def test_a7_a_result_that_was_not_stored_is_fetched_again(house: House) -> None:
    async with node(house):
        async with connected(house) as before:
            key = await before.key("e1")
            started = await before.start("echo ran >> runs; exit 3", key=key)
            await before.wait(started.process.process_id)
        async with connected(house) as client:
            client.stands_for(before)
            found = await execution_of(client, await client.key("e1", epoch=2))
            assert found.state == execution_pb2.EXECUTION_STATE_FINISHED
            waited = await client.wait(found.process_id)
            assert waited.process.exit.exit_code == 3
            assert (await client.run("cat runs")).output.text == "ran\n"
