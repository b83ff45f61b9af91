"""Workspaces as people look into them over gRPC."""

from typing import Any

from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from support.chatd.chats.chat_people import Person


async def start(person: Person, workspace_id: str, command: str, **more: Any) -> Any:
    """Have a person start a process."""
    spec = process_pb2.ProcessSpec(command=command)
    more.setdefault("request_id", person.fresh())
    return await person.ask(
        api.StartWorkspaceProcessRequest(workspace_id=workspace_id, spec=spec, **more)
    )
