"""What a turn derives from its tools and from what is known of their servers."""

from collections.abc import Mapping
from dataclasses import dataclass

from chatd.content.domain.tool_servers import (
    ServerReport,
    missing_by_slug,
    server_notices,
    servers_text,
)
from chatd.content.domain.tools import FIND_TOOLS, ToolSpec
from chatd.turns.domain.calls import offered_tools
from chatd.turns.domain.tool_search import ToolSearchIndex, index_of


@dataclass(frozen=True, slots=True)
class ToolInputs:
    """What the tools of a turn follow from.

    Attributes:
        local: The tools of executors, and those that ask a person.
        client: The tools that the client executes.
        model_name: The name of the model at its provider.
        reports: What is known of the MCP servers.
        context_limit_tokens: The smallest context window of the models; 0 if unknown.
    """

    local: tuple[ToolSpec, ...]
    client: tuple[ToolSpec, ...]
    model_name: str
    reports: tuple[ServerReport, ...]
    context_limit_tokens: int


@dataclass(frozen=True, slots=True)
class TurnTools:
    """The tools of a turn.

    Attributes:
        offered: All of them, also those that the model has to search for.
        specs: The same by name, with the search, if there is something to search for.
        ending: The names of those after which the turn ends.
        search: Those that the model has to search for.
        servers_text: The block of the system prompt about MCP servers.
        notices: Notices for the user about MCP servers.
        missing: Why servers lack tools, by slug.
    """

    offered: tuple[ToolSpec, ...]
    specs: Mapping[str, ToolSpec]
    ending: frozenset[str]
    search: ToolSearchIndex
    servers_text: str
    notices: tuple[str, ...]
    missing: Mapping[str, str]


def turn_tools(inputs: ToolInputs) -> TurnTools:
    """Return the tools that follow from these inputs; equal inputs give equal tools."""
    reports = inputs.reports
    offered = offered_tools(inputs.local, inputs.client, inputs.model_name)
    search = index_of(offered, reports, inputs.context_limit_tokens)
    specs = {spec.name: spec for spec in offered}
    if search.deferred:
        specs[FIND_TOOLS] = search.spec()
    return TurnTools(
        offered,
        specs,
        frozenset([spec.name for spec in offered if spec.ends_turn]),
        search,
        servers_text(reports),
        server_notices(reports),
        missing_by_slug(reports),
    )
