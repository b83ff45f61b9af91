"""Collects the files of an export, in an order in which each can be skipped if it is there.

What chatd has is read as the user, so that nothing of others can get in. Of keys, tokens and
secrets only what lists show of them is exported, never their values.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Set
from typing import Any, Final, cast

import grpc
import msgspec

from gateway.api.json_output import to_json
from gateway.exports.agent_documents import goal_of, monitors_of, skills_of
from gateway.exports.file import File
from gateway.exports.problems import ExportProblems
from gateway.exports.workspace_files import NODE_AWAY, LeftOut, WorkspaceFiles
from gateway.http.problems.errors import UpstreamProblem
from gateway.identity.domain import UserRecord
from gateway.streams.chatd_client import ChatdClient, Stubs
from parley.api.chat.v1 import (
    approval_pb2,
    approval_service_pb2,
    chat_service_pb2,
    file_pb2,
    file_service_pb2,
    model_service_pb2,
    push_service_pb2,
    schedule_service_pb2,
    settings_service_pb2,
    usage_service_pb2,
)
from parley.api.identity.v1 import (
    api_key_service_pb2,
    group_service_pb2,
    second_factor_service_pb2,
    session_service_pb2,
    token_service_pb2,
)
from parley.api.workspace.v1 import secret_service_pb2, workspace_service_pb2
from parley.identity import User
from parley.rpc import Problem, problem_of

PAGE_SIZE: Final = 200
PART_BYTES: Final = 4 * 1024 * 1024
CALL_S: Final = 60.0
STREAM_S: Final = 3600.0
PROBLEMS: Final = "problems.json"
UNSAFE: Final = '/\\:"'
IDENTITY: Final = "/parley.api.identity.v1."
#: Answers that another attempt would get again.
LASTING: Final = frozenset(
    {
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)

#: What is written as a JSON document.
Content = object
#: Calls a method of this process for a user: its name, the request, the user.
AskIdentity = Callable[[str, Any, User], Awaitable[Any]]


class Collection:
    """Everything of one user.

    Args:
        user: The user.
        chatd: The client of chatd.
        identity: Calls methods of this process.
        known: Files that the export has already.
    """

    def __init__(
        self, user: UserRecord, chatd: ChatdClient, identity: AskIdentity, known: Set[str]
    ) -> None:
        self._record = user
        self._user = user.as_user
        self._chatd = chatd
        self._identity = identity
        self._known = known
        self._problems = ExportProblems()

    async def files(self) -> AsyncIterator[File]:
        """Yield all files that are not known.

        Raises:
            UpstreamProblem: A service does not answer; the export goes on later.
        """
        yield _document("profile.json", _profile(self._record))
        for name, read in self._documents():
            if name not in self._known:
                try:
                    yield _document(name, await read())
                except UpstreamProblem as error:
                    self._note(name, error)
        async for file in self._uploads():
            yield file
        async for chat_id in self._chat_ids():
            async for file in self._chat(chat_id):
                yield file
        async for file in self._workspaces():
            yield file
        yield problems_file(self._problems)

    def _documents(self) -> tuple[tuple[str, Callable[[], Awaitable[Content]]], ...]:
        user_id, mine = self._user.id, self._of_identity
        rules = approval_service_pb2.ListApprovalRulesRequest(
            scope=approval_pb2.APPROVAL_SCOPE_USER
        )
        keys = api_key_service_pb2.ListApiKeysRequest(user_id=user_id, include_ended=True)
        tokens = token_service_pb2.ListServiceTokensRequest(
            user_id=user_id, include_ended=True, page_size=PAGE_SIZE
        )
        groups = group_service_pb2.ListUserGroupsRequest(user_id=user_id)
        factors = second_factor_service_pb2.GetSecondFactorsRequest()
        workspaces = workspace_service_pb2.ListWorkspacesRequest()
        secrets = secret_service_pb2.ListSecretsRequest()
        usage = usage_service_pb2.GetUserUsageRequest(user_id=user_id)
        return (
            ("api-keys.json", lambda: mine("ApiKeyService/ListApiKeys", keys)),
            ("service-tokens.json", lambda: mine("ServiceTokenService/ListServiceTokens", tokens)),
            ("groups.json", lambda: mine("GroupService/ListUserGroups", groups)),
            ("second-factors.json", lambda: mine("SecondFactorService/GetSecondFactors", factors)),
            (
                "sessions.json",
                lambda: mine(
                    "SessionService/ListSessions", session_service_pb2.ListSessionsRequest()
                ),
            ),
            (
                "settings.json",
                lambda: self._one(
                    lambda stubs: stubs.settings.GetUserSettings(
                        settings_service_pb2.GetUserSettingsRequest(), timeout=CALL_S
                    ),
                    "settings",
                ),
            ),
            ("provider-keys.json", self._provider_keys),
            (
                "usage.json",
                lambda: self._one(lambda stubs: stubs.usage.GetUserUsage(usage, timeout=CALL_S)),
            ),
            (
                "approval-rules.json",
                lambda: self._all(lambda stubs: stubs.approvals.ListApprovalRules, rules),
            ),
            ("model-overrides.json", self._model_overrides),
            ("schedules.json", self._schedules),
            ("push-subscriptions.json", self._devices),
            ("skills.json", lambda: skills_of(self._ask)),
            ("secrets.json", lambda: self._all(lambda stubs: stubs.secrets.ListSecrets, secrets)),
            (
                "workspaces.json",
                lambda: self._all(lambda stubs: stubs.catalogue.ListWorkspaces, workspaces),
            ),
            ("shared-with-me.json", self._shared),
            ("files.json", lambda: self._all(_list_files, file_service_pb2.ListFilesRequest())),
        )

    async def _of_identity(self, method: str, request: Any) -> Content:
        return to_json(await self._identity(f"{IDENTITY}{method}", request, self._user))

    async def _one(self, ask: Callable[[Stubs], Awaitable[Any]], field: str = "") -> Content:
        answer = await self._chatd.ask_any(self._user, ask)
        return to_json(getattr(answer, field) if field else answer)

    async def _ask(self, ask: Callable[[Stubs], Awaitable[Any]]) -> Any:
        return await self._chatd.ask_any(self._user, ask)

    async def _all(self, method: Callable[[Stubs], Any], request: Any) -> Content:
        found: list[Content] = []
        async for page in self._pages(method, request):
            found += cast(list[Content], to_json(page)["items"])
        return found

    async def _pages(self, method: Callable[[Stubs], Any], request: Any) -> AsyncIterator[Any]:
        request.page_size = PAGE_SIZE
        while True:
            page = await self._chatd.ask_any(
                self._user, lambda stubs: method(stubs)(request, timeout=CALL_S)
            )
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def _model_overrides(self) -> Content:
        request = settings_service_pb2.ListOwnModelOverridesRequest()
        return await self._one(
            lambda stubs: stubs.settings.ListOwnModelOverrides(request, timeout=CALL_S)
        )

    async def _schedules(self) -> Content:
        request = schedule_service_pb2.ListSchedulesRequest()
        return await self._all(lambda stubs: stubs.schedules.ListSchedules, request)

    async def _provider_keys(self) -> Content:
        request = model_service_pb2.ListProviderKeysRequest()
        return await self._one(lambda stubs: stubs.models.ListProviderKeys(request, timeout=CALL_S))

    async def _devices(self) -> Content:
        """Return the devices by their names: endpoints and keys are never returned."""
        request = push_service_pb2.ListPushSubscriptionsRequest()
        return await self._one(
            lambda stubs: stubs.push.ListPushSubscriptions(request, timeout=CALL_S)
        )

    async def _shared(self) -> Content:
        request = chat_service_pb2.ListChatsRequest(query="source:shared_with_me")
        return [
            {"id": chat.id, "owner_id": chat.owner_id, "title": chat.title}
            async for page in self._pages(_list_chats, request)
            for chat in page.chats
        ]

    async def _uploads(self) -> AsyncIterator[File]:
        async for page in self._pages(_list_files, file_service_pb2.ListFilesRequest()):
            for file in page.files:
                name = f"files/{file.id}/{_safe(file)}"
                if name not in self._known:
                    try:
                        yield File(name, await self._bytes(file.id))
                    except UpstreamProblem as error:
                        self._note(name, error)

    async def _bytes(self, file_id: str) -> bytes:
        request = file_service_pb2.DownloadFileRequest(file_id=file_id)

        async def read(stubs: Stubs) -> bytes:
            pieces = stubs.files.DownloadFile(request, timeout=STREAM_S)
            return b"".join([piece.chunk.data async for piece in pieces])

        return await self._chatd.ask_any(self._user, read)

    async def _workspaces(self) -> AsyncIterator[File]:
        """Yield the files of all workspaces; a node that does not answer is noted."""
        collected = WorkspaceFiles(self._user, self._chatd, self._known)
        asked = workspace_service_pb2.ListWorkspacesRequest()
        async for page in self._pages(lambda stubs: stubs.catalogue.ListWorkspaces, asked):
            for workspace in page.workspaces:
                try:
                    async for file in collected.of(workspace.workspace_id):
                        if isinstance(file, LeftOut):
                            self._problems.add(file.name, file.code)
                        else:
                            yield file
                except UpstreamProblem as error:
                    name = f"workspaces/{workspace.workspace_id}"
                    if error.problem.reason in NODE_AWAY:
                        self._problems.add(name, error.problem.reason)
                    else:
                        self._note(name, error)

    async def _chat_ids(self) -> AsyncIterator[str]:
        """Yield all chats of the user, children behind their root."""
        for query in ("source:created_by_me", "source:created_by_me archived:true"):
            request = chat_service_pb2.ListChatsRequest(query=query)
            async for page in self._pages(_list_chats, request):
                for root in page.chats:
                    yield root.id
                    for child_id in await self._children(root.id):
                        yield child_id

    async def _children(self, root_chat_id: str) -> list[str]:
        asked = chat_service_pb2.GetChatRequest(chat_id=root_chat_id)
        try:
            answer, _ = await self._chatd.ask(
                self._user, root_chat_id, lambda stubs: stubs.chats.GetChat(asked, timeout=CALL_S)
            )
        except UpstreamProblem as error:
            self._note(f"chats/{root_chat_id}", error)
            return []
        return [child.id for child in answer.chat.children]

    async def _chat(self, chat_id: str) -> AsyncIterator[File]:
        """Yield the messages of a chat in parts, and last the chat, as a mark that all is there."""
        last = f"chats/{chat_id}/chat.json"
        if last in self._known:
            return
        try:
            async for file in self._chat_files(chat_id, last):
                yield file
        except UpstreamProblem as error:
            self._note(last, error)

    async def _chat_files(self, chat_id: str, last: str) -> AsyncIterator[File]:
        asked = chat_service_pb2.ExportChatRequest(chat_id=chat_id)
        stream, _ = await self._chatd.ask(
            self._user,
            chat_id,
            lambda stubs: _begun(stubs.chats.ExportChat(asked, timeout=STREAM_S)),
        )
        chat, call = stream
        part, parts, count = bytearray(), 0, 0
        async for message in _messages(call):
            count += 1
            part += msgspec.json.encode(to_json(message)) + b"\n"
            if len(part) >= PART_BYTES:
                parts += 1
                yield File(f"chats/{chat_id}/messages-{parts:05}.jsonl", bytes(part))
                part.clear()
        if part:
            parts += 1
            yield File(f"chats/{chat_id}/messages-{parts:05}.jsonl", bytes(part))
        shares: Content = []
        of_root: dict[str, Content] = {}
        if chat.root_chat_id == chat.id:
            of_root["goal"] = await goal_of(self._ask, chat_id)
            of_root["monitors"] = await monitors_of(self._ask, chat_id)
            wanted = chat_service_pb2.GetSharesRequest(chat_id=chat_id)
            answer, _ = await self._chatd.ask(
                self._user, chat_id, lambda stubs: stubs.chats.GetShares(wanted, timeout=CALL_S)
            )
            shares = to_json(answer)["shares"]
        document = {"chat": to_json(chat), "message_count": count, "parts": parts, "shares": shares}
        yield _document(last, {**document, **of_root})

    def _note(self, name: str, error: UpstreamProblem) -> None:
        """Note what cannot be exported; raise an error that another attempt may not get."""
        if error.problem.status not in LASTING:
            raise error
        self._problems.add(name, error.problem.reason)


async def _begun(call: Any) -> tuple[Any, Any]:
    first = await call.read()
    if first is grpc.aio.EOF:
        raise _cut_off()
    return first.chat, call


async def _messages(call: Any) -> AsyncIterator[Any]:
    """Yield the messages of an export that has begun.

    Raises:
        UpstreamProblem: It ended early.
    """
    try:
        while (piece := await call.read()) is not grpc.aio.EOF:
            match piece.WhichOneof("piece"):
                case "message":
                    yield piece.message
                case "complete":
                    return
    except grpc.aio.AioRpcError as error:
        raise UpstreamProblem(problem_of(error)) from error
    finally:
        call.cancel()
    raise _cut_off()


def _cut_off() -> UpstreamProblem:
    return UpstreamProblem(Problem.of("UPSTREAM_UNAVAILABLE", "an export of a chat ended early"))


def _list_chats(stubs: Stubs) -> Any:
    return stubs.chats.ListChats


def _list_files(stubs: Stubs) -> Any:
    return stubs.files.ListFiles


def problems_file(problems: ExportProblems) -> File:
    """Return the last file of an export, which lists what it has not."""
    return _document(PROBLEMS, problems.document())


def _document(name: str, document: Content) -> File:
    return File(name, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def _safe(file: file_pb2.File) -> str:
    """Return the name of a file without anything that leaves its directory."""
    name = "".join(each if each.isprintable() and each not in UNSAFE else "_" for each in file.name)
    return name.strip(". ") or "file"


def _profile(user: UserRecord) -> Content:
    return {
        "id": user.id,
        "login": user.login,
        "display_name": user.display_name,
        "email": user.email,
        "role": user.role,
        "state": user.state,
        "kind": user.kind,
        "created_at": user.created_at,
        "updated_at": user.updated_at,
    }
