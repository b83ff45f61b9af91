"""Asking endpoints which models they have: plainly at the start, with the SDKs to check keys."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from chatd.models.domain.catalogue import Catalogue, Provider, ProviderKey, ProviderType
from chatd.models.domain.provider_keys import KeyChecked
from chatd.models.store.catalogue import KeyValues
from chatd.providers.checking import ANSWER_BYTES_MAX, UNREADABLE, Refused, check
from chatd.providers.credentials import Credential
from chatd.providers.discovery import (
    ASK_AGAIN_S,
    Discovery,
    NoModelsListed,
    listed_models,
)
from chatd.providers.environment import EnvironmentKeys, ListedModel, environment_catalogue
from parley.clock import FakeClock, SystemClock
from parley.settings import Secret
from parley.testing.llm_mock import MockModels
from support.net.model_server import LAST_CHUNK, Act, Script, chunk, head, model_server, whole

KEY = ProviderKey("k", "p", "")
VALUES = KeyValues(given={"k": Secret("sk-something")})


@pytest.fixture
async def mock() -> AsyncIterator[MockModels]:
    async with MockModels.serving(clock=SystemClock()) as serving:
        yield serving


async def test_an_endpoint_lists_its_models_with_their_windows() -> None:
    body = (
        b'{"object":"list","data":[{"id":"a","max_model_len":8192},{"id":"b","context_length":3}]}'
    )
    async with model_server(whole(body, content_type="application/json")) as server:
        found = await listed_models(server.url, Secret("sk-x"))
    assert found == (ListedModel("a", 8192), ListedModel("b", 3))
    (asked,) = server.asked
    assert (asked.path, asked.headers["authorization"]) == ("/models", "bearer sk-x")


async def test_a_list_of_models_that_arrives_in_pieces_is_read_to_its_end() -> None:
    answer = b"".join((head(), chunk(b'{"data":[{"id":'), chunk(b'"a"}]}'), LAST_CHUNK))
    async with model_server([bytes((byte,)) for byte in answer]) as server:
        assert await listed_models(server.url, Secret("")) == (ListedModel("a", 0),)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (whole(b"no", "401 Unauthorized"), "status 401"),
        (whole(b"<html>"), "cannot be read"),
        (whole(b'{"data": 1}'), "cannot be read"),
        ((Act.RESET,), "cannot be reached"),
        ((Act.HANG,), "did not answer"),
    ],
)
async def test_an_endpoint_that_does_not_list_is_no_harm(script: Script, reason: str) -> None:
    async with model_server(script) as server:
        with pytest.raises(NoModelsListed) as unknown:
            await listed_models(server.url, Secret("sk-x"))
    assert reason in unknown.value.reason
    assert "sk-x" not in unknown.value.reason


async def test_an_endpoint_that_starts_later_is_asked_again() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    clock, learned = FakeClock(), list[Catalogue]()
    given = environment_catalogue(EnvironmentKeys(openai_base_url=f"http://127.0.0.1:{port}/v1"))
    discovery = Discovery(given, learned.append, clock)
    await discovery.ask()
    assert learned == []
    async with (
        asyncio.timeout(10),
        MockModels.serving(clock=SystemClock(), port=port),
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(discovery.run())
        assert await clock.until_sleeping() == ASK_AGAIN_S
        clock.advance(ASK_AGAIN_S)
    (catalogue,) = learned
    default = catalogue.default()
    assert default is not None
    assert catalogue.providers[default.provider_id].name == "openai-compatible"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (ProviderType.ANTHROPIC, ""),
        (ProviderType.OPENAI, "/v1"),
        (ProviderType.OPENAI_COMPATIBLE, "/v1"),
        (ProviderType.AZURE, ""),
    ],
)
async def test_a_key_that_works_tells_the_models(
    mock: MockModels, kind: ProviderType, path: str
) -> None:
    provider = Provider("p", "p", "P", kind, base_url=f"{mock.url}{path}", keys=(KEY,))
    checked = await check(provider, VALUES)
    assert checked.keys == (KeyChecked("k"),)
    assert checked.model_names


@pytest.mark.parametrize("kind", [ProviderType.ANTHROPIC, ProviderType.OPENAI])
@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("401 Unauthorized", ("refused this key", "add it here")),
        ("403 Forbidden", ("does not allow", "add another key")),
        ("404 Not Found", ("no list of models", "Check the address")),
        ("429 Too Many Requests", ("limits this key", "quota")),
        ("503 Service Unavailable", ("a problem of its own", "Try again later")),
    ],
)
async def test_a_key_that_does_not_work_says_why_and_what_to_do(
    kind: ProviderType, status: str, words: tuple[str, ...]
) -> None:
    refusal = whole(b'{"error":{"message":"bad key sk-something"}}', status)
    async with model_server(refusal) as server:
        provider = Provider("p", "p", "P", kind, base_url=server.url, keys=(KEY,))
        checked = await check(provider, VALUES)
    (key,) = checked.keys
    assert key.key_id == "k"
    assert [each for each in words if each not in key.problem] == []
    assert status[:3] in key.problem
    assert "sk-something" not in key.problem


@pytest.mark.parametrize("kind", [ProviderType.ANTHROPIC, ProviderType.OPENAI])
@pytest.mark.parametrize(
    "answer",
    [
        whole(b"<html>Sign in</html>", content_type="text/html"),
        whole(b"no json", content_type="application/json"),
        whole(b"null", content_type="application/json"),
        whole(b"[1]", content_type="application/json"),
        whole(b'{"data":null}', content_type="application/json"),
        whole(b'{"data":[{"id":1},{},null]}', content_type="application/json"),
        whole(b'{"data":[{"id":"\xff"}]}', content_type="application/json"),
        whole(b'{"data":[{"id":"\\ud800"}]}', content_type="application/json"),
        whole(b"[" * 200_000, content_type="application/json"),
        whole(b"{}", content_type="application/json", Content_Encoding="gzip"),
        [head(), *(chunk(b" " * ANSWER_BYTES_MAX) for _ in range(3)), Act.HANG],
        [head("500 Oops"), *(chunk(b" " * ANSWER_BYTES_MAX) for _ in range(3)), Act.HANG],
    ],
)
async def test_an_answer_that_is_no_list_of_models_says_so(
    kind: ProviderType, answer: Script
) -> None:
    async with model_server(answer) as server:
        provider = Provider("p", "p", "P", kind, base_url=server.url, keys=(KEY,))
        (key,) = (await check(provider, VALUES)).keys
        assert server.asked[0].headers["accept-encoding"] == "identity"
    assert key.problem == UNREADABLE


async def test_names_that_no_model_can_be_added_with_are_not_listed() -> None:
    listing = b'{"data":[{"id":"a"},{"id":""},{"id":"' + b"z" * 257 + b'"}]}'
    async with model_server(whole(listing, content_type="application/json")) as server:
        provider = Provider("p", "p", "P", ProviderType.OPENAI, base_url=server.url, keys=(KEY,))
        assert (await check(provider, VALUES)).model_names == ("a",)


async def test_a_provider_that_is_not_there_says_what_to_check() -> None:
    async with model_server((Act.RESET,)) as server:
        provider = Provider("p", "p", "P", ProviderType.OPENAI, base_url=server.url, keys=(KEY,))
        (key,) = (await check(provider, VALUES)).keys
    assert key.problem.startswith("The provider cannot be reached. Check its address")


async def test_all_keys_are_checked_at_once_and_told_in_their_order() -> None:
    keys = (KEY, ProviderKey("other", "p", ""))
    both_wait = asyncio.Barrier(len(keys))

    async def names(_: Provider, credential: Credential) -> tuple[str, ...]:
        await both_wait.wait()
        if credential.id == "k":
            raise Refused("Not this one.")
        return ("small", "large")

    provider = Provider("p", "p", "P", ProviderType.OPENAI, keys=keys)
    values = KeyValues(given={each.id: Secret("sk-something") for each in keys})
    checked = await check(provider, values, names)
    assert checked.keys == (KeyChecked("k", "Not this one."), KeyChecked("other"))
    assert checked.model_names == ("large", "small")


@pytest.mark.parametrize("kind", [ProviderType.ANTHROPIC, ProviderType.OPENAI])
async def test_a_key_does_not_follow_a_redirect(mock: MockModels, kind: ProviderType) -> None:
    async with model_server(whole(b'{"data":[]}')) as other:
        redirect = whole(b"", "307 Temporary Redirect", Location=f"{other.url}/models")
        async with model_server(redirect) as server:
            provider = Provider("p", "p", "P", kind, base_url=server.url, keys=(KEY,))
            checked = await check(provider, VALUES)

    (key,) = checked.keys
    assert key.problem.startswith("The provider answered with status 307.")
    assert other.asked == []


async def test_a_provider_without_a_key_or_without_a_list_says_so() -> None:
    keyless = Provider("p", "p", "P", ProviderType.ANTHROPIC)
    assert (await check(keyless, VALUES)).keys == (KeyChecked("", "There is no key; add one."),)
    bedrock = Provider("p", "p", "P", ProviderType.BEDROCK, keys=(KEY,))
    (key,) = (await check(bedrock, VALUES)).keys
    assert "by asking a model" in key.problem
