"""The routing table; `gateway.http.route_access` contains the access rules."""

from gateway.api.inputs import chats as inputs
from gateway.api.inputs import models as inputs_models
from gateway.api.inputs import secrets as inputs_secrets
from gateway.api.inputs import users as inputs_users
from gateway.api.inputs import workspace_access as inputs_workspaces
from gateway.api.inputs import workspaces as inputs_catalogue
from gateway.http.application import AnyRoute, OpenRoute, UserRoute
from gateway.routes.checkpoints import CheckpointRoutes
from gateway.routes.files import UPLOADED_TYPES, FileRoutes
from gateway.routes.groups import GroupRoutes
from gateway.routes.models import ModelRoutes
from gateway.routes.processes import ProcessRoutes
from gateway.routes.providers import ProviderRoutes
from gateway.routes.secrets import SecretRoutes
from gateway.routes.service_tokens import TokenRoutes
from gateway.routes.settings import SettingsRoutes
from gateway.routes.templates import TemplateRoutes
from gateway.routes.usage import UsageRoutes
from gateway.routes.users import UserRoutes
from gateway.routes.wiring import Handlers
from gateway.routes.workspace_files import WorkspaceFileRoutes
from gateway.routes.workspaces import WorkspaceRoutes
from gateway.terminals.routes import TerminalRoutes
from gateway.web.routes import PageRoutes

API = "/api/v1"
CHAT = f"{API}/chats/{{chat_id}}"
MODEL = f"{API}/models/{{model_id}}"
OVERRIDE = f"{API}/model-overrides/{{purpose}}"
PROVIDER = f"{API}/providers/{{provider_id}}"
USER = f"{API}/users/{{user_id}}"
GROUP = f"{API}/groups/{{group_id}}"
LIMITS = f"{API}/spend-limits"

PAGE = ("limit", "cursor")
SPAN = ("start", "end")


def routes(handlers: Handlers) -> tuple[AnyRoute, ...]:
    """Return every route."""
    served = (
        *_pages(handlers.pages),
        *_streams(handlers),
        *_workspaces(handlers.processes, handlers.workspace_files),
        *_terminals(handlers.terminal),
        *_catalogue(handlers.templates, handlers.workspaces),
        *_secrets(handlers.secrets),
        *_checkpoints(handlers.checkpoints),
        *_files(handlers.files),
        *_models(handlers.models),
        *_providers(handlers.providers),
        *_settings(handlers.settings),
        *_usage(handlers.usage),
        *_users(handlers.users),
        *_groups(handlers.groups),
        *_tokens(handlers.tokens),
    )
    declared = {(route.method, route.path): route for route in handlers.declared}
    rest = [route for route in served if (route.method, route.path) not in declared]
    return (*declared.values(), *rest)


def _pages(pages: PageRoutes) -> tuple[AnyRoute, ...]:
    return (
        OpenRoute("GET", "/", pages.page),
        OpenRoute("GET", "/docs", pages.docs),
        OpenRoute("GET", "/openapi.json", pages.openapi),
        OpenRoute("GET", "/problems", pages.problems),
        OpenRoute("GET", "/problems/{code}", pages.problem),
        # A HEAD request must not consume the link.
        OpenRoute("GET", "/login", pages.login, answers_head=False),
        OpenRoute("GET", "/healthz", pages.healthz),
        OpenRoute("GET", "/readyz", pages.readyz),
    )


def _streams(handlers: Handlers) -> tuple[AnyRoute, ...]:
    export, events = handlers.export, handlers.events
    return (
        UserRoute("GET", f"{CHAT}/export", export.export, answers_head=False, query=("format",)),
        UserRoute(
            "GET",
            f"{CHAT}/events",
            events.chat,
            answers_head=False,
            query=("cursor", "after_id", "types"),
        ),
        UserRoute(
            "GET", f"{API}/events", events.feed, answers_head=False, query=("cursor", "types")
        ),
    )


def _secrets(secrets: SecretRoutes) -> tuple[AnyRoute, ...]:
    grants = f"{API}/workspaces/{{workspace_id}}/grants"
    return (
        UserRoute("GET", f"{API}/secrets", secrets.list, query=PAGE),
        UserRoute(
            "POST", f"{API}/secrets", secrets.put, body=inputs_secrets.NewSecret, conditional=True
        ),
        UserRoute("GET", f"{API}/secrets/uses", secrets.uses, query=("workspace_id", *PAGE)),
        UserRoute("DELETE", f"{API}/secrets/{{secret_id}}", secrets.delete),
        UserRoute("GET", grants, secrets.grants, query=PAGE),
        UserRoute("PUT", grants, secrets.grant, body=inputs_secrets.GrantsInput),
    )


def _catalogue(templates: TemplateRoutes, workspaces: WorkspaceRoutes) -> tuple[AnyRoute, ...]:
    template, workspace = f"{API}/templates/{{template_id}}", f"{API}/workspaces/{{workspace_id}}"
    listed = ("owner_id", "node_id", *PAGE, "state")
    given = inputs_catalogue
    return (
        UserRoute("GET", f"{API}/templates", templates.list, query=("query", "for_agents", *PAGE)),
        UserRoute("POST", f"{API}/templates", templates.create, body=given.NewTemplate),
        UserRoute("GET", template, templates.read),
        UserRoute("PATCH", template, templates.update, body=given.TemplatePatch, conditional=True),
        UserRoute("DELETE", template, templates.delete),
        UserRoute("GET", f"{API}/workspaces", workspaces.list, query=listed),
        UserRoute("POST", f"{API}/workspaces", workspaces.create, body=given.NewWorkspace),
        UserRoute("GET", workspace, workspaces.read),
        UserRoute("DELETE", workspace, workspaces.delete, query=("force",)),
        UserRoute(
            "GET",
            f"{workspace}/events",
            workspaces.events,
            answers_head=False,
            query=("after", "types"),
        ),
        UserRoute("POST", f"{workspace}/start", workspaces.start, body=given.StartInput),
        UserRoute("POST", f"{workspace}/stop", workspaces.stop, body=given.StopInput),
        UserRoute("POST", f"{workspace}/fork", workspaces.fork, body=given.ForkInput),
        UserRoute("POST", f"{workspace}/merge", workspaces.merge, body=given.MergeInput),
        UserRoute("PUT", f"{workspace}/ttl", workspaces.set_ttl, body=given.TtlInput),
        UserRoute("PUT", f"{workspace}/policy", workspaces.set_policy, body=given.PolicyInput),
        UserRoute("GET", f"{API}/quota", workspaces.quota, query=("owner_id",)),
        UserRoute("GET", f"{API}/nodes", workspaces.nodes, query=PAGE),
    )


def _checkpoints(checkpoints: CheckpointRoutes) -> tuple[AnyRoute, ...]:
    path = f"{CHAT}/checkpoints"
    kept, restored = inputs_workspaces.NewCheckpoint, inputs_workspaces.RestoreInput
    return (
        UserRoute("GET", path, checkpoints.list, query=("repository", *PAGE)),
        UserRoute("POST", path, checkpoints.create, body=kept),
        UserRoute("POST", f"{path}/restore", checkpoints.restore, body=restored),
    )


def _workspaces(processes: ProcessRoutes, files: WorkspaceFileRoutes) -> tuple[AnyRoute, ...]:
    process, waited = (
        f"{CHAT}/processes/{{process_id}}",
        ("wait", "until", "pattern", "cursor", "max_bytes"),
    )
    listed = ("path", "depth", "include_ignored", *PAGE)
    compared = ("repository", "base", "target", "max_bytes", "paths")
    started, written, sent = (
        inputs_workspaces.NewProcess,
        inputs_workspaces.StdinInput,
        inputs_workspaces.SignalInput,
    )
    return (
        UserRoute("GET", f"{CHAT}/processes", processes.list, query=(*PAGE, "state")),
        UserRoute("POST", f"{CHAT}/processes", processes.start, body=started),
        UserRoute("GET", process, processes.read),
        UserRoute("GET", f"{process}/output", processes.output, query=waited),
        UserRoute("POST", f"{process}/stdin", processes.write, body=written),
        UserRoute("POST", f"{process}/signal", processes.signal, body=sent),
        UserRoute("GET", f"{CHAT}/files", files.list, query=listed),
        UserRoute("GET", f"{CHAT}/files/content", files.download, query=("path",)),
        UserRoute("GET", f"{CHAT}/git", files.git),
        UserRoute(
            "GET", f"{CHAT}/git/events", files.git_events, answers_head=False, query=("types",)
        ),
        UserRoute("GET", f"{CHAT}/diff", files.diff, query=compared),
    )


def _terminals(terminal: TerminalRoutes) -> tuple[AnyRoute, ...]:
    workspace, process = f"{API}/workspaces/{{workspace_id}}", "processes/{process_id}/terminal"
    attached = ("cursor", "rows", "columns", "view_only")
    return tuple(
        UserRoute("GET", path, handler, answers_head=False, query=query, upgrades=True)
        for path, handler, query in (
            (f"{CHAT}/{process}", terminal.attach, attached),
            (f"{workspace}/{process}", terminal.attach_in_workspace, attached),
            (f"{workspace}/terminal", terminal.open_shell, ("workdir", "rows", "columns")),
        )
    )


def _files(files: FileRoutes) -> tuple[AnyRoute, ...]:
    file = f"{API}/files/{{file_id}}"
    return (
        UserRoute(
            "POST", f"{API}/files", files.upload, query=("name",), uploads=(*UPLOADED_TYPES,)
        ),
        UserRoute("GET", file, files.download),
        UserRoute("GET", f"{file}/info", files.read),
    )


def _models(models: ModelRoutes) -> tuple[AnyRoute, ...]:
    return (
        UserRoute("GET", f"{API}/models", models.list, query=PAGE),
        UserRoute("POST", f"{API}/models", models.create, body=inputs_models.NewModel),
        UserRoute("GET", MODEL, models.read),
        UserRoute("PATCH", MODEL, models.update, body=inputs_models.ModelPatch, conditional=True),
        UserRoute("DELETE", MODEL, models.delete),
        UserRoute("GET", f"{API}/model-overrides", models.list_overrides),
        UserRoute("PUT", OVERRIDE, models.put_override, body=inputs_models.NewOverride),
        UserRoute("DELETE", OVERRIDE, models.delete_override),
    )


def _providers(providers: ProviderRoutes) -> tuple[AnyRoute, ...]:
    key, keys, own_keys = (
        inputs_models.NewProviderKey,
        f"{API}/provider-keys",
        f"{API}/me/provider-keys",
    )
    return (
        UserRoute("GET", f"{API}/providers", providers.list, query=PAGE),
        UserRoute("POST", f"{API}/providers", providers.create, body=inputs_models.NewProvider),
        UserRoute("GET", PROVIDER, providers.read),
        UserRoute(
            "PATCH", PROVIDER, providers.update, body=inputs_models.ProviderPatch, conditional=True
        ),
        UserRoute("DELETE", PROVIDER, providers.delete),
        UserRoute("POST", f"{PROVIDER}/check", providers.check, body=inputs.Nothing),
        UserRoute("POST", keys, providers.add_key, body=key),
        UserRoute("DELETE", f"{keys}/{{key_id}}", providers.delete_key),
        UserRoute("GET", own_keys, providers.list_own_keys),
        UserRoute("POST", own_keys, providers.add_own_key, body=key),
        UserRoute("DELETE", f"{own_keys}/{{key_id}}", providers.delete_key),
    )


def _settings(settings: SettingsRoutes) -> tuple[AnyRoute, ...]:
    own = f"{API}/me/settings"
    return (
        UserRoute("GET", f"{API}/settings", settings.read),
        UserRoute(
            "PATCH", f"{API}/settings", settings.update, body=inputs_models.InstallationPatch
        ),
        UserRoute("GET", own, settings.read_own),
        UserRoute("PATCH", own, settings.update_own, body=inputs_models.UserSettingsPatch),
    )


def _usage(usage: UsageRoutes) -> tuple[AnyRoute, ...]:
    limited = tuple(
        route
        for subject in ("everyone", "users/{user_id}", "groups/{group_id}")
        for route in (
            UserRoute(
                "PUT", f"{LIMITS}/{subject}", usage.put_limit, body=inputs_models.NewSpendLimit
            ),
            UserRoute("DELETE", f"{LIMITS}/{subject}", usage.delete_limit),
        )
    )
    return (
        UserRoute("GET", f"{CHAT}/usage", usage.of_chat),
        UserRoute("GET", f"{API}/usage", usage.list, query=(*SPAN, *PAGE)),
        UserRoute("GET", f"{USER}/usage", usage.of_user, query=SPAN),
        UserRoute("GET", f"{API}/me/usage", usage.own, query=SPAN),
        UserRoute("GET", f"{API}/me/spend", usage.spend_status),
        UserRoute("GET", LIMITS, usage.list_limits, query=PAGE),
        *limited,
    )


def _users(users: UserRoutes) -> tuple[AnyRoute, ...]:
    nothing = inputs.Nothing
    return (
        UserRoute("GET", f"{API}/me", users.me),
        UserRoute(
            "PATCH", f"{API}/me", users.update_me, body=inputs_users.MePatch, conditional=True
        ),
        UserRoute("GET", f"{API}/users", users.list, query=("q", "state", *PAGE)),
        UserRoute("POST", f"{API}/users", users.create, body=inputs_users.NewUserInput),
        UserRoute("GET", USER, users.read),
        UserRoute("PATCH", USER, users.update, body=inputs_users.UserPatch, conditional=True),
        UserRoute("DELETE", USER, users.delete),
        UserRoute("POST", f"{USER}/deactivate", users.deactivate, body=nothing),
        UserRoute("POST", f"{USER}/reactivate", users.reactivate, body=nothing, conditional=True),
    )


def _groups(groups: GroupRoutes) -> tuple[AnyRoute, ...]:
    member = f"{GROUP}/members/{{user_id}}"
    return (
        UserRoute("GET", f"{API}/me/groups", groups.own),
        UserRoute("GET", f"{USER}/groups", groups.of_user),
        UserRoute("GET", f"{API}/groups", groups.list, query=("q", *PAGE)),
        UserRoute("POST", f"{API}/groups", groups.create, body=inputs_users.NewGroupInput),
        UserRoute("GET", GROUP, groups.read),
        UserRoute("PATCH", GROUP, groups.rename, body=inputs_users.GroupPatch, conditional=True),
        UserRoute("DELETE", GROUP, groups.delete),
        UserRoute("GET", f"{GROUP}/members", groups.list_members, query=PAGE),
        UserRoute("PUT", member, groups.add_member),
        UserRoute("DELETE", member, groups.remove_member),
    )


def _tokens(tokens: TokenRoutes) -> tuple[AnyRoute, ...]:
    query = (*PAGE, "user_id", "include_ended")
    return (
        UserRoute("POST", f"{API}/service-tokens", tokens.issue, body=inputs.NewServiceToken),
        UserRoute("GET", f"{API}/service-tokens", tokens.list, query=query),
        UserRoute("DELETE", f"{API}/service-tokens/{{token_id}}", tokens.revoke),
    )
