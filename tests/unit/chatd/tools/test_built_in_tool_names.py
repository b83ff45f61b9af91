"""The names that tools of clients cannot have are those of our own tools."""

from chatd.content.domain.tools import BUILT_IN_TOOL_NAMES, FIND_TOOLS
from chatd.tools import lifecycle
from chatd.tools.advisor.tool import AdvisorTools
from chatd.tools.agents.tools import AgentTools
from chatd.tools.monitors import MonitorTools
from chatd.tools.skills import SkillTools
from chatd.tools.todos import TodoTools
from chatd.tools.workspace import toolset


def test_they_are_the_names_of_all_tools_that_we_offer() -> None:
    assert {
        *toolset.TOOLS,
        *lifecycle.TOOLS,
        *AdvisorTools.names,
        *AgentTools.names,
        *MonitorTools.names,
        *TodoTools.names,
        *SkillTools.names,
        FIND_TOOLS,
    } == BUILT_IN_TOOL_NAMES
