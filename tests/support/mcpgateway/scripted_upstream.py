"""MCP servers with scripted responses, which record the requests."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcpgateway.client.call import OnProgress, Progress
from mcpgateway.client.content import ToolAnswer
from mcpgateway.client.questions import Answer, Ask, Question
from mcpgateway.servers.domain import Catalogue, ServerId, Target
from mcpgateway.servers.errors import UpstreamFailed


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """The script of one call: progress first, then, when released, the answer or the failure."""

    answer: ToolAnswer | UpstreamFailed
    progress: Sequence[Progress] = ()
    released: asyncio.Event | None = None
    questions: Sequence[Question] = ()


@dataclass(slots=True)
class ScriptedUpstream:
    """Servers with scripted responses that record the requests.

    Attributes:
        catalogues: The catalogue or failure of each server; an event that nobody sets makes it
            silent.
        calls: The scripts of the next calls, in order; a further call is an error of the test.
        called: The tools called so far, with their arguments.
        cancelled: The tools whose calls were cancelled.
        answers: What was answered to calls that asked.
        listed: The servers that were asked for their tools.
    """

    catalogues: Mapping[ServerId, Catalogue | UpstreamFailed | asyncio.Event] = field(
        default_factory=dict
    )
    calls: list[ScriptedCall] = field(default_factory=list)
    called: list[tuple[str, bytes]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    listed: list[ServerId] = field(default_factory=list)

    async def list_tools(self, target: Target) -> Catalogue:
        """Return the scripted catalogue of the server."""
        self.listed.append(target.server.id)
        match self.catalogues[target.server.id]:
            case Catalogue() as catalogue:
                return catalogue
            case asyncio.Event() as never:
                await never.wait()
                raise AssertionError("nobody sets it")
            case failure:
                raise failure

    async def call_tool(
        self, target: Target, tool: str, arguments_json: bytes, on_progress: OnProgress, ask: Ask
    ) -> ToolAnswer:
        """Play the next scripted call."""
        self.called.append((tool, arguments_json))
        call = self.calls.pop(0)
        for progress in call.progress:
            on_progress(progress)
        for question in call.questions:
            self.answers.append(await ask(question))
        if call.released is not None:
            try:
                await call.released.wait()
            except asyncio.CancelledError:
                self.cancelled.append(tool)
                raise
        if isinstance(call.answer, UpstreamFailed):
            raise call.answer
        return call.answer
