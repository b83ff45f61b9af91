"""What a model can do in a workspace: tools, their arguments and their results."""

from chatd.clients.workspace.calling import Call, InMemoryShelf, Shelf, key_of
from chatd.clients.workspace.results import failed, refused
from chatd.clients.workspace.toolset import TOOLS, Tool

__all__ = ["TOOLS", "Call", "InMemoryShelf", "Shelf", "Tool", "failed", "key_of", "refused"]
