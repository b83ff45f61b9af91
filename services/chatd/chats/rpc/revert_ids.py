"""Ids of reverts."""

import uuid

from chatd.primitives.domain.ids import ChatId, RevertId
from chatd.primitives.domain.requests import ClientKey


def revert_id_of(chat_id: ChatId, key: ClientKey) -> RevertId:
    """Derive the id of a revert from its request, so that a repeated request finds it."""
    return RevertId(str(uuid.uuid5(uuid.UUID(chat_id), f"revert {key.key}")))
