"""Calls of the tools of a workspace, as the engine would make them."""

import json
from dataclasses import dataclass, field
from typing import Any

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall, ToolOutcome
from chatd.content.domain.tools import Dispatch, Execution, Executor
from chatd.content.domain.truncation import BUDGET_BYTES_UNKNOWN
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.toolrunner import WorkspaceTools
from parley.clock import Clock
from parley.rpc import Channels
from support.chatd.workspaces.fixed_locator import FixedLocator
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


@dataclass(slots=True)
class Calls:
    """Makes calls in one chat, each with an execution id of its own unless it is repeated."""

    tools: WorkspaceTools
    attachment_store: InMemoryAttachmentStore = field(default_factory=InMemoryAttachmentStore)
    made: int = 0
    mode: ChatMode = ChatMode.ORDINARY
    chat_id: ChatId = CHAT

    @classmethod
    def through(cls, channels: Channels, clock: Clock, epoch: int = 0) -> "Calls":
        attachment_store = InMemoryAttachmentStore()
        return cls(
            WorkspaceTools(channels, clock, attachment_store, FixedLocator(channels, epoch)),
            attachment_store,
        )

    async def execution(
        self, name: str, args_json: str, budget_bytes: int = BUDGET_BYTES_UNKNOWN
    ) -> Execution:
        """Return a new call as it is dispatched."""
        context = TurnContext(self.chat_id, ANN)
        specs = {spec.name: spec for spec in await self.tools.list_tools(context)}
        self.made += 1
        of_chat = "" if self.chat_id == CHAT else f"-of-{self.chat_id}"
        return Execution(
            context,
            1,
            Dispatch(
                ExecutionId(f"execution-{self.made}{of_chat}"),
                ToolCall(f"call-{self.made}", name, args_json),
                Executor.TOOLRUNNER,
                specs[name].journal_generation,
                self.mode,
            ),
            specs[name],
            budget_bytes,
        )

    async def call(self, name: str, **arguments: Any) -> tuple[ToolOutcome, dict[str, Any]]:
        """Call a tool and return what came of it."""
        return await self.carried_out(await self.execution(name, json.dumps(arguments)))

    async def carried_out(self, execution: Execution) -> tuple[ToolOutcome, dict[str, Any]]:
        """Carry out a call that was dispatched."""
        outcome = await self.tools.execute(execution)
        return outcome.outcome, json.loads(outcome.result_json)
