"""Servers, tools and orders for tests; what a test does not care about is filled in."""

import random  # noqa: TID251 (a source of ids for tests)
from datetime import UTC, datetime
from typing import Any

from mcpgateway.client.call import CallKey, CallRequest
from mcpgateway.client.tool_names import definition_digest
from mcpgateway.servers.domain import (
    Catalogue,
    Server,
    ServerId,
    ServerSettings,
    Target,
    Tool,
    ToolHints,
)
from parley.clock import FakeClock
from parley.ids import TimeOrderedIds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVER_ID = ServerId("01900000-0000-7000-8000-000000000001")


#: Returns a new id at each call.
new_id = TimeOrderedIds(FakeClock(NOW), random.Random(1))


def a_server(server_id: str = SERVER_ID, **settings: Any) -> Server:
    """Return an enabled server."""
    given: dict[str, Any] = {
        "slug": "demo",
        "display_name": "Demo",
        "url": "https://mcp.example/mcp",
        "is_enabled": True,
        **settings,
    }
    return Server(ServerId(server_id), 1, ServerSettings(**given), False, (), NOW, NOW)


def a_target(server: Server | None = None, *, user_id: str = "ann") -> Target:
    """Return a server as a user reaches it."""
    return Target(server or a_server(), {}, user_id, "chat-1")


def a_tool(name: str, hints: ToolHints | None = None) -> Tool:
    """Return a tool without arguments."""
    hints = hints or ToolHints()
    schema = b'{"type":"object"}'
    digest = definition_digest(name, "", [schema], hints)
    return Tool(name, "", "", schema, b"", hints, digest)


def a_catalogue(*names: str) -> Catalogue:
    """Return a catalogue of tools without arguments."""
    return Catalogue({name: a_tool(name) for name in names}, 0, "", None)


def an_order(execution_id: str = "call-1", **values: Any) -> CallRequest:
    """Return a call request of chatd for the first owner of a chat."""
    key = CallKey(
        execution_id,
        values.pop("caller", "chatd"),
        values.pop("chat_id", "chat-1"),
        values.pop("owner_epoch", 1),
    )
    given: dict[str, Any] = {
        "server_id": SERVER_ID,
        "user_id": "ann",
        "tool": "echo",
        "arguments_json": b"{}",
        "idle_s": 60.0,
        "limit_s": 600.0,
        **values,
    }
    return CallRequest(key=key, **given)
