"""The workspace tools: their arguments, execution and results."""

from chatd.tools.workspace.call import AttachmentStore, Call, InMemoryAttachmentStore, key_of
from chatd.tools.workspace.results import failed, refused
from chatd.tools.workspace.toolset import TOOLS, Tool

__all__ = [
    "TOOLS",
    "AttachmentStore",
    "Call",
    "InMemoryAttachmentStore",
    "Tool",
    "failed",
    "key_of",
    "refused",
]
