"""The names that tools of clients cannot have are those of our own tools."""

from chatd.content.domain.tools import BUILT_IN_TOOL_NAMES
from chatd.tools import lifecycle
from chatd.tools.advisor.tool import AdvisorTools
from chatd.tools.workspace import toolset


def test_they_are_the_names_of_all_tools_that_we_offer() -> None:
    assert {*toolset.TOOLS, *lifecycle.TOOLS, *AdvisorTools.names} == BUILT_IN_TOOL_NAMES
