"""The provider and model of a load test, which are created for it and deleted afterwards."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from parley.cli.api.client import Api, ApiRefused
from parley.cli.chats.listing import CHATS, chat_path
from parley.cli.errors import CliError, ConfigurationProblem
from parley.clock import Clock

PROVIDERS, KEYS, MODELS = "/api/v1/providers", "/api/v1/provider-keys", "/api/v1/models"
NAME = "scaletest"
DISPLAY_NAME = "Load test"
TYPE = "openai_compatible"
#: The mock does not check the key, but requires one.
KEY = "scaletest"
#: So large that no history of a load test is ever summarised.
CONTEXT_TOKENS = 1_000_000
TRIAL_S_MAX = 60.0
TRIAL_PAUSE_S = 0.05
#: With so many chats every process of a small installation almost certainly gets one.
TRIALS = 8
PAGE = 200
NOT_KNOWN = "MODEL_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class MockedAnswer:
    """How the mock answers.

    Attributes:
        deltas: Number of deltas in each answer.
        delta_interval_ms: Time between two of them; 0 sends all at once.
        tool_calls: Steps with one tool call each before the answer.
        tool: The offered tool to call, as a pattern with `*` and `?`.
        arguments: The arguments as JSON; empty for values that match the tool's schema.
    """

    deltas: int
    delta_interval_ms: float
    tool_calls: int = 0
    tool: str = ""
    arguments: str = ""

    @property
    def model_name(self) -> str:
        """The name of a model of `parley llm-mock` with this behaviour."""
        words = [f"deltas={self.deltas}"]
        if self.delta_interval_ms:
            words.append(f"delay={self.delta_interval_ms:g}ms")
        if self.tool_calls:
            words += ["tools=1", f"rounds={self.tool_calls}", f"tool_like={self.tool}"]
            words += [f"args={self.arguments}"] if self.arguments else []
        return f"mock:{','.join(words)}"


@dataclass(frozen=True, slots=True)
class ScaleModel:
    """A model to test with, and which parts of it exist only for the test.

    Attributes:
        model_id: The model.
        new_model_id: The same, if it was created for the test.
        own_provider_id: Its provider, if it is that of load tests, created now or by another run.
    """

    model_id: str
    new_model_id: str | None = None
    own_provider_id: str | None = None


def find_or_create(api: Api, base_url: str, answer: MockedAnswer) -> ScaleModel:
    """Return the model with this behaviour behind `base_url`, creating it if necessary.

    Raises:
        ConfigurationProblem: The provider's name is in use, or the key lacks the permission.
        ApiRefused: The server refuses.
    """
    try:
        provider = _provider(api, base_url)
    except ApiRefused as error:
        if error.status != 403:
            raise
        raise ConfigurationProblem(
            "making a model for the test takes the key of an administrator: set PARLEY_API_KEY "
            "to one, or name a model that is there with --model NAME"
        ) from error
    own_provider_id = str(provider["id"]) if provider["display_name"] == DISPLAY_NAME else None
    for model in _all(api, MODELS):
        if model["provider_id"] == provider["id"] and model["name"] == answer.model_name:
            return ScaleModel(str(model["id"]), None, own_provider_id)
    body = {
        "provider_id": provider["id"],
        "name": answer.model_name,
        "context_limit_tokens": CONTEXT_TOKENS,
    }
    made = api.call("POST", MODELS, body, needs="id")
    return ScaleModel(str(made["id"]), str(made["id"]), own_provider_id)


def find_model(api: Api, name: str) -> ScaleModel:
    """Return the model with this id or name, or this provider and name.

    Raises:
        ConfigurationProblem: There is none.
    """
    found = [
        model
        for model in _all(api, MODELS)
        if name in (model["id"], model["name"]) and model["enabled"]
    ]
    if len(found) != 1:
        there = "is none" if not found else "are several"
        raise ConfigurationProblem(
            f"there {there} called {name!r} among the models: `--model` takes an id or a name"
        )
    return ScaleModel(str(found[0]["id"]))


def forget(api: Api, model: ScaleModel) -> None:
    """Delete the provider or model of the test; it is no error if it is gone already."""
    with suppress(ApiRefused):
        if model.own_provider_id is not None:
            api.call("DELETE", f"{PROVIDERS}/{model.own_provider_id}")
        elif model.new_model_id is not None:
            api.call("DELETE", f"{MODELS}/{model.new_model_id}")


async def try_out(api: Api, model: ScaleModel, clock: Clock) -> None:
    """Run trial turns until the model works in every process, which also warms them up.

    A new model is known to every process of Parley within seconds, not immediately.

    Raises:
        CliError: It does not work, with the reason.
    """
    try:
        async with asyncio.timeout(TRIAL_S_MAX):
            for _ in range(TRIALS):
                chat_id = await _begun(api, model, clock)
                try:
                    await _ended(api, chat_id, clock)
                finally:
                    await asyncio.to_thread(_delete, api, chat_id)
    except TimeoutError as error:
        raise CliError(f"trial turns were not over after {TRIAL_S_MAX:g} s") from error


async def _begun(api: Api, model: ScaleModel, clock: Clock) -> str:
    """Begin a trial turn, retrying until the process that serves it knows the model."""
    body: dict[str, Any] = {"content": [{"type": "text", "text": "Are you there?"}]}
    body |= {"model_id": model.model_id, "labels": {NAME: "trial"}}
    while True:
        try:
            made = await asyncio.to_thread(api.call, "POST", CHATS, body, needs="id")
            return str(made["id"])
        except ApiRefused as error:
            if error.code != NOT_KNOWN:
                raise
        await clock.sleep(TRIAL_PAUSE_S)


async def _ended(api: Api, chat_id: str, clock: Clock) -> None:
    while True:
        chat = await asyncio.to_thread(api.call, "GET", chat_path(chat_id), needs="status")
        if chat["status"] == "waiting":
            return
        if chat["status"] != "running":
            error = chat.get("last_error") or {}
            said = ": ".join(filter(None, (error.get("message"), error.get("detail"))))
            raise CliError(f"a trial turn ended in status {chat['status']}: {said}")
        await clock.sleep(TRIAL_PAUSE_S)


def _delete(api: Api, chat_id: str) -> None:
    with suppress(ApiRefused):
        api.call("DELETE", chat_path(chat_id))


def _provider(api: Api, base_url: str) -> dict[str, Any]:
    """Return the provider of load tests."""
    found = next((each for each in _all(api, PROVIDERS) if each["name"] == NAME), None)
    if found is None:
        body = {"name": NAME, "type": TYPE, "display_name": DISPLAY_NAME, "base_url": base_url}
        found = api.call("POST", PROVIDERS, body, needs="id")
    if found["type"] != TYPE or not found["enabled"]:
        state = f"of type {found['type']}" if found["type"] != TYPE else "switched off"
        raise ConfigurationProblem(
            f"there is a provider {NAME!r} that is {state}: rename or remove it, or name a model "
            "that is there with --model NAME"
        )
    path = f"{PROVIDERS}/{found['id']}"
    if found["base_url"] != base_url:
        found = api.call("PATCH", path, {"base_url": base_url, "key": KEY}, needs="id")
    if not found["keys"]:
        api.call("POST", KEYS, {"provider_id": found["id"], "key": KEY})
    return found


def _all(api: Api, path: str) -> Iterator[dict[str, Any]]:
    query = {"limit": str(PAGE)}
    while True:
        page = api.call("GET", f"{path}?{urlencode(query)}", needs="items")
        yield from page["items"]
        if not page.get("next_cursor"):
            return
        query["cursor"] = page["next_cursor"]
