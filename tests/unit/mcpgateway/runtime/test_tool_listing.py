"""What a tool's hints and a server's policies make of it."""

import pytest

from mcpgateway.runtime.tool_listing import OfferedTool
from mcpgateway.servers.domain import ApprovalPolicy, ToolHints
from support.mcpgateway.values import a_server, a_tool

READ_ONLY = ToolHints(read_only=True)
MILD = ToolHints(destructive=False)
SILENT = ToolHints()


@pytest.mark.parametrize(
    ("policy", "is_trusted", "hints", "needs_approval"),
    [
        (ApprovalPolicy.NEVER, False, SILENT, False),
        (ApprovalPolicy.ALWAYS, True, READ_ONLY, True),
        (ApprovalPolicy.DESTRUCTIVE, False, READ_ONLY, True),
        (ApprovalPolicy.DESTRUCTIVE, True, READ_ONLY, False),
        (ApprovalPolicy.DESTRUCTIVE, True, MILD, False),
        (ApprovalPolicy.DESTRUCTIVE, True, SILENT, True),
    ],
)
def test_hints_spare_approval_only_if_the_server_is_trusted(
    policy: ApprovalPolicy, is_trusted: bool, hints: ToolHints, needs_approval: bool
) -> None:
    server = a_server(approval_policy=policy, is_trusted=is_trusted)

    assert OfferedTool("n", server, a_tool("t", hints)).needs_approval is needs_approval


@pytest.mark.parametrize(
    ("is_trusted", "hints", "is_repeatable"),
    [
        (True, READ_ONLY, True),
        (True, ToolHints(idempotent=True), True),
        (True, SILENT, False),
        (False, READ_ONLY, False),
    ],
)
def test_only_a_trusted_servers_harmless_tool_is_repeatable(
    is_trusted: bool, hints: ToolHints, is_repeatable: bool
) -> None:
    offered = OfferedTool("n", a_server(is_trusted=is_trusted), a_tool("t", hints))

    assert offered.is_repeatable is is_repeatable


def test_the_deny_list_wins_over_the_allow_list() -> None:
    settings = a_server(tool_allow_list=("a", "b"), tool_deny_list=("b",)).settings

    assert [settings.allows_tool(tool) for tool in ("a", "b", "c")] == [True, False, False]
