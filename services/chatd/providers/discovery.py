"""Lists the models of an endpoint, without the SDKs: at the start of a process."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from chatd.models.domain.catalogue import Catalogue, Provider
from chatd.providers.environment import EnvironmentCatalogue, ListedModel, with_listed_models
from parley.clock import Clock
from parley.http import Connections, HttpError
from parley.settings import Secret

ASK_S = 2.0
ASK_AGAIN_S = 15.0
MODELS_MAX = 200
ANSWER_BYTES_MAX = 4 * 1024 * 1024

logger = logging.getLogger(__name__)


class NoModelsListed(Exception):
    """An endpoint did not list its models; `reason` is safe to show."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Listed(msgspec.Struct):
    id: str
    context_length: int | None = None
    max_model_len: int | None = None
    context_window: int | None = None


class _Listing(msgspec.Struct):
    data: list[_Listed]


async def listed_models(base_url: str, key: Secret) -> tuple[ListedModel, ...]:
    """Return the models that an OpenAI-compatible endpoint lists.

    Raises:
        NoModelsListed: It does not, or not in time.
    """
    headers = {"Authorization": f"Bearer {key.reveal()}"} if key.reveal() else {}
    try:
        async with (
            asyncio.timeout(ASK_S),
            Connections() as connections,
        ):
            answer = await connections.get(f"{base_url}/models", headers)
            if answer.status != 200:
                raise NoModelsListed(f"it answered with status {answer.status}")
            body = await answer.read(ANSWER_BYTES_MAX)
            listing = msgspec.json.decode(body, type=_Listing)
    except TimeoutError:
        raise NoModelsListed(f"it did not answer within {ASK_S:g} s") from None
    except (HttpError, OSError) as error:
        raise NoModelsListed(f"it cannot be reached ({type(error).__name__})") from None
    except (msgspec.MsgspecError, ValueError):
        raise NoModelsListed("its list of models cannot be read") from None
    return tuple(map(_offered, listing.data[:MODELS_MAX]))


class Discovery:
    """Queries the endpoints of the environment for their models, until each has answered.

    Args:
        given: The catalogue of the environment.
        learned: Is called with the catalogue that includes the listed models.
        clock: Time between two queries.
    """

    def __init__(
        self, given: EnvironmentCatalogue, learned: Callable[[Catalogue], None], clock: Clock
    ) -> None:
        self._catalogue = given.catalogue
        self._values = given.values
        self._unlisted = list(given.unlisted)
        self._learned = learned
        self._clock = clock

    async def ask(self) -> None:
        """Query all endpoints that have not answered yet, once."""
        for provider in tuple(self._unlisted):
            await self._ask_one(provider)

    async def run(self) -> None:
        """Query periodically until all have answered."""
        while self._unlisted:
            await self._clock.sleep(ASK_AGAIN_S)
            await self.ask()

    async def _ask_one(self, provider: Provider) -> None:
        keys = [self._values.open(key) for key in provider.keys]
        try:
            offered = await listed_models(provider.base_url, (keys or [Secret("")])[0])
        except NoModelsListed as unknown:
            logger.warning(
                "the models of an endpoint are not known yet: %s",
                unknown.reason,
                extra={"provider": provider.name, "base_url": provider.base_url},
            )
            return
        self._unlisted.remove(provider)
        self._catalogue = with_listed_models(self._catalogue, provider, offered)
        self._learned(self._catalogue)
        logger.info(
            "an endpoint listed its models",
            extra={"provider": provider.name, "models": len(offered)},
        )


def _offered(listed: _Listed) -> ListedModel:
    window = listed.context_length or listed.max_model_len or listed.context_window or 0
    return ListedModel(listed.id, max(0, window))
