"""Ids of agents, derived from the calls that start them, so that a repeated call starts none."""

import uuid

from chatd.primitives.domain.ids import ChatId, ExecutionId


def agent_id_of(execution_id: ExecutionId) -> ChatId:
    """Return the id of the agent that a call starts."""
    return ChatId(str(uuid.uuid5(uuid.UUID(execution_id), "agent")))
