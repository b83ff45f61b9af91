"""Checks the keys of a provider with its official SDK, which is imported only for that."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable

from chatd.models.domain.catalogue import Provider, ProviderType
from chatd.models.domain.provider_keys import KeyChecked, ProviderChecked
from chatd.models.store.catalogue import KeyValues
from chatd.providers.credentials import Credential
from parley.secrets import SecretsError

CHECK_S = 15.0
NAMES_MAX = 1000
NO_LIST = "Keys of this kind of provider can only be tried by asking a model."


ListNames = Callable[[Provider, Credential], Awaitable[tuple[str, ...]]]


class Refused(Exception):
    """A provider did not list its models; `problem` is safe to show."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


async def check(
    provider: Provider, values: KeyValues, list_names: ListNames | None = None
) -> ProviderChecked:
    """Check each key of the installation in turn; if there is none, call without a key."""
    keys: list[KeyChecked] = []
    names: set[str] = set()
    for key in provider.keys or (None,):
        key_id = "" if key is None else key.id
        try:
            credential = Credential() if key is None else Credential(key.id, values.open(key))
            async with asyncio.timeout(CHECK_S):
                names |= set(await (list_names or names_by_sdk)(provider, credential))
        except SecretsError:
            keys.append(KeyChecked(key_id, "It cannot be opened; enter it again."))
        except Refused as refused:
            keys.append(KeyChecked(key_id, refused.problem))
        except TimeoutError:
            keys.append(KeyChecked(key_id, f"It did not answer within {CHECK_S:g} s."))
        else:
            keys.append(KeyChecked(key_id))
    return ProviderChecked(tuple(keys), tuple(sorted(names)[:NAMES_MAX]))


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
        # A redirect would send the key to another host.
        http_client=DefaultAsyncHttpxClient(follow_redirects=False),
    )
    try:
        async with client:
            return tuple([model.id async for model in client.models.list(limit=NAMES_MAX)])
    except APIStatusError as error:
        raise Refused(_problem_text(error.status_code)) from None
    except APIError as error:
        raise Refused(f"It cannot be reached ({type(error).__name__}).") from None


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
        http_client=DefaultAsyncHttpxClient(follow_redirects=False),
    )
    try:
        async with client:
            return tuple([model.id async for model in client.models.list()])
    except APIStatusError as error:
        raise Refused(_problem_text(error.status_code)) from None
    except APIError as error:
        raise Refused(f"It cannot be reached ({type(error).__name__}).") from None


async def _load(sdk: str) -> None:
    """Import an SDK in a thread: the import would block the event loop for too long."""
    await asyncio.to_thread(importlib.import_module, sdk)


def _problem_text(status_code: int) -> str:
    if status_code in (401, 403):
        return "The key was refused; enter another one."
    return f"It answered with status {status_code}."
