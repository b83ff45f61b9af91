"""The search for tools: which ones are not offered at once, how they are found and activated.

Many definitions cost tokens in every request, so tools of MCP servers are then offered only after
the model has searched for them. Which ones are active follows from the history alone: results of
searches, and calls. So a new owner of the chat knows it too, and a summary forgets it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chatd.chats.domain.chat import Message
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.tool_servers import ServerReport
from chatd.content.domain.tools import FIND_TOOLS, Executor, ToolSpec

INLINE_TOOLS_MAX = 30
#: Of the context window, for definitions that are offered at once and for those that were found.
SHARE_OF_CONTEXT = 10
CONTEXT_TOKENS_UNKNOWN = 64_000
CHARACTERS_PER_TOKEN = 2.5
MATCHES_MAX = 20
QUERIES_MAX = 10
NAMES_MAX = 40
CATALOGUE_CHARACTERS_MAX = 10_000

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

DESCRIPTION = """\
Find tools of MCP servers that are not offered yet. Give words that describe what a tool should \
do, each query on its own, or exact names; "server: words" searches one server. The result has the \
definitions, and from the next step on the tools can be called by their names.

The servers and how many tools each has:
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": QUERIES_MAX,
            "description": "What tools should do, in a few words each.",
        },
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": NAMES_MAX,
            "description": "Exact names of tools.",
        },
    },
}


@dataclass(frozen=True, slots=True)
class ToolSearchIndex:
    """The tools of a turn that the model has to search for.

    Attributes:
        deferred: These tools, by name.
        budget_tokens: How many tokens the definitions of found tools may have together.
    """

    deferred: Mapping[str, ToolSpec] = field(default_factory=dict)
    budget_tokens: int = 0

    def offered(
        self, tools: Sequence[ToolSpec], history: Sequence[Message]
    ) -> tuple[ToolSpec, ...]:
        """Return the tools of the next request: all others, the search, and those found so far."""
        if not self.deferred:
            return tuple(tools)
        inline = [spec for spec in tools if spec.name not in self.deferred]
        return (*inline, self.spec(), *self._active(history))

    def spec(self) -> ToolSpec:
        """Return the tool that searches."""
        return ToolSpec(
            FIND_TOOLS, DESCRIPTION + self._catalogue(), json.dumps(SCHEMA), Executor.CHATD
        )

    def _catalogue(self) -> str:
        servers: dict[str, list[str]] = {}
        for name in sorted(self.deferred):
            slug, _, tool = name.partition("__")
            servers.setdefault(slug, []).append(tool)
        named = "\n".join(f"{slug}: {', '.join(names)}" for slug, names in servers.items())
        if len(named) <= CATALOGUE_CHARACTERS_MAX:
            return named
        counted = "\n".join(f"{slug}: {len(names)} tools" for slug, names in servers.items())
        return counted[:CATALOGUE_CHARACTERS_MAX]

    def _active(self, history: Sequence[Message]) -> list[ToolSpec]:
        """Return the found tools, the newest within the budget, in the order of their finding."""
        found = list(dict.fromkeys(reversed([*_mentioned(history)])))
        kept: list[ToolSpec] = []
        room = self.budget_tokens
        for name in found:
            spec = self.deferred.get(name)
            if spec is None:
                continue
            room -= tokens_of(spec)
            if room < 0 and kept:
                break
            kept.append(spec)
        return kept[::-1]


def index_of(
    tools: Iterable[ToolSpec], reports: Sequence[ServerReport], context_limit_tokens: int
) -> ToolSearchIndex:
    """Return which tools of MCP servers, also of those in workspaces, have to be searched for."""
    searched = {report.server_id: report.is_searched for report in reports}
    of_servers = [spec for spec in tools if spec.server_id]
    budget_tokens = (context_limit_tokens or CONTEXT_TOKENS_UNKNOWN) // SHARE_OF_CONTEXT
    automatic = [spec for spec in of_servers if searched.get(spec.server_id) is None]
    is_large = len(automatic) > INLINE_TOOLS_MAX or sum(map(tokens_of, automatic)) > budget_tokens
    deferred = {
        spec.name: spec
        for spec in of_servers
        if searched.get(spec.server_id) or (is_large and searched.get(spec.server_id) is None)
    }
    return ToolSearchIndex(deferred, budget_tokens)


def matches(
    tools: Iterable[ToolSpec], queries: Sequence[str], names: Sequence[str]
) -> tuple[ToolSpec, ...]:
    """Return the tools that are named, then those that match a query, best first."""
    by_name = {spec.name: spec for spec in tools}
    found = [by_name[name] for name in names[:NAMES_MAX] if name in by_name]
    ranked: list[tuple[float, str]] = []
    for query in queries[:QUERIES_MAX]:
        slug, colon, rest = query.partition(":")
        scope = f"{slug.strip().lower()}__"
        is_scoped = bool(colon) and any(name.startswith(scope) for name in by_name)
        words = _words(rest if is_scoped else query)
        for name, spec in by_name.items():
            if is_scoped and not name.startswith(scope):
                continue
            score = _score(spec, words)
            if score > 0:
                ranked.append((-score, name))
    best = [by_name[name] for _, name in sorted(ranked)]
    return tuple(dict.fromkeys((*found, *best)))[:MATCHES_MAX]


def tokens_of(spec: ToolSpec) -> int:
    """Estimate how many tokens a definition has."""
    characters = len(spec.name) + len(spec.description) + len(spec.input_schema_json)
    return round(characters / CHARACTERS_PER_TOKEN)


def _score(spec: ToolSpec, words: frozenset[str]) -> float:
    name_words = _words(spec.original_name or spec.name)
    name, description = spec.name.lower(), _words(spec.description)
    parameters = _words(spec.input_schema_json)
    score = 0.0
    for word in words:
        if word in name_words:
            score += 8
        elif word in name:
            score += 5
        score += 2 * (word in description) + (word in parameters)
    return score


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _mentioned(history: Sequence[Message]) -> Iterable[str]:
    """Yield the names of tools that were found or called, in the order of the history."""
    for message in history:
        for part in message.content:
            if not isinstance(part, ToolResult):
                continue
            if part.tool_name != FIND_TOOLS:
                yield part.tool_name
            elif part.outcome is ToolOutcome.DONE:
                yield from _found_names(part.result_json)


def _found_names(result_json: str) -> Iterable[str]:
    try:
        told = json.loads(result_json)
        return [str(tool["name"]) for tool in reversed(told["tools"])]
    except (ValueError, KeyError, TypeError):
        return ()
