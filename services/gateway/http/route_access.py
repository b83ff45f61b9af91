"""The table of all routes of the gateway with their access rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.descriptor import FileDescriptor

from gateway.http.limits.admission import Duration
from parley.api.chat.v1 import (
    file_service_pb2,
    model_service_pb2,
    settings_service_pb2,
    stream_service_pb2,
    usage_service_pb2,
)
from parley.api.identity.v1 import group_service_pb2, token_service_pb2, user_service_pb2
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
        duration: How long its requests may take.
    """

    doc: str
    need: Need = Need.SIGN_IN
    roles: frozenset[Role] = frozenset()
    method: str = ""
    duration: Duration = Duration.SHORT

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
