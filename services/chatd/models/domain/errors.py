"""Errors of models and their keys."""

from collections.abc import Mapping

from chatd.primitives.domain.errors import ChatError

NO_MODEL = "names no model that is switched on; choose one of the list of models"


class ModelNotFound(ChatError):
    """There is no such model, or it is disabled.

    Attributes:
        model_id: What the request calls it.
        problems: The problem of the request field that names it, if that is known.
    """

    def __init__(self, model_id: str, field: str = "") -> None:
        super().__init__(f"no model {model_id} can be used; choose one of the list of models")
        self.model_id = model_id
        self.problems = {field: NO_MODEL} if field else {}


class KeyNeeded(ChatError):
    """Stored keys of a provider would be sent to another host."""

    def __init__(self, old_origin: str, new_origin: str) -> None:
        super().__init__(f"the stored keys were given for {old_origin}, not for {new_origin}")
        self.old_origin = old_origin
        self.new_origin = new_origin


class KeyOrderMismatch(ChatError):
    """An order does not name each of the installation's keys of a provider once.

    Attributes:
        provider_id: The provider.
        problems: What does not fit, by the field of the request.
    """

    def __init__(self, provider_id: str, problems: Mapping[str, str]) -> None:
        super().__init__(f"the order does not name each key of provider {provider_id} once")
        self.provider_id = provider_id
        self.problems = problems
