import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.process_service_pb2 import StartProcessRequest
from toolrunner.files.rpc.inputs import guards_git
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import InvalidRequest, ReadOnly
from toolrunner.processes.domain import ProcessSpec
from toolrunner.processes.output.log import LOG_BYTES
from toolrunner.processes.rpc.inputs import budget_of, effect_of, scope_of, spec_of
from toolrunner.sandbox import Network, Profile

ID = "0197a5a0-0000-7000-8000-000000000001"
SCOPE = Scope(WorkspaceId(ID))
CONTEXT = workspace_pb2.WorkspaceContext(profile=sandbox_pb2.SANDBOX_PROFILE_FULL)
WRITE = sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE


def spec(**fields: object) -> process_pb2.ProcessSpec:
    return process_pb2.ProcessSpec(**fields)  # type: ignore[arg-type]


def test_a_command_goes_through_a_shell() -> None:
    assert spec_of(spec(command="echo hi", timeout_ms=1500), CONTEXT) == ProcessSpec(
        argv=("sh", "-c", "echo hi"),
        command="echo hi",
        workdir="",
        environment={},
        is_background=False,
        timeout_s=1.5,
        log_bytes_max=LOG_BYTES,
        profile=Profile.FULL,
    )


def test_words_go_without_a_shell_and_are_shown_quoted() -> None:
    words = process_pb2.ArgumentVector(arguments=["echo", "a b"])
    found = spec_of(spec(argv=words), CONTEXT)
    assert (found.argv, found.command) == (("echo", "a b"), "echo 'a b'")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (spec(), "spec.program"),
        (spec(command=""), "spec.command"),
        (spec(command="a\0b"), "spec.command"),
        (spec(command="x" * 131073), "spec.command"),
        (spec(argv=process_pb2.ArgumentVector()), "spec.argv.arguments"),
        (spec(argv=process_pb2.ArgumentVector(arguments=[""])), "spec.argv.arguments"),
        (spec(command="a", workdir="x\0"), "spec.workdir"),
        (spec(command="a", environment={"a=b": "c"}), "spec.environment['a=b']"),
        (spec(command="a", environment={"A": "x" * 70_000}), "spec.environment"),
        (spec(command="a", timeout_ms=-1), "spec.timeout_ms"),
        (spec(command="a", log_bytes=2**31), "spec.log_bytes"),
        (spec(command="a", terminal=process_pb2.TerminalSize(rows=1)), "spec.terminal"),
        (
            spec(command="a", terminal=process_pb2.TerminalSize(rows=9, columns=1001)),
            "spec.terminal",
        ),
        (spec(command="a", stdin=b"x" * 1_048_577), "spec.stdin"),
        (
            spec(command="a", limits=sandbox_pb2.ResourceLimits(pids=32_769)),
            "spec.limits.pids",
        ),
        (
            spec(command="a", limits=sandbox_pb2.ResourceLimits(memory_bytes=-1)),
            "spec.limits.memory_bytes",
        ),
        (
            spec(command="a", limits=sandbox_pb2.ResourceLimits(disk_bytes=1)),
            "spec.limits.disk_bytes",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(given: process_pb2.ProcessSpec, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        spec_of(given, CONTEXT)
    assert refused.value.field == field


@pytest.mark.parametrize("workspace_id", ["", "..", "a/b", "../" + ID, "workspace", ID + "/x"])
def test_a_workspace_is_named_by_a_uuid(workspace_id: str) -> None:
    with pytest.raises(InvalidRequest):
        scope_of(workspace_pb2.WorkspaceContext(workspace_id=workspace_id))


def test_every_spelling_of_a_uuid_is_one_workspace() -> None:
    spelling = "{" + ID.upper().replace("-", "") + "}"
    context = workspace_pb2.WorkspaceContext(workspace_id=spelling, profile=WRITE)
    assert scope_of(context) == SCOPE


def body_hash(epoch: int, command: str) -> bytes:
    scope = scope_of(workspace_pb2.WorkspaceContext(workspace_id=ID, chat_id=ID))
    key = execution_pb2.ExecutionKey(execution_id="e", chat_id=ID, owner_epoch=epoch)
    request = StartProcessRequest(request_id="e", key=key, spec=spec(command=command))
    return effect_of(request, scope, method="", encode=lambda record: b"").body_hash


def test_a_new_owner_asks_for_the_same() -> None:
    assert body_hash(1, "a") == body_hash(2, "a")
    assert body_hash(1, "a") != body_hash(1, "b")


@pytest.mark.parametrize(
    ("request_id", "chat_id", "field"),
    [("other", ID, "key.execution_id"), ("e", ID[:-1] + "2", "key.chat_id")],
)
def test_a_key_must_agree_with_its_request(request_id: str, chat_id: str, field: str) -> None:
    scope = scope_of(workspace_pb2.WorkspaceContext(workspace_id=ID, chat_id=ID))
    key = execution_pb2.ExecutionKey(execution_id="e", chat_id=chat_id, owner_epoch=1)
    request = StartProcessRequest(request_id=request_id, key=key)
    with pytest.raises(InvalidRequest) as refused:
        effect_of(request, scope, method="", encode=lambda record: b"")
    assert refused.value.field == field


def test_a_call_that_does_not_say_what_it_may_write_may_write_nothing() -> None:
    context = workspace_pb2.WorkspaceContext(workspace_id=ID)
    assert spec_of(spec(command="a"), context).profile is Profile.READ_ONLY
    assert not scope_of(context).may_write
    with pytest.raises(ReadOnly):
        guards_git(context, "a")


def test_a_call_says_how_it_is_to_be_confined() -> None:
    context = workspace_pb2.WorkspaceContext(
        profile=sandbox_pb2.SANDBOX_PROFILE_READ_ONLY, network=sandbox_pb2.NETWORK_ACCESS_PROXY
    )
    found = spec_of(spec(command="a"), context)
    assert (found.profile, found.network) == (Profile.READ_ONLY, Network.PROXY)


@pytest.mark.parametrize(
    "budget",
    [
        process_pb2.OutputBudget(max_bytes=-1),
        process_pb2.OutputBudget(max_bytes=2**20 + 1),
        process_pb2.OutputBudget(max_bytes=10, head_bytes=11),
        process_pb2.OutputBudget(line_bytes=-1),
    ],
)
def test_a_budget_outside_its_limits_is_refused(budget: process_pb2.OutputBudget) -> None:
    with pytest.raises(InvalidRequest):
        budget_of(budget)
