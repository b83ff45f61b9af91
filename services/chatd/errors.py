"""The error table of chatd: maps the errors of every slice to gRPC problems."""

from chatd.actions.rpc.errors import ACTION_ERRORS
from chatd.approvals.rpc.errors import APPROVAL_ERRORS
from chatd.chats.rpc.errors import CHAT_ERRORS
from chatd.files.rpc.errors import FILE_ERRORS
from chatd.hooks.rpc.errors import HOOK_ERRORS
from chatd.models.rpc.errors import MODEL_ERRORS
from chatd.primitives.rpc.errors import REQUEST_ERRORS
from chatd.push.rpc.errors import PUSH_ERRORS
from chatd.reverts.rpc.errors import REVERT_ERRORS
from chatd.schedules.rpc.errors import SCHEDULE_ERRORS
from chatd.spend.rpc.errors import SPEND_ERRORS
from chatd.users.rpc.errors import USER_ERRORS
from chatd.workspaces.rpc.errors import WORKSPACE_ERRORS
from parley.rpc import ErrorTable

DOMAIN = "chat.parley"

ERRORS: ErrorTable = {
    **ACTION_ERRORS,
    **APPROVAL_ERRORS,
    **CHAT_ERRORS,
    **FILE_ERRORS,
    **HOOK_ERRORS,
    **MODEL_ERRORS,
    **PUSH_ERRORS,
    **REQUEST_ERRORS,
    **REVERT_ERRORS,
    **SCHEDULE_ERRORS,
    **SPEND_ERRORS,
    **USER_ERRORS,
    **WORKSPACE_ERRORS,
}
