"""Resources and prompts of workspace servers, which say what they want."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chatd.workspace_servers.domain.definition import Definitions, ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.references import (
    PROMPT_BYTES_MAX,
    FilledPrompt,
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
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.in_memory_trust import InMemoryTrustedServers
from support.chatd.workspace_servers.scripted_server import EachScripted
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision
from support.host.virtual_time import LoopClock, in_virtual_time

PLACE = ServerPlace(CHAT, ANN, WorkspaceLocation("node:1", "workspace"), is_read_only=False)
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


@asynccontextmanager
async def references(processes: EachScripted, *trusted: str) -> AsyncIterator[ServerReferences]:
    clock, store = LoopClock(), InMemoryTrustedServers()
    for name in trusted:
        await store.trust("workspace", name, "digest", ANN.id)
    async with BackgroundTasks(supervision(clock)) as tasks:
        sessions = ServerSessions(processes, tasks, clock, CountingReducer())
        try:
            published: list[str] = []
            servers = WorkspaceServers(OneDefinition(), store, sessions, clock, published.append)
            yield ServerReferences(servers)
        finally:
            sessions.close()


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
    assert listed_resources(resources) == (ResourceEntry("memo://a", "a", "", "", "text/plain"),)
    assert listed_prompts(prompts) == (
        PromptEntry("greet", "", "", (PromptArgument("who", "", True),)),
    )


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
