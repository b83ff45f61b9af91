from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.actions.domain.action import ActionEnded, ActionNotFound, PlanNotFound, StoredAction
from chatd.approvals.domain.errors import TooManyRules
from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import (
    ActionNotOpen,
    AgentAtWork,
    BadToolResult,
    BreakGlassNeeded,
    ChatArchived,
    ChatReadOnly,
    FenceLost,
    HookDenied,
    HookFailed,
    InvalidState,
    MessageNotFound,
    NotEditable,
    NothingToCompact,
    QueuedMessageNotFound,
    QueueFull,
    ResultProblem,
    RevertNotFound,
    RevertSuperseded,
    TitleUnavailable,
    TransitionNotAllowed,
)
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.errors import FileNotFound, FileTooLarge, MediaTypeRefused, TooManyFiles
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.tools import PendingKind
from chatd.errors import ERRORS
from chatd.hooks.domain.errors import TooManyHooks
from chatd.models.domain.errors import KeyNeeded, KeyOrderMismatch, ModelNotFound
from chatd.primitives.domain.errors import (
    ChatError,
    ChatNotFound,
    CheckUnavailable,
    InvalidRequest,
    NameTaken,
    NotPermitted,
    RequestIdReused,
    ResourceNotFound,
    UnknownIds,
    VersionConflict,
    WorkspaceNotFound,
)
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    OwnerId,
    QueuedMessageId,
    RevertId,
)
from chatd.push.domain.subscription import (
    PushNotAccepted,
    PushTestedTooOften,
    TooManySubscriptions,
)
from chatd.schedules.domain.schedule import ScheduleEnded, TooManySchedules
from chatd.spend.domain.limits import UsageLimitReached
from chatd.turns.domain.ports import RestoreFailed
from chatd.users.domain.groups import GroupsUnavailable
from chatd.users.domain.status import UserSuspended
from chatd.workspaces.domain.errors import (
    NodeLost,
    NodeNotFound,
    NoNode,
    NotAFork,
    QuotaExhausted,
    StaleNode,
    TemplateNotFound,
    TooManyNewWorkspaces,
    WorkspaceNotReady,
)
from chatd.workspaces.domain.quota import Dimension, QuotaUse
from chatd.workspaces.domain.secrets import (
    Outcome,
    SecretNotFound,
    SecretNotGranted,
    SecretValueNeeded,
)
from chatd.workspaces.domain.workspace import State
from parley.api.chat.v1.error_reason_pb2 import ErrorReason
from parley.api.workspace.v1.error_reason_pb2 import ErrorReason as WorkspaceReason
from parley.postgres import DatabaseBusy, DatabaseUnavailable

CHAT = ChatId("c")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = StoredAction(
    ExecutionId("a"),
    ChatId("c"),
    MessageId(2),
    "call",
    "propose_plan",
    "",
    PendingKind.PLAN,
    "{}",
    "",
    ChatMode.PLAN,
    NOW,
    None,
    NOW,
    ActionOutcome.ANSWERED,
    "ann",
    "{}",
)
EXAMPLES: list[tuple[Exception, str, str, dict[str, str]]] = [
    (ChatNotFound(CHAT), "NOT_FOUND", "CHAT_NOT_FOUND", {"chat_id": "c"}),
    (ChatReadOnly(CHAT), "PERMISSION_DENIED", "CHAT_READ_ONLY", {"chat_id": "c"}),
    (BreakGlassNeeded(OwnerId("u")), "PERMISSION_DENIED", "BREAK_GLASS_NEEDED", {"user_id": "u"}),
    (
        UnknownIds("workspace", {"workspace_id": "names none"}),
        "INVALID_ARGUMENT",
        "UNKNOWN_ID",
        {"resource": "workspace"},
    ),
    (
        CheckUnavailable("MCP server"),
        "UNAVAILABLE",
        "CHECK_UNAVAILABLE",
        {"resource": "MCP server"},
    ),
    (MessageNotFound(MessageId(7)), "NOT_FOUND", "MESSAGE_NOT_FOUND", {"message_id": "7"}),
    (
        QueuedMessageNotFound(QueuedMessageId("q")),
        "NOT_FOUND",
        "QUEUED_MESSAGE_NOT_FOUND",
        {"queued_message_id": "q"},
    ),
    (FileNotFound("f"), "NOT_FOUND", "FILE_NOT_FOUND", {"file_id": "f"}),
    (WorkspaceNotFound("w"), "NOT_FOUND", "WORKSPACE_NOT_FOUND", {"workspace_id": "w"}),
    (SecretNotFound("s"), "NOT_FOUND", "SECRET_NOT_FOUND", {"secret": "s"}),
    (
        SecretNotGranted("s", Outcome.WRONG_HOST),
        "PERMISSION_DENIED",
        "SECRET_NOT_GRANTED",
        {"secret": "s", "cause": "wrong_host"},
    ),
    (TooManyFiles(50), "RESOURCE_EXHAUSTED", "TOO_MANY_FILES", {"files_max": "50"}),
    (TooManyHooks(20), "RESOURCE_EXHAUSTED", "TOO_MANY_HOOKS", {"hooks_max": "20"}),
    (HookDenied("no"), "PERMISSION_DENIED", "HOOK_DENIED", {"reason": "no"}),
    (HookFailed("h", "late"), "ABORTED", "HOOK_FAILED", {"hook_id": "h"}),
    (TooManyRules(100), "RESOURCE_EXHAUSTED", "TOO_MANY_RULES", {"rules_max": "100"}),
    (TooManySchedules(9), "RESOURCE_EXHAUSTED", "TOO_MANY_SCHEDULES", {"schedules_max": "9"}),
    (ScheduleEnded("s"), "FAILED_PRECONDITION", "SCHEDULE_ENDED", {"schedule_id": "s"}),
    (FileTooLarge(10), "OUT_OF_RANGE", "FILE_TOO_LARGE", {"limit_bytes": "10"}),
    (
        MediaTypeRefused("text/html", ("text/plain",)),
        "INVALID_ARGUMENT",
        "MEDIA_TYPE_REFUSED",
        {"media_type": "text/html"},
    ),
    (
        TransitionNotAllowed(Status.RUNNING, "SetArchived"),
        "FAILED_PRECONDITION",
        "TRANSITION_NOT_ALLOWED",
        {"status": "running", "command": "SetArchived"},
    ),
    (
        AgentAtWork(CHAT, Status.RUNNING),
        "FAILED_PRECONDITION",
        "TRANSITION_NOT_ALLOWED",
        {"status": "running", "chat_id": "c"},
    ),
    (ChatArchived(CHAT), "FAILED_PRECONDITION", "CHAT_ARCHIVED", {"chat_id": "c"}),
    (InvalidState(CHAT, "odd"), "FAILED_PRECONDITION", "INVALID_STATE", {"chat_id": "c"}),
    (FenceLost(CHAT), "ABORTED", "VERSION_CONFLICT", {"chat_id": "c"}),
    (QueueFull(20), "RESOURCE_EXHAUSTED", "QUEUE_FULL", {"queue_length_max": "20"}),
    (
        NotEditable(MessageId(7), Role.ASSISTANT),
        "FAILED_PRECONDITION",
        "NOT_EDITABLE",
        {"role": "assistant", "message_id": "7"},
    ),
    (NothingToCompact(CHAT), "FAILED_PRECONDITION", "NOTHING_TO_COMPACT", {"chat_id": "c"}),
    (
        BadToolResult("t", ResultProblem.DUPLICATE),
        "INVALID_ARGUMENT",
        "BAD_TOOL_RESULT",
        {"tool_call_id": "t", "problem": "duplicate"},
    ),
    (ActionNotOpen("a"), "NOT_FOUND", "ACTION_NOT_FOUND", {"action_id": "a"}),
    (
        ActionNotFound("c", "a"),
        "NOT_FOUND",
        "ACTION_NOT_FOUND",
        {"chat_id": "c", "action_id": "a"},
    ),
    (RestoreFailed("The node is away."), "UNAVAILABLE", "FILES_UNAVAILABLE", {}),
    (RevertNotFound(RevertId("r")), "NOT_FOUND", "REVERT_NOT_FOUND", {"revert_id": "r"}),
    (
        RevertSuperseded(RevertId("r")),
        "FAILED_PRECONDITION",
        "REVERT_SUPERSEDED",
        {"revert_id": "r"},
    ),
    (
        TitleUnavailable(ChatId("c")),
        "FAILED_PRECONDITION",
        "TITLE_UNAVAILABLE",
        {"chat_id": "c"},
    ),
    (PlanNotFound("c"), "NOT_FOUND", "PLAN_NOT_FOUND", {"chat_id": "c"}),
    (
        ActionEnded(ENDED),
        "FAILED_PRECONDITION",
        "ACTION_ENDED",
        {
            "action_id": "a",
            "state": "answered",
            "ended_by": "ann",
            "ended_at": "2026-01-01T00:00:00+00:00",
        },
    ),
    (
        UsageLimitReached(
            spent_micros=7,
            limit_micros=5,
            resets_at=datetime(2026, 2, 1, tzinfo=UTC),
            retry_after_s=60.0,
        ),
        "RESOURCE_EXHAUSTED",
        "USAGE_LIMIT",
        {"spent_micros": "7", "limit_micros": "5", "resets_at": "2026-02-01T00:00:00Z"},
    ),
    (GroupsUnavailable(), "UNAVAILABLE", "GROUPS_UNAVAILABLE", {}),
    (NotPermitted("spend"), "PERMISSION_DENIED", "FORBIDDEN", {}),
    (UserSuspended("u"), "PERMISSION_DENIED", "FORBIDDEN", {}),
    (RequestIdReused("r"), "ALREADY_EXISTS", "REQUEST_ID_REUSED", {"request_id": "r"}),
    (ModelNotFound("m"), "NOT_FOUND", "MODEL_NOT_FOUND", {"model_id": "m"}),
    (
        ResourceNotFound("key", "k"),
        "NOT_FOUND",
        "RESOURCE_NOT_FOUND",
        {"resource": "key", "id": "k"},
    ),
    (
        NameTaken("provider", "ours"),
        "ALREADY_EXISTS",
        "NAME_TAKEN",
        {"resource": "provider", "name": "ours"},
    ),
    (
        KeyNeeded("https://a:443", "https://b:443"),
        "FAILED_PRECONDITION",
        "KEY_NEEDED",
        {"old_origin": "https://a:443", "new_origin": "https://b:443"},
    ),
    (
        KeyOrderMismatch("p", {"key_ids": "leaves out k"}),
        "FAILED_PRECONDITION",
        "KEY_ORDER_MISMATCH",
        {"provider_id": "p"},
    ),
    (
        TooManySubscriptions(20),
        "RESOURCE_EXHAUSTED",
        "TOO_MANY_PUSH_SUBSCRIPTIONS",
        {"subscriptions_max": "20"},
    ),
    (
        PushNotAccepted("its push service answered 500"),
        "ABORTED",
        "PUSH_NOT_ACCEPTED",
        {"problem": "its push service answered 500"},
    ),
    (
        PushTestedTooOften(5.0),
        "RESOURCE_EXHAUSTED",
        "PUSH_TESTED_TOO_OFTEN",
        {"every_s": "5"},
    ),
    (
        SecretValueNeeded("deploy"),
        "FAILED_PRECONDITION",
        "SECRET_VALUE_NEEDED",
        {"name": "deploy"},
    ),
    (VersionConflict("3"), "ABORTED", "VERSION_CONFLICT", {"etag": "3"}),
    (
        InvalidRequest("title", "is empty"),
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
        {"field": "title"},
    ),
    (
        WorkspaceNotReady("w", State.STOPPED),
        "FAILED_PRECONDITION",
        "WORKSPACE_NOT_READY",
        {"state": "stopped", "next_step": "start_workspace"},
    ),
    (
        QuotaExhausted(QuotaUse(Dimension.LIVE_WORKSPACES, 5, 5)),
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXHAUSTED",
        {
            "dimension": "live_workspaces",
            "used": "5",
            "limit": "5",
            "remedy": "stop one that is not needed now; its files are kept",
        },
    ),
    (
        TooManyNewWorkspaces(20, 12.5),
        "RESOURCE_EXHAUSTED",
        "TOO_MANY_NEW_WORKSPACES",
        {"limit": "20"},
    ),
    (NoNode("all are full"), "UNAVAILABLE", "NO_NODE", {}),
    (NodeLost("n"), "UNAVAILABLE", "NODE_LOST", {"node_id": "n"}),
    (NodeNotFound("n"), "NOT_FOUND", "NODE_NOT_FOUND", {"node_id": "n"}),
    (StaleNode("n"), "FAILED_PRECONDITION", "STALE_NODE", {"node_id": "n"}),
    (TemplateNotFound("t"), "NOT_FOUND", "TEMPLATE_NOT_FOUND", {"template_id": "t"}),
    (NotAFork("w"), "FAILED_PRECONDITION", "NOT_A_FORK", {"workspace_id": "w"}),
    (DatabaseUnavailable("gone"), "UNAVAILABLE", "STORE_UNAVAILABLE", {}),
    (DatabaseBusy("lock timeout"), "ABORTED", "STORE_BUSY", {}),
]


def test_every_error_of_a_chat_has_its_problem_and_nothing_else_has() -> None:
    assert set(ERRORS) == {*ChatError.__subclasses__(), DatabaseUnavailable, DatabaseBusy}
    assert {type(example) for example, *_ in EXAMPLES} == set(ERRORS)


def test_every_problem_has_a_status_a_reason_of_the_proto_and_its_facts() -> None:
    problems = [ERRORS[type(error)](error) for error, *_ in EXAMPLES]
    assert [
        (problem.status.name, problem.reason, dict(problem.metadata)) for problem in problems
    ] == [tuple(expected) for _, *expected in EXAMPLES]
    reasons = {*ErrorReason.keys(), *WorkspaceReason.keys()}
    assert {f"ERROR_REASON_{problem.reason}" for problem in problems} <= reasons


@pytest.mark.parametrize("status", Status)
def test_a_status_that_does_not_allow_something_is_told_with_what_does(status: Status) -> None:
    problem = ERRORS[TransitionNotAllowed](TransitionNotAllowed(status, "archive"))

    advice = "interrupt it" in problem.message
    assert advice is (status in (Status.RUNNING, Status.REQUIRES_ACTION))
    assert problem.message.startswith(f"The chat is {status.replace('_', ' ')}, ")


@pytest.mark.parametrize(
    ("outcome", "how"),
    [
        (ActionOutcome.ANSWERED, "was answered"),
        (ActionOutcome.CANCELLED, "was cancelled"),
        (ActionOutcome.EXPIRED, "expired"),
    ],
)
def test_a_late_answer_is_told_how_the_action_ended(outcome: ActionOutcome, how: str) -> None:
    problem = ERRORS[ActionEnded](ActionEnded(replace(ENDED, outcome=outcome)))

    at = "2026-01-01T00:00:00+00:00"
    assert problem.message == f"It {how} at {at}; this answer changed nothing."


def test_a_chat_that_is_empty_is_not_told_that_a_message_is_missing() -> None:
    problem = ERRORS[MessageNotFound](MessageNotFound(MessageId(0)))
    assert problem.message == "The chat has no messages."
