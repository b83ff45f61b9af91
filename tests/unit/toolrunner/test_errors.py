import grpc

from parley.api.workspace.v1.error_reason_pb2 import ErrorReason
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.primitives import errors
from toolrunner.problems import ERRORS
from toolrunner.spawner.client.spawner import LaunchFailed

GIVEN: tuple[Exception, ...] = (
    errors.InvalidRequest("field", "is wrong"),
    errors.ProcessNotFound("p"),
    errors.ProcessNotRunning("p"),
    errors.TooManyProcesses("chat", 16),
    errors.OutsideWorkspace("/"),
    errors.PathNotFound("a"),
    errors.WrongPathKind("a"),
    errors.SandboxTooWeak("none", "landlock"),
    errors.StaleOwner(4, 5),
    errors.JournalChanged("g"),
    errors.ExecutionIdReused("e"),
    errors.RequestIdReused("r"),
    errors.JournalFailed("full"),
    errors.ReadOnly("a"),
    errors.FileWorkerGone(),
    errors.OutcomeUnknown("r"),
    errors.ExecutionCancelled("r"),
    errors.SpawnerGone(),
    errors.NotAttachable("p", "terminal"),
    errors.InputFull(5),
    errors.OutputGone("p", 5),
    errors.InvalidPattern("(", "is open"),
    errors.BadTicket(),
    errors.StalePlacement("w", 1, 2),
    errors.WorkspaceNotFound("w"),
    errors.WorkspaceNotReady("w", "stopped", "start_workspace"),
    errors.NodeFull("workspaces"),
    errors.QuotaExceeded("disk_bytes", 2, 1),
    errors.NodeDraining(),
    errors.ForkNotPossible("overlay", "it cannot"),
    errors.NotAFork("w"),
    errors.MergeInterrupted("a"),
    errors.MergeUnfinished("a"),
    errors.MergeSetAside("a"),
    *(FileRefused(reason, "it is refused") for reason in Reason),
)


def test_every_refusal_has_a_reason_of_the_contract() -> None:
    reasons = {ERRORS[type(error)](error).reason for error in GIVEN}
    assert reasons <= {name.removeprefix("ERROR_REASON_") for name in ErrorReason.keys()}  # noqa: SIM118 (it is no dict)


def test_every_error_of_the_table_is_tried() -> None:
    assert {type(error) for error in GIVEN} == set(ERRORS)


def test_every_error_is_in_the_table() -> None:
    # A failed launch is an answer, so it never leaves the service as an error.
    assert set(errors.ToolrunnerError.__subclasses__()) - set(ERRORS) == {LaunchFailed}


def test_a_stale_owner_learns_both_epochs() -> None:
    problem = ERRORS[errors.StaleOwner](errors.StaleOwner(4, 5))
    assert problem.metadata == {"owner_epoch": "4", "highest_epoch": "5"}


def test_a_dead_program_may_be_asked_again_and_an_unknown_outcome_may_not() -> None:
    gone = ERRORS[errors.FileWorkerGone](errors.FileWorkerGone())
    unknown = ERRORS[errors.OutcomeUnknown](errors.OutcomeUnknown("r"))
    spawner = ERRORS[errors.SpawnerGone](errors.SpawnerGone())
    assert [each.reason for each in (gone, unknown, spawner)] == [
        "FILE_WORKER_GONE",
        "OUTCOME_UNKNOWN",
        "SPAWNER_GONE",
    ]
    assert (gone.status, gone.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 1.0)
    assert (unknown.status, unknown.retry_after_s) == (grpc.StatusCode.ABORTED, None)


def test_a_journal_that_cannot_be_written_leaves_the_outcome_open() -> None:
    failed = ERRORS[errors.JournalFailed](errors.JournalFailed("disk full"))
    full = ERRORS[errors.NodeFull](errors.NodeFull("workspaces"))
    assert [(each.status, each.reason) for each in (failed, full)] == [
        (grpc.StatusCode.UNAVAILABLE, "JOURNAL_UNAVAILABLE"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "NODE_FULL"),
    ]
