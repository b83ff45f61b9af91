"""Wiring of the slice `instructions`."""

from chatd.chats.wiring import ChatComponents
from chatd.instructions.clients.files import NodeInstructionFiles
from chatd.instructions.engine.pins import InstructionPins
from chatd.instructions.store.instructions import PostgresInstructions
from chatd.models.wiring import ModelComponents
from chatd.resources import Resources
from chatd.workspaces.wiring import WorkspaceComponents


def open_instructions(
    resources: Resources,
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    chats: ChatComponents,
) -> InstructionPins:
    """Return the instruction files that are pinned to chats."""
    return InstructionPins(
        NodeInstructionFiles(resources.toolrunners, workspaces.locator),
        PostgresInstructions(resources.pool),
        changed=catalogue.chat_changed,
        publish=chats.notifier.metadata_changed,
    )
