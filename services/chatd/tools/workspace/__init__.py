"""What a model can do in a workspace: tools, their arguments and their results."""

from chatd.tools.workspace.call import Call, InMemoryShelf, Shelf, key_of
from chatd.tools.workspace.results import failed, refused
from chatd.tools.workspace.toolset import TOOLS, Tool

__all__ = ["TOOLS", "Call", "InMemoryShelf", "Shelf", "Tool", "failed", "key_of", "refused"]
