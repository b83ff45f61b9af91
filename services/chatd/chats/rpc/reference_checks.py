"""Collects the problems of all fields of a request, so that one answer has them all."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from chatd.content.domain.errors import FileNotFound
from chatd.models.domain.errors import ModelNotFound
from chatd.primitives.domain.errors import (
    ChatNotFound,
    CheckUnavailable,
    InvalidRequest,
    UnknownIds,
)

T = TypeVar("T")

#: The errors of ids that do not exist, or that cannot be checked now.
REFUSALS = (UnknownIds, ModelNotFound, FileNotFound, CheckUnavailable)
NO_CHAT = "names no chat of yours; choose one of your chats, or leave it out"


class ReferenceChecks:
    """Runs checks that do not depend on each other, and raises their errors together."""

    def __init__(self) -> None:
        self._resources: list[str] = []
        self._problems: dict[str, str] = {}
        self._first: UnknownIds | ModelNotFound | FileNotFound | ChatNotFound | None = None
        self._invalid: list[InvalidRequest] = []
        self._unavailable: CheckUnavailable | None = None

    async def run(self, check: Awaitable[T], otherwise: T) -> T:
        """Return the result of a check, or `otherwise` if it fails; its error is kept."""
        try:
            return await check
        except UnknownIds as refusal:
            self._refuse(refusal, refusal.resource, refusal.problems)
        except FileNotFound as refusal:
            self._refuse(refusal, "file", refusal.problems)
        except ModelNotFound as refusal:
            self._refuse(refusal, "model", refusal.problems)
        except CheckUnavailable as refusal:
            self._unavailable = refusal
        return otherwise

    async def model(self, check: Awaitable[T], field: str, otherwise: T) -> T:
        """Run a check that raises ModelNotFound for the model of a request field."""
        return await self.run(_naming(check, field), otherwise)

    async def chat(self, check: Awaitable[object], field: str) -> None:
        """Run a check that raises ChatNotFound for the chat of a request field."""
        try:
            await check
        except ChatNotFound as refusal:
            self._refuse(refusal, "chat", {field: NO_CHAT})

    def value(self, check: Callable[[], T]) -> T | None:
        """Return the result of a check of values, or None if it fails; its faults are kept."""
        try:
            return check()
        except InvalidRequest as refusal:
            self._invalid.append(refusal)
            return None

    def refuse(self, field: str, problem: str) -> None:
        """Keep the fault of a field."""
        self._invalid.append(InvalidRequest(field, problem))

    def finish(self) -> None:
        """Raise what the checks refused.

        Raises:
            InvalidRequest: Values are invalid; it has the problems of all values and ids.
            UnknownIds: Several checks failed; it has the problems of all of them.
            ModelNotFound: Only the model is unknown.
            FileNotFound: Only files are unknown.
            ChatNotFound: Only the chat is unknown.
            CheckUnavailable: A service that checks some ids does not answer, and no other is wrong.
        """
        if self._invalid:
            ids = [InvalidRequest(*problem) for problem in self._problems.items()]
            raise InvalidRequest.together([*self._invalid, *ids])
        if self._first is None:
            if self._unavailable is not None:
                raise self._unavailable
            return
        if len(self._resources) == 1:
            raise self._first
        raise UnknownIds(" or ".join(dict.fromkeys(self._resources)), self._problems)

    def _refuse(
        self,
        refusal: UnknownIds | ModelNotFound | FileNotFound | ChatNotFound,
        resource: str,
        problems: Mapping[str, str],
    ) -> None:
        self._first = self._first or refusal
        self._resources.append(resource)
        self._problems |= problems


async def _naming(check: Awaitable[T], field: str) -> T:
    try:
        return await check
    except ModelNotFound as refusal:
        raise ModelNotFound(refusal.model_id, field) from None
