"""Offers the lifecycle tools to root chats and executes their calls."""

from collections.abc import Mapping
from typing import Final

from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import Execution, Found, Outcome, StillRunning, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError, InvalidRequest
from chatd.tools.lifecycle.control import Control, LifecycleTool
from chatd.tools.lifecycle.templates import FINDING
from chatd.tools.lifecycle.workspaces import LIVING
from chatd.tools.workspace.arguments import BadArguments, read
from chatd.tools.workspace.not_ready import not_ready
from chatd.tools.workspace.results import failed, misused
from chatd.workspaces.domain.errors import TemplateNotFound

TOOLS: Final[Mapping[str, LifecycleTool]] = {tool.name: tool for tool in (*FINDING, *LIVING)}
_SPECS: Final = tuple(tool.spec for tool in TOOLS.values())
#: A plan may need a workspace to look at. Stopping one would end what people run there.
_OFFERED: Final = {
    ChatMode.ORDINARY: _SPECS,
    ChatMode.PLAN: tuple(spec for spec in _SPECS if spec.name != "stop_workspace"),
    ChatMode.EXPLORE: (),
}


class LifecycleTools:
    """Offers the lifecycle tools to root chats; a child uses the workspace of its root.

    Args:
        control: Executes the operations.
    """

    names = frozenset(TOOLS)

    def __init__(self, control: Control) -> None:
        self._control = control

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools that the mode allows; a child gets none."""
        return () if context.is_child else _OFFERED[context.mode]

    async def execute(self, execution: Execution) -> Outcome:
        """Execute a call; invalid arguments are returned as its result."""
        tool = TOOLS.get(execution.dispatch.call.tool_name)
        if tool is None:
            hint = "Call a tool that is offered now."
            return failed("There is no such tool any more.", "NO_SUCH_TOOL", hint)
        try:
            given = read(tool.takes, execution.dispatch.call.args_json)
            return await tool.run(self._control, execution, given)
        except BadArguments as error:
            return misused(error)
        except InvalidRequest as error:
            hint = "Nothing was changed: correct it as read_template says, and call again."
            return failed(str(error), "INVALID_ARGUMENTS", hint)
        except TemplateNotFound:
            hint = "Call list_templates and use an id from there."
            return failed("There is no such template.", "TEMPLATE_NOT_FOUND", hint)
        except FenceLost:
            raise  # The result would be refused as well: the new owner makes the call.
        except ChatError as error:
            return not_ready(error)

    async def find(self, execution: Execution) -> Found:
        """Return that the call may be running: repeating it finds what it created."""
        return StillRunning()

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: a workspace that was started can be stopped separately."""
