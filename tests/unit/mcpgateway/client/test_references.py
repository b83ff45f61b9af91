"""What a server answers to who reads its prompts and resources."""

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from mcpgateway.client.failures import is_answer
from mcpgateway.client.references import get_prompt, read_resource
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress.transport import EXCHANGE, Exchange


async def test_an_error_answer_is_a_refusal_in_the_words_of_the_server() -> None:
    """The SDK's servers answer an internal error for a prompt that they do not have."""
    EXCHANGE.set(Exchange(is_sent=True, status=200))
    async with Client(MCPServer("empty"), raise_exceptions=False) as client:
        with pytest.raises(UpstreamFailed) as prompt:
            await get_prompt(client, "x", {})
        with pytest.raises(UpstreamFailed) as resource:
            await read_resource(client, "memo://x")
    assert prompt.value.reason is resource.value.reason is Reason.REQUEST_REFUSED
    assert str(prompt.value) == "the server refuses: Internal server error"
    assert "memo://x" in str(resource.value)


@pytest.mark.parametrize(
    ("code", "exchange"),
    [
        (CONNECTION_CLOSED, Exchange(is_sent=True, status=200)),
        (INTERNAL_ERROR, Exchange(is_sent=True, status=502)),
        (INTERNAL_ERROR, Exchange(is_sent=True, error=ConnectionError())),
        (INTERNAL_ERROR, None),
    ],
)
def test_what_the_connection_failed_with_is_no_answer(code: int, exchange: Exchange | None) -> None:
    assert not is_answer(code, exchange)
