"""Checks the keys of a provider with its official SDK, which is imported only for that."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx2
import msgspec

from chatd.models.domain.catalogue import Provider, ProviderKey, ProviderType
from chatd.models.domain.provider_keys import KeyChecked, ProviderChecked
from chatd.models.store.catalogue import KeyValues
from chatd.providers.credentials import Credential
from parley.secrets import SecretsError

CHECK_S = 15.0
NAMES_MAX = 1000
#: Of a name that a model may be added with.
NAME_CHARACTERS_MAX = 256
ANSWER_BYTES_MAX = 4 * 1024 * 1024
UNREADABLE = "The provider answered with something that is no list of models. Check its address."
NO_LIST = "Keys of this kind of provider can only be tried by asking a model."
ADDRESS = "Check its address, and whether this machine reaches it."
#: What a provider meant by a status, and what to do about it.
PROBLEMS: Mapping[int, str] = {
    401: "The provider refused this key (401). Make a new one there, add it here, and forget this "
    "one.",
    403: "The provider knows this key but does not allow it to list models (403). Change its "
    "rights there, or add another key.",
    404: "The provider has no list of models at this address (404). Check the address.",
    429: "The provider limits this key at the moment (429). Check its quota and credit there, or "
    "try again later.",
}


ListNames = Callable[[Provider, Credential], Awaitable[tuple[str, ...]]]


class _Listed(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_Listed]


class AnswerUnreadable(httpx2.TransportError):
    """An answer is too large, or compressed so that its size is not known."""


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error where it exceeds the limit; the SDKs keep all of it."""

    def __init__(self, body: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._body = body
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._body:
            count += len(piece)
            if count > self._bytes_max:
                raise AnswerUnreadable("it is too large or compressed")
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


async def ask_uncompressed(request: httpx2.Request) -> None:
    """Ask for an answer whose size is that of its bytes on the wire."""
    request.headers["Accept-Encoding"] = "identity"


class BoundAnswers:
    """Bounds each answer of a client; a hook for responses.

    Args:
        bytes_max: The most bytes of a body.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    async def __call__(self, response: httpx2.Response) -> None:
        """Bound the body of one.

        Raises:
            AnswerUnreadable: It is compressed.
        """
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise AnswerUnreadable("it is too large or compressed")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._bytes_max)


class Refused(Exception):
    """A provider did not list its models; `problem` is safe to show."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


async def check(
    provider: Provider, values: KeyValues, list_names: ListNames | None = None
) -> ProviderChecked:
    """Check all keys of the installation at once; if there is none, call without a key.

    One after the other, two keys of a provider that does not answer would take as long as the
    caller waits, and nothing would be told of any.
    """
    list_names = list_names or names_by_sdk
    async with asyncio.TaskGroup() as tasks:
        checks = [
            tasks.create_task(_check_key(provider, key, values, list_names))
            for key in provider.keys or (None,)
        ]
    checked = [each.result() for each in checks]
    names = {name for _, offered in checked for name in offered}
    return ProviderChecked(tuple(key for key, _ in checked), tuple(sorted(names)[:NAMES_MAX]))


async def _check_key(
    provider: Provider, key: ProviderKey | None, values: KeyValues, list_names: ListNames
) -> tuple[KeyChecked, tuple[str, ...]]:
    """Return what the provider said to a key, and the names of the models that it listed."""
    key_id = "" if key is None else key.id
    try:
        credential = Credential() if key is None else Credential(key.id, values.open(key))
        async with asyncio.timeout(CHECK_S):
            return KeyChecked(key_id), await list_names(provider, credential)
    except SecretsError:
        problem = "It cannot be opened; enter it again."
    except Refused as refused:
        problem = refused.problem
    except TimeoutError:
        problem = f"The provider did not answer within {CHECK_S:g} seconds. {ADDRESS}"
    return KeyChecked(key_id, problem), ()


async def names_by_sdk(provider: Provider, credential: Credential) -> tuple[str, ...]:
    """Return the model names that the provider's SDK lists.

    Raises:
        Refused: The key does not work, or the provider did not answer.
    """
    if provider.needs_key and not credential.id:
        raise Refused("There is no key; add one.")
    match provider.type:
        case ProviderType.SCRIPTED:
            return ("scripted",)
        case ProviderType.BEDROCK:
            raise Refused(NO_LIST)
        case ProviderType.ANTHROPIC:
            return await _anthropic_names(provider, credential)
        case ProviderType.OPENAI | ProviderType.OPENAI_COMPATIBLE | ProviderType.AZURE:
            return await _openai_names(provider, credential)


async def _anthropic_names(provider: Provider, credential: Credential) -> tuple[str, ...]:
    await _load("anthropic")
    from anthropic import APIError, APIStatusError, AsyncAnthropic, DefaultAsyncHttpxClient

    client = AsyncAnthropic(
        api_key=credential.value.reveal(),
        base_url=provider.base_url or None,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=_hooks()),
    )
    try:
        async with client:
            answer = await client.models.with_raw_response.list(limit=NAMES_MAX)
            return _names(answer.http_response.content)
    except APIStatusError as error:
        raise Refused(_problem_text(error.status_code)) from None
    except APIError as error:
        raise _unanswered(error) from None


async def _openai_names(provider: Provider, credential: Credential) -> tuple[str, ...]:
    await _load("openai")
    from openai import APIError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

    base_url = provider.base_url or None
    if provider.type is ProviderType.AZURE and base_url is not None:
        base_url = f"{base_url.removesuffix('/v1').removesuffix('/openai')}/openai/v1"
    client = AsyncOpenAI(
        # The SDK requires one, and endpoints that need none ignore it.
        api_key=credential.value.reveal() or "none",
        base_url=base_url,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=_hooks()),
    )
    try:
        async with client:
            answer = await client.models.with_raw_response.list()
            return _names(answer.http_response.content)
    except APIStatusError as error:
        raise Refused(_problem_text(error.status_code)) from None
    except APIError as error:
        raise _unanswered(error) from None


def _hooks() -> dict[str, list[Callable[..., Any]]]:
    """Return the hooks of a client, which must not follow a redirect: it would send the key on."""
    return {"request": [ask_uncompressed], "response": [BoundAnswers(ANSWER_BYTES_MAX)]}


def _names(answer: bytes) -> tuple[str, ...]:
    """Return the names of a list of models, without those that no model can be added with.

    The SDKs do not check what they read, and a wrong address answers with anything.

    Raises:
        Refused: It is none.
    """
    try:
        listing = msgspec.json.decode(answer, type=_Listing)
    except (ValueError, RecursionError):
        raise Refused(UNREADABLE) from None
    names = (each.id for each in listing.data)
    return tuple(name for name in names if 0 < len(name) <= NAME_CHARACTERS_MAX)[:NAMES_MAX]


def _unanswered(error: Exception) -> Refused:
    """Return why there is no answer, as an error of an SDK tells it."""
    if isinstance(error.__cause__, AnswerUnreadable):
        return Refused(UNREADABLE)
    return Refused(f"The provider cannot be reached. {ADDRESS}")


async def _load(sdk: str) -> None:
    """Import an SDK in a thread: the import would block the event loop for too long."""
    await asyncio.to_thread(importlib.import_module, sdk)


def _problem_text(status_code: int) -> str:
    if status_code >= 500:
        return f"The provider has a problem of its own ({status_code}). Try again later."
    return PROBLEMS.get(status_code, f"The provider answered with status {status_code}. {ADDRESS}")
