"""An MCP server with many tools, as a team has them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.mcpgateway.everything_server import everything, served

TOOLS = 25
DEEDS = ("create_issue", "close_issue", "list_meetings", "book_room", "send_report")


@asynccontextmanager
async def team_server(port: int) -> AsyncIterator[str]:
    """Serve twenty-five tools."""
    made = everything(f"http://127.0.0.1:{port}/mcp")
    for tool in ("echo", "whoami", "picture", "long_text", "grow"):
        made.server.remove_tool(tool)
    for number in range(TOOLS):
        deed, part = DEEDS[number % len(DEEDS)], number // len(DEEDS) + 5
        words = deed.replace("_", " ")
        made.server.add_tool(
            lambda title: title,
            name=f"{deed}_{part}",
            description=f"{words.capitalize()} of project {part}. " + "It is documented well. " * 9,
        )
    async with served(made.server.streamable_http_app(), port):
        yield made.url
