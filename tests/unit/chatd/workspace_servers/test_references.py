"""Resources and prompts of workspace servers, which say what they want."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.workspace_servers.domain.definition import Definitions, ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.references import (
    ARGUMENTS_MAX,
    CONTENT_JSON_BYTES_MAX,
    ENTRIES_MAX,
    LISTING_CHARACTERS_MAX,
    PROMPT_BYTES_MAX,
    FilledPrompt,
    Listing,
    PromptArgument,
    PromptEntry,
    ResourceEntry,
    filled_prompt,
    listed_prompts,
    listed_resources,
    resource_contents,
)
from chatd.workspace_servers.domain.state import ServerFailed, WorkspaceServerNotFound
from chatd.workspace_servers.engine.references import ServerReferences
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.sessions import ServerSessions
from chatd.workspace_servers.rpc.servicer import ServerPorts, WorkspaceServerServicer
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import workspace_server_service_pb2 as api
from parley.identity import Caller, Role, ServiceName, User, UserId
from parley.rpc import Address, Channels
from parley.rpc.call import SERVED_CALL, ServedCall
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.in_memory_trust import InMemoryTrustedServers
from support.chatd.workspace_servers.scripted_server import Answers, EachScripted
from support.chatd.workspaces.fixed_locator import FixedLocator
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision
from support.host.virtual_time import LoopClock, in_virtual_time

PLACE = ServerPlace(CHAT, ANN, WorkspaceLocation("node:1", CHAT), is_read_only=False)
CALLER = Caller(
    service=ServiceName.GATEWAY,
    user=User(UserId(ANN.id), Role.MEMBER),
    scopes=frozenset(),
    token_id=None,
    name="gateway",
)
OFFERS: dict[str, dict[str, Any]] = {
    "initialize": {"capabilities": {"resources": {}, "prompts": {}}},
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": [{"name": "greet"}]},
    "prompts/get": {"messages": [{"content": {"type": "text", "text": "Hello."}}]},
    "resources/read": {"contents": [{"uri": "memo://a", "text": "A"}]},
}


class OneDefinition:
    """Every workspace defines the same server."""

    async def read(self, place: ServerPlace) -> Definitions:
        return Definitions((ServerDefinition("plain", "run", digest="digest"),))


def offers(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message["method"], message.get("params", {})
    if method == "resources/list":
        page = int(params.get("cursor", "0"))
        listed = {"resources": [{"uri": f"memo://{page}"}]}
        return listed if page == 2 else {**listed, "nextCursor": str(page + 1)}
    return OFFERS.get(method)


def reads(text: str) -> Answers:
    """Return the answers of a server with one resource."""
    contents = {"contents": [{"uri": "memo://a", "text": text}]}
    return lambda message: {**OFFERS, "resources/read": contents}.get(message["method"])


def servicer(servers: WorkspaceServers) -> WorkspaceServerServicer:
    async def require_owner(chat_id: ChatId, owner_id: OwnerId) -> None:
        assert (chat_id, owner_id) == (CHAT, ANN.id)

    async def is_shared(chat_id: ChatId) -> bool:
        return False

    async def facts_of(chat_id: ChatId) -> ChatFacts:
        return ChatFacts(ModelChoice(), ChatMode.ORDINARY)

    node = Channels((Address.parse("unix:/nowhere"),), lambda _: pytest.fail("asks a node"))
    return WorkspaceServerServicer(
        ServerPorts(require_owner, is_shared, FixedLocator(node), servers, facts_of)
    )


@asynccontextmanager
async def trusted_servers(
    processes: EachScripted, *trusted: str
) -> AsyncIterator[WorkspaceServers]:
    clock, store = LoopClock(), InMemoryTrustedServers()
    for name in trusted:
        await store.trust(PLACE.location.workspace_id, name, "digest", ANN.id)
    async with BackgroundTasks(supervision(clock)) as tasks:
        sessions = ServerSessions(processes, tasks, clock, CountingReducer())
        try:
            published: list[str] = []
            yield WorkspaceServers(OneDefinition(), store, sessions, clock, published.append)
        finally:
            sessions.close()


@asynccontextmanager
async def references(processes: EachScripted, *trusted: str) -> AsyncIterator[ServerReferences]:
    async with trusted_servers(processes, *trusted) as servers:
        yield ServerReferences(servers)


@in_virtual_time
async def test_a_trusted_server_is_asked_for_all_pages() -> None:
    async with references(EachScripted(offers), "plain") as found:
        resources = await found.resources(PLACE, "plain")
        prompts = await found.prompts(PLACE, "plain")
        read = await found.read(PLACE, "plain", "memo://a")
        filled = await found.prompt(PLACE, "plain", "greet", {})
    assert [each.uri for each in resources] == ["memo://0", "memo://1", "memo://2"]
    assert [each.name for each in prompts] == ["greet"]
    assert read == [{"type": "resource", "uri": "memo://a", "media_type": "", "text": "A"}]
    assert filled == FilledPrompt("", "Hello.")


@in_virtual_time
async def test_a_server_without_such_offers_is_not_asked() -> None:
    processes = EachScripted()
    async with references(processes, "plain") as found:
        assert await found.resources(PLACE, "plain") == ()
        assert await found.prompts(PLACE, "plain") == ()
    assert not any(server.requests("resources/list") for server in processes.started)


@in_virtual_time
async def test_a_server_that_is_not_trusted_is_not_started() -> None:
    processes = EachScripted(offers)
    async with references(processes) as found:
        with pytest.raises(ServerFailed, match="not trusted"):
            await found.prompts(PLACE, "plain")
        with pytest.raises(WorkspaceServerNotFound):
            await found.prompts(PLACE, "other")
    assert processes.started == []


@in_virtual_time
async def test_a_server_that_does_not_answer_has_failed() -> None:
    silent = EachScripted(lambda message: None if "read" in message["method"] else offers(message))
    async with references(silent, "plain") as found:
        with pytest.raises(ServerFailed, match="did not answer in time"):
            await found.read(PLACE, "plain", "memo://a")


def test_entries_that_are_not_well_formed_are_left_out() -> None:
    resources = [
        {"uri": "memo://a", "name": "a\u202e", "mimeType": "text/plain", "title": 1},
        {"uri": ""},
        {"uri": "memo://\n"},
        {"name": "without"},
        "none",
    ]
    prompts = [
        {"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": 1}, 2]},
        {"name": "x" * 129},
        None,
    ]
    assert listed_resources(resources, Listing()).entries == (
        ResourceEntry("memo://a", "a", "", "", "text/plain"),
    )
    assert listed_prompts(prompts, Listing()).entries == (
        PromptEntry("greet", "", "", (PromptArgument("who", "", True),)),
    )


def test_a_listing_ends_with_the_entry_that_reaches_the_bound_of_characters() -> None:
    arguments = [{"name": f"a{n}", "description": "x" * 3000} for n in range(ARGUMENTS_MAX)]
    prompts = [{"name": f"p{n}", "arguments": arguments} for n in range(20)]
    first = listed_prompts(prompts[:2], Listing())
    assert not first.is_full
    whole = listed_prompts(prompts[2:], first)
    of_one = whole.characters // len(whole.entries)
    assert whole.is_full
    assert whole.characters - of_one < LISTING_CHARACTERS_MAX <= whole.characters
    assert [each.name for each in whole.entries] == [f"p{n}" for n in range(len(whole.entries))]
    assert listed_prompts(prompts, whole) == whole


def test_characters_and_entries_that_are_left_out_count_for_the_bounds_of_a_listing() -> None:
    invisible = [{"uri": "memo://a", "title": "\u200b" * 3000} for _ in range(ENTRIES_MAX)]
    found = listed_resources(invisible, Listing())
    assert found.is_full
    assert len(found.entries) < ENTRIES_MAX
    late = listed_resources([*["none"] * ENTRIES_MAX, {"uri": "memo://a"}], Listing())
    assert late == Listing()


@in_virtual_time
async def test_a_server_is_asked_for_no_page_after_the_bound_of_characters() -> None:
    entries = [{"uri": f"memo://{n}", "title": "x" * 2000} for n in range(100)]

    def answered(message: dict[str, Any]) -> dict[str, Any] | None:
        if message["method"] != "resources/list":
            return OFFERS.get(message["method"])
        return {"resources": entries, "nextCursor": "more"}

    processes = EachScripted(answered)
    async with references(processes, "plain") as found:
        resources = await found.resources(PLACE, "plain")
    assert 200 < len(resources) < 300
    assert [server.requests("resources/list") for server in processes.started] == [3]


def test_contents_are_text_or_data_that_can_be_read() -> None:
    contents = [
        {"uri": "memo://a", "text": "A\0"},
        {"uri": "memo://b", "blob": "AAE=", "mimeType": "image/png"},
        {"uri": "memo://c", "blob": "not base64"},
        "none",
    ]
    assert resource_contents({"contents": contents}) == [
        {"type": "resource", "uri": "memo://a", "media_type": "", "text": "A"},
        {"type": "resource", "uri": "memo://b", "media_type": "image/png", "data": "AAE="},
        {
            "type": "resource",
            "uri": "memo://c",
            "media_type": "",
            "text": "[data that is not valid base64 was left out]",
        },
    ]
    assert resource_contents({}) == []


def test_a_prompt_is_one_text_without_what_people_do_not_see() -> None:
    messages = [
        {"content": {"type": "text", "text": "one\u200b"}},
        {"content": {"type": "image", "data": "AA=="}},
        {"content": {"type": "resource", "resource": {"text": "two"}}},
        {"content": "three"},
    ]
    filled = filled_prompt({"messages": messages, "description": "What"})
    assert filled == FilledPrompt("What", "one\n\n[image was left out]\n\ntwo\n\n")
    long = filled_prompt({"messages": [{"content": {"type": "text", "text": "x" * 70_000}}]})
    assert len(long.text.encode()) == PROMPT_BYTES_MAX
    assert long.text.endswith(" [cut]")


def test_a_prompt_is_cut_before_it_is_cleaned() -> None:
    text = "\u200b" * PROMPT_BYTES_MAX + "behind"
    filled = filled_prompt({"messages": [{"content": {"type": "text", "text": text}}]})
    assert filled.text == " [cut]"


@in_virtual_time
async def test_a_resource_that_no_answer_can_hold_is_refused() -> None:
    # Each character has six in JSON.
    fitting, large = ("\1" * (CONTENT_JSON_BYTES_MAX // 6 - less) for less in (100, 0))
    request = api.ReadWorkspaceServerResourceRequest(chat_id=CHAT, name="plain", uri="memo://a")
    SERVED_CALL.set(ServedCall(CALLER, 0.0, "WorkspaceServerService/ReadWorkspaceServerResource"))
    async with trusted_servers(EachScripted(reads(fitting)), "plain") as servers:
        answer = await servicer(servers).ReadWorkspaceServerResource(request, cast(Any, None))
    assert json.loads(answer.content_json)[0]["text"] == fitting
    async with trusted_servers(EachScripted(reads(large)), "plain") as servers:
        with pytest.raises(InvalidRequest) as refused:
            await servicer(servers).ReadWorkspaceServerResource(request, cast(Any, None))
    assert refused.value.field == "uri"
    assert "the resource is larger than 3 MiB; refer to a smaller one" in refused.value.problem
