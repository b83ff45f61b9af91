"""Calls the methods of chatd that transcoded routes name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from gateway.api.transcoded_route import Call
from gateway.streams.chatd_client import SEND, ChatdClient, Stubs
from gateway.streams.workspace_client import workspace_of

#: Service -> its stub in `Stubs`.
STUBS: Final[Mapping[str, str]] = {
    "parley.api.chat.v1.ApprovalService": "approvals",
    "parley.api.chat.v1.BreakGlassService": "break_glass",
    "parley.api.chat.v1.ChatService": "chats",
    "parley.api.chat.v1.ContextService": "context",
    "parley.api.chat.v1.FileService": "files",
    "parley.api.chat.v1.HookService": "hooks",
    "parley.api.chat.v1.GoalService": "goals",
    "parley.api.chat.v1.ModelService": "models",
    "parley.api.chat.v1.MonitorService": "monitors",
    "parley.api.chat.v1.PushService": "push",
    "parley.api.chat.v1.RaceService": "races",
    "parley.api.chat.v1.RetentionService": "retention",
    "parley.api.chat.v1.RevertService": "reverts",
    "parley.api.chat.v1.ScheduleService": "schedules",
    "parley.api.chat.v1.SettingsService": "settings",
    "parley.api.chat.v1.ActionService": "actions",
    "parley.api.chat.v1.UsageService": "usage",
    "parley.api.workspace.v1.NodeService": "nodes",
    "parley.api.workspace.v1.SecretService": "secrets",
    "parley.api.workspace.v1.WorkspaceAccessService": "workspaces",
    "parley.api.workspace.v1.WorkspaceServerService": "workspace_servers",
    "parley.api.workspace.v1.WorkspaceService": "catalogue",
}


class ChatdCalls:
    """Calls chatd for users."""

    def __init__(self, chatd: ChatdClient) -> None:
        self._chatd = chatd

    async def __call__(self, call: Call) -> Any:
        """Return the response message.

        Raises:
            HttpProblem: There is no such chat for this user (404).
            UpstreamProblem: The response is another error, or no process responds.
        """

        def question(stubs: Stubs) -> Awaitable[Any]:
            method = method_of(stubs, call.method)
            if call.timeout_s is None:
                return method(call.request)
            return method(call.request, timeout=call.timeout_s)

        with workspace_of(call.routing_key):
            answer, _ = await self._chatd.ask(call.user, call.routing_key, question)
        return answer


def method_of(stubs: Stubs, method: str) -> Callable[..., Awaitable[Any]]:
    """Return the stub of "/pkg.Service/Method"."""
    if method == SEND:
        return stubs.send
    service, _, name = method.removeprefix("/").partition("/")
    found: Callable[..., Awaitable[Any]] = getattr(getattr(stubs, STUBS[service]), name)
    return found
