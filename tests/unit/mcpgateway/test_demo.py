"""What the demo's server answers beyond its tools."""

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS

from mcpgateway.demo import time_server


async def test_a_prompt_that_it_does_not_have_is_refused_by_name() -> None:
    async with Client(time_server()) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("x", {})
        tools = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
    assert (refused.value.code, refused.value.message) == (INVALID_PARAMS, "Unknown prompt: x")
    assert ([tool.name for tool in tools], prompts) == (["get_current_time", "convert_time"], [])
