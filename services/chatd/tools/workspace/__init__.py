"""The workspace tools: their arguments, execution and results."""

from chatd.tools.workspace.call import AttachmentStore, Call, key_of
from chatd.tools.workspace.results import failed, refused
from chatd.tools.workspace.toolset import TOOLS, Tool, offered

__all__ = [
    "TOOLS",
    "AttachmentStore",
    "Call",
    "Tool",
    "failed",
    "key_of",
    "offered",
    "refused",
]
