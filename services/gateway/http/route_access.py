"""The table of all routes of the gateway with their access rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.descriptor import FileDescriptor

from parley.api.chat.v1 import (
    file_service_pb2,
    model_service_pb2,
    settings_service_pb2,
    stream_service_pb2,
    usage_service_pb2,
)
from parley.api.identity.v1 import group_service_pb2, token_service_pb2, user_service_pb2
from parley.api.workspace.v1 import (
    node_service_pb2,
    secret_service_pb2,
    workspace_access_service_pb2,
    workspace_service_pb2,
)
from parley.identity import Role, rule_of


class Need(StrEnum):
    """The authentication that a route requires."""

    NOTHING = "nothing"
    SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Access:
    """The access rule of a route.

    Attributes:
        doc: The purpose of the route, in one sentence.
        need: Whether a sign-in is required.
        roles: The allowed roles, if so.
        method: The equivalent gRPC method; empty if there is none.
    """

    doc: str
    need: Need = Need.SIGN_IN
    roles: frozenset[Role] = frozenset()
    method: str = ""

    @property
    def scope(self) -> str | None:
        """The scope that a service token needs for the method, as its proto declares it."""
        rule = rule_of(self.method) if self.method else None
        return None if rule is None else rule.scope


EVERYONE = frozenset(Role)
# An auditor reads the audit log and metrics, never chats.
CHATTERS = frozenset({Role.OWNER, Role.ADMIN, Role.MEMBER})
MANAGERS = frozenset({Role.OWNER, Role.ADMIN})
READERS_OF_ALL = MANAGERS | {Role.AUDITOR}


def _anyone(doc: str) -> Access:
    return Access(doc, Need.NOTHING)


class _Service:
    """A gRPC service whose methods are offered over HTTP."""

    def __init__(self, file: FileDescriptor) -> None:
        (self._service,) = file.services_by_name.values()

    def __call__(self, method: str, doc: str, roles: frozenset[Role] = CHATTERS) -> Access:
        name = self._service.methods_by_name[method].name
        return Access(doc, roles=roles, method=f"/{self._service.full_name}/{name}")


_streams = _Service(stream_service_pb2.DESCRIPTOR)
_files = _Service(file_service_pb2.DESCRIPTOR)
_models = _Service(model_service_pb2.DESCRIPTOR)
_settings = _Service(settings_service_pb2.DESCRIPTOR)
_usage = _Service(usage_service_pb2.DESCRIPTOR)
_users = _Service(user_service_pb2.DESCRIPTOR)
_groups = _Service(group_service_pb2.DESCRIPTOR)
_tokens = _Service(token_service_pb2.DESCRIPTOR)
_workspaces = _Service(workspace_access_service_pb2.DESCRIPTOR)
_catalogue = _Service(workspace_service_pb2.DESCRIPTOR)
_nodes = _Service(node_service_pb2.DESCRIPTOR)
_secrets = _Service(secret_service_pb2.DESCRIPTOR)

_API = "/api/v1"
_CHAT = f"{_API}/chats/{{chat_id}}"

PAGES: Mapping[tuple[str, str], Access] = {
    ("GET", "/"): _anyone("The page."),
    ("GET", "/docs"): _anyone("This list of routes."),
    ("GET", "/problems"): _anyone("Every problem that a request may be answered with."),
    ("GET", "/problems/{code}"): _anyone("What a problem means and what to do about it."),
    ("GET", "/login"): _anyone("Sign in by the one-time link."),
    ("GET", "/healthz"): _anyone("Whether this process lives."),
    ("GET", "/readyz"): _anyone("Whether this process can do its work."),
    ("GET", "/openapi.json"): _anyone("The description of this API for programs."),
}
CHATS: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_CHAT}/events"): _streams("Subscribe", "Follow what happens."),
    ("GET", f"{_API}/events"): _streams("WatchChats", "Follow the list of chats."),
    ("GET", f"{_CHAT}/usage"): _usage("GetChatUsage", "Sum up what its tree used and cost."),
}
_PROCESS = f"{_CHAT}/processes/{{process_id}}"
WORKSPACES: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_CHAT}/processes"): _workspaces(
        "ListWorkspaceProcesses", "List the processes of its workspace."
    ),
    ("POST", f"{_CHAT}/processes"): _workspaces(
        "StartWorkspaceProcess", "Start a process in its workspace."
    ),
    ("GET", _PROCESS): _workspaces("WaitWorkspaceOutput", "Read a process."),
    ("GET", f"{_PROCESS}/output"): _workspaces(
        "WaitWorkspaceOutput", "Wait for a process, and read its output after a cursor."
    ),
    ("POST", f"{_PROCESS}/stdin"): _workspaces(
        "WriteWorkspaceStdin", "Write to the standard input of a process."
    ),
    ("POST", f"{_PROCESS}/signal"): _workspaces(
        "SignalWorkspaceProcess", "Send a signal to a process and all it started."
    ),
    ("GET", f"{_PROCESS}/terminal"): _catalogue(
        "IssueAttachTicket", "Be the terminal of a process, over a WebSocket."
    ),
    ("GET", f"{_CHAT}/files"): _workspaces(
        "ListWorkspaceDirectory", "List a directory of its workspace."
    ),
    ("GET", f"{_CHAT}/files/content"): _workspaces(
        "DownloadWorkspaceFile", "Download a file of its workspace, or a range of it."
    ),
    ("GET", f"{_CHAT}/git"): _workspaces(
        "GetWorkspaceGitStatus", "Tell how its repositories differ from their last commits."
    ),
    ("GET", f"{_CHAT}/git/events"): _workspaces(
        "WatchWorkspaceGit", "Follow how its repositories differ from their last commits."
    ),
    ("GET", f"{_CHAT}/diff"): _workspaces("GetWorkspaceDiff", "Read a difference as text."),
    ("GET", f"{_CHAT}/checkpoints"): _workspaces(
        "ListWorkspaceCheckpoints", "List the checkpoints of a repository."
    ),
    ("POST", f"{_CHAT}/checkpoints"): _workspaces(
        "CreateWorkspaceCheckpoint", "Keep the state of all files of a repository."
    ),
    ("POST", f"{_CHAT}/checkpoints/restore"): _workspaces(
        "RestoreWorkspaceCheckpoint", "Put files back as a checkpoint holds them."
    ),
}
_WORKSPACE = f"{_API}/workspaces/{{workspace_id}}"
_TEMPLATE = f"{_API}/templates/{{template_id}}"
CATALOGUE: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/templates"): _catalogue(
        "ListTemplates", "List what workspaces can be made from."
    ),
    ("POST", f"{_API}/templates"): _catalogue("CreateTemplate", "Make a template known.", MANAGERS),
    ("GET", _TEMPLATE): _catalogue("GetTemplate", "Read a template."),
    ("PATCH", _TEMPLATE): _catalogue("UpdateTemplate", "Change a template.", MANAGERS),
    ("DELETE", _TEMPLATE): _catalogue("DeleteTemplate", "Forget a template.", MANAGERS),
    ("GET", f"{_API}/workspaces"): _catalogue("ListWorkspaces", "List workspaces."),
    ("POST", f"{_API}/workspaces"): _catalogue("CreateWorkspace", "Ask for a new workspace."),
    ("GET", _WORKSPACE): _catalogue("GetWorkspace", "Read a workspace."),
    ("DELETE", _WORKSPACE): _catalogue("DeleteWorkspace", "Remove it with its files."),
    ("GET", f"{_WORKSPACE}/terminal"): _catalogue(
        "IssueAttachTicket", "Start a shell in a workspace and be its terminal, over a WebSocket."
    ),
    ("GET", f"{_WORKSPACE}/processes/{{process_id}}/terminal"): _catalogue(
        "IssueAttachTicket", "Be the terminal of a process of a workspace, over a WebSocket."
    ),
    ("POST", f"{_WORKSPACE}/start"): _catalogue("StartWorkspace", "Start it, or make it again."),
    ("POST", f"{_WORKSPACE}/stop"): _catalogue("StopWorkspace", "Stop it and keep its files."),
    ("POST", f"{_WORKSPACE}/fork"): _catalogue("ForkWorkspace", "Copy it to work beside it."),
    ("POST", f"{_WORKSPACE}/merge"): _catalogue("MergeFork", "Bring a fork home."),
    ("GET", f"{_WORKSPACE}/events"): _catalogue(
        "WatchWorkspace", "Follow it: its state, its setup log, the warning before it stops."
    ),
    ("PUT", f"{_WORKSPACE}/ttl"): _catalogue("SetWorkspaceTtl", "Change its lifetime."),
    ("PUT", f"{_WORKSPACE}/policy"): _catalogue(
        "SetWorkspacePolicy", "Change what it may reach and use, also while it runs.", MANAGERS
    ),
    ("GET", f"{_API}/quota"): _catalogue("GetQuota", "What one has and may have of workspaces."),
    ("GET", f"{_API}/nodes"): _nodes("ListNodes", "List the machines that host.", MANAGERS),
    ("GET", f"{_API}/secrets"): _secrets("ListSecrets", "List secrets, without their values."),
    ("POST", f"{_API}/secrets"): _secrets("PutSecret", "Store a secret, or a new value of it."),
    ("DELETE", f"{_API}/secrets/{{secret_id}}"): _secrets("DeleteSecret", "Forget a secret."),
    ("GET", f"{_API}/secrets/uses"): _secrets("ListSecretUses", "List uses of secrets."),
    ("GET", f"{_WORKSPACE}/grants"): _secrets("ListGrants", "List what it may use of secrets."),
    ("PUT", f"{_WORKSPACE}/grants"): _secrets("SetGrants", "Replace what it may use of secrets."),
}
FILES: Mapping[tuple[str, str], Access] = {
    ("POST", f"{_API}/files"): _files("UploadFile", "Store a file, to be sent with a message."),
    ("GET", f"{_API}/files/{{file_id}}"): _files("DownloadFile", "Read the bytes of a file."),
    ("GET", f"{_API}/files/{{file_id}}/info"): _files("GetFile", "Read what is known of a file."),
}
MODELS: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/models"): _models("ListModels", "List the models.", EVERYONE),
    ("POST", f"{_API}/models"): _models("CreateModel", "Make a model known.", MANAGERS),
    ("GET", f"{_API}/models/{{model_id}}"): _models("ListModels", "Read a model.", EVERYONE),
    ("PATCH", f"{_API}/models/{{model_id}}"): _models("UpdateModel", "Change a model.", MANAGERS),
    ("DELETE", f"{_API}/models/{{model_id}}"): _models("DeleteModel", "Forget a model.", MANAGERS),
    ("GET", f"{_API}/model-overrides"): _models(
        "ListModelOverrides", "List the purposes that have a model of their own.", EVERYONE
    ),
    ("PUT", f"{_API}/model-overrides/{{purpose}}"): _models(
        "SetModelOverride", "Give a purpose a model of its own.", MANAGERS
    ),
    ("DELETE", f"{_API}/model-overrides/{{purpose}}"): _models(
        "SetModelOverride", "Take it away again.", MANAGERS
    ),
    ("GET", f"{_API}/providers"): _models("ListProviders", "List the providers.", MANAGERS),
    ("POST", f"{_API}/providers"): _models("CreateProvider", "Make one known.", MANAGERS),
    ("GET", f"{_API}/providers/{{provider_id}}"): _models(
        "ListProviders", "Read a provider.", MANAGERS
    ),
    ("PATCH", f"{_API}/providers/{{provider_id}}"): _models(
        "UpdateProvider", "Change a provider.", MANAGERS
    ),
    ("DELETE", f"{_API}/providers/{{provider_id}}"): _models(
        "DeleteProvider", "Forget a provider, its models and its keys.", MANAGERS
    ),
    ("POST", f"{_API}/providers/{{provider_id}}/check"): _models(
        "CheckProvider", "Ask it whether its keys work and what it offers.", MANAGERS
    ),
    ("POST", f"{_API}/provider-keys"): _models(
        "AddProviderKey", "Store a key of the installation.", MANAGERS
    ),
    ("DELETE", f"{_API}/provider-keys/{{key_id}}"): _models(
        "DeleteProviderKey", "Forget a key of the installation.", MANAGERS
    ),
    ("GET", f"{_API}/me/provider-keys"): _models(
        "ListProviderKeys", "List one's own keys, and who takes such keys."
    ),
    ("POST", f"{_API}/me/provider-keys"): _models("AddProviderKey", "Store one's own key."),
    ("DELETE", f"{_API}/me/provider-keys/{{key_id}}"): _models(
        "DeleteProviderKey", "Forget one's own key."
    ),
}
SETTINGS: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/settings"): _settings(
        "GetInstallationSettings", "Read the installation's settings.", EVERYONE
    ),
    ("PATCH", f"{_API}/settings"): _settings(
        "UpdateInstallationSettings", "Change the installation's settings.", MANAGERS
    ),
    ("GET", f"{_API}/me/settings"): _settings("GetUserSettings", "Read one's own settings."),
    ("PATCH", f"{_API}/me/settings"): _settings("UpdateUserSettings", "Change one's own settings."),
}
USAGE: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/usage"): _usage("ListUsage", "Sum up what everyone used.", MANAGERS),
    ("GET", f"{_API}/users/{{user_id}}/usage"): _usage(
        "GetUserUsage", "Sum up what somebody used.", READERS_OF_ALL
    ),
    ("GET", f"{_API}/me/usage"): _usage("GetUserUsage", "Sum up what one used oneself."),
    ("GET", f"{_API}/me/spend"): _usage("GetSpendStatus", "Where one stands against a limit."),
    ("GET", f"{_API}/spend-limits"): _usage("ListSpendLimits", "List the limits.", MANAGERS),
    **{
        (method, f"{_API}/spend-limits/{subject}"): _usage("SetSpendLimit", doc, MANAGERS)
        for method, doc in (("PUT", "Limit what they may spend."), ("DELETE", "No longer."))
        for subject in ("everyone", "users/{user_id}", "groups/{group_id}")
    },
}
USERS: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/me"): _users("GetUser", "Who is signed in.", EVERYONE),
    ("PATCH", f"{_API}/me"): Access("Change one's own name and address.", roles=EVERYONE),
    ("GET", f"{_API}/users"): _users("ListUsers", "List users.", READERS_OF_ALL),
    ("POST", f"{_API}/users"): _users("CreateUser", "Create a user.", MANAGERS),
    ("GET", f"{_API}/users/{{user_id}}"): _users("GetUser", "Read a user.", READERS_OF_ALL),
    ("PATCH", f"{_API}/users/{{user_id}}"): _users("UpdateUser", "Change a user.", MANAGERS),
    ("DELETE", f"{_API}/users/{{user_id}}"): _users(
        "DeleteUser", "Delete a deactivated user for good.", MANAGERS
    ),
    ("POST", f"{_API}/users/{{user_id}}/deactivate"): _users(
        "DeactivateUser", "Lock a user out.", MANAGERS
    ),
    ("POST", f"{_API}/users/{{user_id}}/reactivate"): _users(
        "UpdateUser", "Let a user in again.", MANAGERS
    ),
    ("POST", f"{_API}/service-tokens"): _tokens(
        "IssueServiceToken", "Issue a service token.", MANAGERS
    ),
    ("GET", f"{_API}/service-tokens"): _tokens(
        "ListServiceTokens", "List service tokens.", READERS_OF_ALL
    ),
    ("DELETE", f"{_API}/service-tokens/{{token_id}}"): _tokens(
        "RevokeServiceToken", "Revoke a service token.", MANAGERS
    ),
}
_GROUP = f"{_API}/groups/{{group_id}}"
GROUPS: Mapping[tuple[str, str], Access] = {
    ("GET", f"{_API}/me/groups"): _users("GetUser", "List one's own groups.", EVERYONE),
    ("GET", f"{_API}/users/{{user_id}}/groups"): _users(
        "GetUser", "List the groups of a user.", READERS_OF_ALL
    ),
    ("GET", f"{_API}/groups"): _groups("ListGroups", "List groups.", READERS_OF_ALL),
    ("POST", f"{_API}/groups"): _groups("CreateGroup", "Create a group.", MANAGERS),
    ("GET", _GROUP): _groups("GetGroup", "Read a group, one's own if a member.", EVERYONE),
    ("PATCH", _GROUP): _groups("RenameGroup", "Give a group another name.", MANAGERS),
    ("DELETE", _GROUP): _groups(
        "DeleteGroup", "Delete a group with the shares and limits that name it.", MANAGERS
    ),
    ("GET", f"{_GROUP}/members"): _users("ListUsers", "List the users of a group.", READERS_OF_ALL),
    ("PUT", f"{_GROUP}/members/{{user_id}}"): _groups(
        "AddGroupMember", "Let a user belong to a group.", MANAGERS
    ),
    ("DELETE", f"{_GROUP}/members/{{user_id}}"): _groups(
        "RemoveGroupMember", "Let a user no longer belong to a group.", MANAGERS
    ),
}
ACCESS: Mapping[tuple[str, str], Access] = {
    **PAGES,
    **CHATS,
    **WORKSPACES,
    **CATALOGUE,
    **FILES,
    **MODELS,
    **SETTINGS,
    **USAGE,
    **USERS,
    **GROUPS,
}


class RouteUndeclared(Exception):
    """A route that is missing in the table, or an entry without a route.

    Attributes:
        routes: Methods and paths that are on one side only.
    """

    def __init__(self, routes: frozenset[tuple[str, str]]) -> None:
        listed = ", ".join(f"{method} {path}" for method, path in sorted(routes))
        super().__init__(f"declare who may use {listed} in gateway.http.route_access, or serve it")
        self.routes = routes
