"""The error table of chatd: maps errors of the domain and the store to gRPC problems."""

from collections.abc import Mapping
from itertools import islice

from chatd.actions.domain.action import ActionEnded, ActionNotFound, PlanNotFound
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
from chatd.hooks.rpc.problems import HOOK_ERRORS
from chatd.models.domain.errors import KeyNeeded, ModelNotFound
from chatd.primitives.domain.errors import (
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
from chatd.schedules.rpc.errors import SCHEDULE_ERRORS
from chatd.spend.domain.limits import UsageLimitReached, dollars
from chatd.turns.domain.ports import RestoreFailed
from chatd.users.domain.groups import GroupsUnavailable
from chatd.users.domain.status import UserSuspended
from chatd.workspaces.rpc.errors import WORKSPACE_ERRORS
from parley.postgres import DatabaseBusy, DatabaseUnavailable
from parley.rpc import ErrorTable, Problem, Violation

DOMAIN = "chat.parley"
RETRY_STORE_AFTER_S = 1.0
RETRY_GROUPS_AFTER_S = 2.0
VIOLATIONS_MAX = 100
#: Problem text for each kind of invalid tool result.
RESULT_PROBLEMS: Mapping[ResultProblem, str] = {
    ResultProblem.DUPLICATE: "names a call that has more than one result; send one",
    ResultProblem.INVALID_JSON: "names a call whose result is not JSON",
    ResultProblem.MISSING: "has no result of the call {call_id}, which waits for one",
    ResultProblem.UNEXPECTED: "names no call that waits for a result of the client",
}
#: What the caller can do next, by the status that rejected the command.
NEXT_STEPS: Mapping[Status, str] = {
    Status.WAITING: "Nothing runs in it; send a message first.",
    Status.RUNNING: "Wait until its turn ends, or interrupt it, then try again.",
    Status.INTERRUPTING: "Wait until its turn has ended, then try again.",
    Status.REQUIRES_ACTION: "Send the results of its tools, or interrupt it, then try again.",
    Status.ERROR: "Its last turn failed; send a message to go on.",
}


def _chat_not_found(error: ChatNotFound) -> Problem:
    return Problem.of(
        "CHAT_NOT_FOUND",
        "There is no such chat, or you may not see it.",
        {"chat_id": error.chat_id},
    )


def _chat_read_only(error: ChatReadOnly) -> Problem:
    return Problem.of(
        "CHAT_READ_ONLY",
        "You can only read this chat, by a share or by a break-glass access; its owner alone can "
        "change it. Start a chat of your own to write.",
        {"chat_id": error.chat_id},
    )


def _unknown_ids(error: UnknownIds) -> Problem:
    return Problem.of(
        "UNKNOWN_ID",
        str(error),
        {"resource": error.resource},
        violations=_violations(error.problems),
    )


def _violations(problems: Mapping[str, str]) -> tuple[Violation, ...]:
    return tuple(Violation(field, why) for field, why in problems.items())


def _check_unavailable(error: CheckUnavailable) -> Problem:
    return Problem.of(
        "CHECK_UNAVAILABLE",
        f"Whether there is such a {error.resource} cannot be asked now, and nothing was changed; "
        "try again.",
        {"resource": error.resource},
        retry_after_s=RETRY_GROUPS_AFTER_S,
    )


def _message_not_found(error: MessageNotFound) -> Problem:
    return Problem.of(
        "MESSAGE_NOT_FOUND",
        "There is no such message in the chat; read its messages anew.",
        {"message_id": str(error.message_id)},
    )


def _queued_not_found(error: QueuedMessageNotFound) -> Problem:
    return Problem.of(
        "QUEUED_MESSAGE_NOT_FOUND",
        "No such message waits; it may have been sent or dropped meanwhile.",
        {"queued_message_id": error.queued_message_id},
    )


def _file_not_found(error: FileNotFound) -> Problem:
    return Problem.of(
        "FILE_NOT_FOUND",
        "There is no such file, or you may not see it; upload it first.",
        {"file_id": error.file_id},
        violations=_violations(error.problems),
    )


def _too_many_files(error: TooManyFiles) -> Problem:
    return Problem.of(
        "TOO_MANY_FILES",
        f"A chat holds at most {error.files_max} files; start another chat.",
        {"files_max": str(error.files_max)},
    )


def _file_too_large(error: FileTooLarge) -> Problem:
    return Problem.of(
        "FILE_TOO_LARGE",
        f"A file has at most {error.limit_bytes} bytes; send a smaller one.",
        {"limit_bytes": str(error.limit_bytes)},
    )


def _media_type_refused(error: MediaTypeRefused) -> Problem:
    accepted = ", ".join(error.accepted)
    message = (
        f"The bytes of the file are {error.media_type}, not {error.declared}; send it as that."
        if error.declared
        else f"Files of type {error.media_type} are not taken; send one of {accepted}."
    )
    return Problem.of(
        "MEDIA_TYPE_REFUSED",
        message,
        {"media_type": error.media_type},
    )


def _not_allowed(error: TransitionNotAllowed) -> Problem:
    return Problem.of(
        "TRANSITION_NOT_ALLOWED",
        f"The chat is {error.status.replace('_', ' ')}, in which this is not possible. "
        f"{NEXT_STEPS[error.status]}",
        {"status": error.status, "command": error.command},
    )


def _agent_at_work(error: AgentAtWork) -> Problem:
    return Problem.of(
        "TRANSITION_NOT_ALLOWED",
        "An agent of the chat works in its workspace. "
        "Wait until its turn ends, or interrupt it, then try again.",
        {"status": error.status, "chat_id": error.chat_id},
    )


def _archived(error: ChatArchived) -> Problem:
    return Problem.of(
        "CHAT_ARCHIVED",
        "The chat is archived; unarchive it first.",
        {"chat_id": error.chat_id},
    )


def _invalid_state(error: InvalidState) -> Problem:
    return Problem.of(
        "INVALID_STATE",
        f"The chat's stored state is impossible: {error.problem}. Reconcile the chat.",
        {"chat_id": error.chat_id},
    )


def _moved_on(error: FenceLost) -> Problem:
    return Problem.of(
        "VERSION_CONFLICT",
        "The chat moved on meanwhile; read it and try again.",
        {"chat_id": error.chat_id},
    )


def _queue_full(error: QueueFull) -> Problem:
    return Problem.of(
        "QUEUE_FULL",
        f"{error.queue_length_max} messages wait already; wait for a turn to end or drop one.",
        {"queue_length_max": str(error.queue_length_max)},
    )


def _not_editable(error: NotEditable) -> Problem:
    return Problem.of(
        "NOT_EDITABLE",
        "Only messages of a user can be edited or reverted to.",
        {"role": error.role, "message_id": str(error.message_id)},
    )


def _revert_not_found(error: RevertNotFound) -> Problem:
    return Problem.of(
        "REVERT_NOT_FOUND",
        "There is no such revert of this chat that can be undone.",
        {"revert_id": error.revert_id},
    )


def _title_unavailable(error: TitleUnavailable) -> Problem:
    return Problem.of(
        "TITLE_UNAVAILABLE",
        "No model could write a title; try again, or write one.",
        {"chat_id": error.chat_id},
    )


def _revert_superseded(error: RevertSuperseded) -> Problem:
    return Problem.of(
        "REVERT_SUPERSEDED",
        "The chat went on after the revert, which cannot be undone any more.",
        {"revert_id": error.revert_id},
    )


def _files_unavailable(error: RestoreFailed) -> Problem:
    return Problem.of("FILES_UNAVAILABLE", str(error), {})


def _nothing_to_compact(error: NothingToCompact) -> Problem:
    return Problem.of(
        "NOTHING_TO_COMPACT",
        "Nothing was said since the last summary.",
        {"chat_id": error.chat_id},
    )


def _bad_tool_result(error: BadToolResult) -> Problem:
    return Problem.of(
        "BAD_TOOL_RESULT",
        f"The result of the call {error.tool_call_id} is {error.problem}; send exactly one JSON "
        "result for each call that waits.",
        {"tool_call_id": error.tool_call_id, "problem": error.problem},
        violations=tuple(
            Violation(
                error.fields.get(call_id, "results"),
                RESULT_PROBLEMS[problem].format(call_id=call_id),
            )
            for call_id, problem in islice(error.problems.items(), VIOLATIONS_MAX)
        ),
    )


def _workspace_not_found(error: WorkspaceNotFound) -> Problem:
    return Problem.of(
        "WORKSPACE_NOT_FOUND",
        "There is no such workspace, or you may not see it.",
        {"workspace_id": error.workspace_id},
    )


def _user_suspended(error: UserSuspended) -> Problem:
    return Problem.of("FORBIDDEN", str(error), {})


def _request_id_reused(error: RequestIdReused) -> Problem:
    return Problem.of(
        "REQUEST_ID_REUSED",
        "The request id was used before with another body; choose a new one.",
        {"request_id": error.request_id},
    )


def _usage_limit(error: UsageLimitReached) -> Problem:
    return Problem.of(
        "USAGE_LIMIT",
        f"The spending limit of {dollars(error.limit_micros)} is reached; go on after "
        f"{error.resets_at:%Y-%m-%d %H:%M} UTC, or ask an administrator to raise it.",
        {
            "spent_micros": str(error.spent_micros),
            "limit_micros": str(error.limit_micros),
            "resets_at": error.resets_at.isoformat().replace("+00:00", "Z"),
        },
        retry_after_s=max(0.0, error.retry_after_s),
    )


def _groups_unavailable(_: GroupsUnavailable) -> Problem:
    return Problem.of(
        "GROUPS_UNAVAILABLE",
        "Which spending limit binds you depends on your groups, which cannot be asked for now; "
        "try again.",
        retry_after_s=RETRY_GROUPS_AFTER_S,
    )


def _not_permitted(error: NotPermitted) -> Problem:
    return Problem.of(
        "FORBIDDEN",
        f"Only administrators may {error.what}.",
        {},
    )


def _model_not_found(error: ModelNotFound) -> Problem:
    return Problem.of(
        "MODEL_NOT_FOUND",
        "There is no such model, or it is switched off; choose one of the list of models.",
        {"model_id": error.model_id},
        violations=_violations(error.problems),
    )


def _resource_not_found(error: ResourceNotFound) -> Problem:
    return Problem.of(
        "RESOURCE_NOT_FOUND",
        f"There is no such {error.resource}, or you may not see it.",
        {"resource": error.resource, "id": error.resource_id},
    )


def _name_taken(error: NameTaken) -> Problem:
    return Problem.of(
        "NAME_TAKEN",
        f"Another {error.resource} has this name; choose another one.",
        {"resource": error.resource, "name": error.name},
    )


def _version_conflict(error: VersionConflict) -> Problem:
    return Problem.of(
        "VERSION_CONFLICT",
        "Somebody changed it meanwhile; read it and try again.",
        {"etag": error.etag},
    )


def _key_needed(error: KeyNeeded) -> Problem:
    problem = (
        f"give the key again: the stored keys were given for {error.old_origin} and would be sent "
        f"to {error.new_origin or 'another host'}. It replaces the stored keys; null removes them"
    )
    return Problem.of(
        "KEY_NEEDED",
        "The change would send stored keys to another host; give the key again in the same "
        "request, or null to remove the stored keys.",
        {"old_origin": error.old_origin, "new_origin": error.new_origin},
        violations=(Violation("key", problem),),
    )


def _invalid(error: InvalidRequest) -> Problem:
    return Problem.of(
        "INVALID_REQUEST",
        str(error),
        {"field": error.field},
        violations=tuple(Violation(field, problem) for field, problem in error.faults),
    )


def _too_many_rules(error: TooManyRules) -> Problem:
    return Problem.of(
        "TOO_MANY_RULES",
        f"There are {error.rules_max} approval rules already; delete one first.",
        {"rules_max": str(error.rules_max)},
    )


def _unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem.of(
        "STORE_UNAVAILABLE",
        "The database cannot be reached; try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


def _contended(_: DatabaseBusy) -> Problem:
    return Problem.of(
        "STORE_BUSY",
        "Others have held what this changes for too long; nothing was changed, try again.",
        retry_after_s=RETRY_STORE_AFTER_S,
    )


def _action_not_open(error: ActionNotOpen) -> Problem:
    return Problem.of(
        "ACTION_NOT_FOUND", "The chat does not wait for this.", {"action_id": error.action_id}
    )


def _action_not_found(error: ActionNotFound) -> Problem:
    return Problem.of(
        "ACTION_NOT_FOUND",
        "The chat never asked this.",
        {"chat_id": error.chat_id, "action_id": error.action_id},
    )


def _action_ended(error: ActionEnded) -> Problem:
    action = error.action
    ended_at = "" if action.ended_at is None else action.ended_at.isoformat()
    how = "expired" if action.outcome is ActionOutcome.EXPIRED else f"was {action.outcome}"
    return Problem.of(
        "ACTION_ENDED",
        f"It {how} at {ended_at}; this answer changed nothing.",
        {
            "action_id": action.id,
            "state": str(action.outcome),
            "ended_by": action.ended_by,
            "ended_at": ended_at,
        },
    )


def _plan_not_found(error: PlanNotFound) -> Problem:
    return Problem.of(
        "PLAN_NOT_FOUND", "No plan was proposed in this chat.", {"chat_id": error.chat_id}
    )


def _break_glass_needed(error: BreakGlassNeeded) -> Problem:
    return Problem.of("BREAK_GLASS_NEEDED", f"{error}.", {"user_id": error.user_id})


ERRORS: ErrorTable = {
    ChatNotFound: _chat_not_found,
    ChatReadOnly: _chat_read_only,
    BreakGlassNeeded: _break_glass_needed,
    UnknownIds: _unknown_ids,
    CheckUnavailable: _check_unavailable,
    MessageNotFound: _message_not_found,
    QueuedMessageNotFound: _queued_not_found,
    FileNotFound: _file_not_found,
    TooManyFiles: _too_many_files,
    FileTooLarge: _file_too_large,
    MediaTypeRefused: _media_type_refused,
    TransitionNotAllowed: _not_allowed,
    AgentAtWork: _agent_at_work,
    ChatArchived: _archived,
    InvalidState: _invalid_state,
    FenceLost: _moved_on,
    QueueFull: _queue_full,
    NotEditable: _not_editable,
    RevertNotFound: _revert_not_found,
    RevertSuperseded: _revert_superseded,
    TitleUnavailable: _title_unavailable,
    RestoreFailed: _files_unavailable,
    NothingToCompact: _nothing_to_compact,
    BadToolResult: _bad_tool_result,
    ActionNotOpen: _action_not_open,
    ActionNotFound: _action_not_found,
    ActionEnded: _action_ended,
    PlanNotFound: _plan_not_found,
    RequestIdReused: _request_id_reused,
    UsageLimitReached: _usage_limit,
    GroupsUnavailable: _groups_unavailable,
    NotPermitted: _not_permitted,
    WorkspaceNotFound: _workspace_not_found,
    UserSuspended: _user_suspended,
    ModelNotFound: _model_not_found,
    ResourceNotFound: _resource_not_found,
    NameTaken: _name_taken,
    VersionConflict: _version_conflict,
    KeyNeeded: _key_needed,
    TooManyRules: _too_many_rules,
    **HOOK_ERRORS,
    InvalidRequest: _invalid,
    DatabaseUnavailable: _unavailable,
    DatabaseBusy: _contended,
    **SCHEDULE_ERRORS,
    **WORKSPACE_ERRORS,
}
