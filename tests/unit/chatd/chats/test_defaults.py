"""Models that chats name."""

import pytest

from chatd.chats.rpc.defaults import ConfiguredDefaults, fallback_id
from chatd.models.domain.errors import ModelNotFound
from support.chatd.models.model_catalogue import OPUS, KnownConfiguration, catalogue


async def test_the_fallback_model_of_a_chat_is_one_that_there_is_or_none() -> None:
    defaults = ConfiguredDefaults(KnownConfiguration(catalogue()))
    assert await fallback_id(defaults, OPUS.name) == OPUS.id
    assert await fallback_id(defaults, "") == ""
    assert await fallback_id(defaults, "none") == "none"
    with pytest.raises(ModelNotFound):
        await fallback_id(defaults, "no such model")
