"""Where a call goes, and with which key, over calls that are only noted."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Text, ToolCall
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.catalogue import DEMO, ProviderType, merged
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    OnEvent,
    TextDelta,
)
from chatd.models.store.catalogue import KeyValues
from chatd.providers.router import Call, RoutedModel
from chatd.providers.scripted import ScriptedModel
from chatd.providers.wire import Decoder, HttpRequest, Wire
from chatd.providers.wire_choice import WireName
from parley.clock import FakeClock
from parley.secrets import Keyring, SecretBox
from parley.settings import Secret
from support.chatd.models.model_catalogue import (
    ANTHROPIC,
    FIRST_KEY,
    LLAMA,
    OPUS,
    KnownConfiguration,
    allowing_own_keys,
    catalogue,
    own_key_of_ann,
)
from support.chatd.providers.answers import answering, events_of

ANSWER: tuple[ModelEvent, ...] = (TextDelta("hi"), Finished())
ASK = PromptMessage(Role.USER, (Text("hello"),))
REQUEST = ModelRequest("opus", (ASK,), (), owner_id="ann")

Steps = tuple[ModelEvent | ModelError, ...]


class NamedWire:
    """A wire that only has a name."""

    def __init__(self, name: WireName) -> None:
        self.name = name

    def request(self, request: ModelRequest, target: object) -> HttpRequest:
        raise AssertionError("nothing is sent here")

    def decoder(self) -> Decoder:
        raise AssertionError("nothing is received here")


WIRES: Mapping[WireName, Wire] = {name: NamedWire(name) for name in WireName}


class Calls:
    """Plays one script per key and notes every call."""

    def __init__(self, **scripts: Steps) -> None:
        self.scripts = {name.replace("_", "-"): steps for name, steps in scripts.items()}
        self.made: list[tuple[Call, ModelRequest]] = []

    async def make(self, call: Call, request: ModelRequest, on_event: OnEvent) -> None:
        self.made.append((call, request))
        for step in self.scripts.get(call.credential_id, ANSWER):
            if isinstance(step, ModelError):
                raise step
            on_event(step)

    @property
    def keys(self) -> list[str]:
        return [call.credential_id for call, _ in self.made]


def failure(kind: ErrorKind, retry_after_s: float | None = None) -> ModelError:
    return ModelError(kind, "no", is_retryable=True, retry_after_s=retry_after_s)


def routed(
    calls: Calls, configuration: KnownConfiguration | None = None, clock: FakeClock | None = None
) -> RoutedModel:
    def demo(request: ModelRequest) -> tuple[ModelEvent, ...]:
        return (TextDelta("demo"), Finished())

    return RoutedModel(
        configuration or KnownConfiguration(catalogue()),
        make=calls.make,
        wires=WIRES,
        demo=ScriptedModel(demo),
        clock=clock or FakeClock(),
    )


async def asked(model: RoutedModel, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    return await events_of(model, request)


async def test_a_call_goes_to_its_target_with_the_first_key() -> None:
    provider = replace(ANTHROPIC, base_url="https://x.test", options={"a": 1, "wire": "responses"})
    configuration = KnownConfiguration(catalogue(provider, replace(OPUS, options={"a": 2})))
    calls = Calls()
    assert await asked(routed(calls, configuration)) == list(ANSWER)
    ((call, request),) = calls.made
    target = call.target
    assert (call.credential_id, call.wire) == ("key-1", WIRES[WireName.ANTHROPIC])
    assert (target.provider_id, target.provider_type) == ("anthropic", ProviderType.ANTHROPIC)
    assert (target.model_name, target.base_url) == ("claude-opus-9", "https://x.test")
    assert target.api_key == Secret("value of key-1")
    assert target.options == {"a": 2}
    assert request == REQUEST


@pytest.mark.parametrize(
    "kind", [ErrorKind.AUTH, ErrorKind.RATE_LIMIT, ErrorKind.USAGE_LIMIT, ErrorKind.MISSING_KEY]
)
async def test_a_key_that_is_refused_is_followed_by_the_next(kind: ErrorKind) -> None:
    calls = Calls(key_1=(failure(kind),))
    assert await asked(routed(calls)) == list(ANSWER)
    assert calls.keys == ["key-1", "key-2"]


@pytest.mark.parametrize(
    "kind", [ErrorKind.OVERLOADED, ErrorKind.TIMEOUT, ErrorKind.CONTEXT_OVERFLOW, ErrorKind.CONFIG]
)
async def test_what_another_key_would_suffer_from_too_is_not_tried_again(kind: ErrorKind) -> None:
    calls = Calls(key_1=(failure(kind),))
    with pytest.raises(ModelError) as failed:
        await asked(routed(calls))
    assert (failed.value.kind, calls.keys) == (kind, ["key-1"])


async def test_the_last_refusal_is_told_when_every_key_is_refused() -> None:
    calls = Calls(key_1=(failure(ErrorKind.RATE_LIMIT),), key_2=(failure(ErrorKind.AUTH),))
    with pytest.raises(ModelError) as failed:
        await asked(routed(calls))
    assert (failed.value.kind, calls.keys) == (ErrorKind.AUTH, ["key-1", "key-2"])


async def test_an_answer_that_began_is_never_begun_anew_with_another_key() -> None:
    calls = Calls(key_1=(TextDelta("half"), failure(ErrorKind.RATE_LIMIT)))
    seen: list[ModelEvent] = []
    with pytest.raises(ModelError):
        await routed(calls).answer(REQUEST, seen.append)
    assert (seen, calls.keys) == ([TextDelta("half")], ["key-1"])


async def test_a_heartbeat_is_no_answer() -> None:
    calls = Calls(key_1=(Heartbeat(), failure(ErrorKind.RATE_LIMIT)))
    assert await asked(routed(calls)) == [Heartbeat(), *ANSWER]


async def test_a_refused_key_rests_and_is_tried_last_until_it_is_over() -> None:
    clock = FakeClock()
    calls = Calls(key_1=(failure(ErrorKind.RATE_LIMIT, retry_after_s=60),))
    model = routed(calls, clock=clock)
    await asked(model)
    await asked(model)
    assert calls.keys == ["key-1", "key-2", "key-2"]
    calls.scripts.clear()
    clock.advance(61)
    await asked(model)
    assert calls.keys[-1] == "key-1"


async def test_keys_that_all_rest_are_still_tried() -> None:
    calls = Calls(key_1=(failure(ErrorKind.AUTH),), key_2=(failure(ErrorKind.AUTH),))
    model = routed(calls)
    for _ in range(2):
        with pytest.raises(ModelError):
            await asked(model)
    assert calls.keys == ["key-1", "key-2", "key-1", "key-2"]


async def test_a_key_of_the_users_own_goes_first_where_it_is_allowed() -> None:
    for is_allowed, expected in ((True, "key-own"), (False, "key-1")):
        provider = allowing_own_keys() if is_allowed else ANTHROPIC
        calls = Calls()
        await asked(routed(calls, KnownConfiguration(catalogue(provider), own_key_of_ann())))
        assert calls.keys == [expected]


async def test_an_endpoint_without_keys_is_asked_without_one() -> None:
    calls = Calls()
    await asked(routed(calls), replace(REQUEST, model="llama"))
    ((call, _),) = calls.made
    assert (call.credential_id, call.target.api_key) == ("", Secret(""))
    assert call.wire is WIRES[WireName.COMPLETIONS]


async def test_keys_that_cannot_be_opened_fail_closed(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = SecretBox(Keyring.generate()), SecretBox(Keyring.generate())
    sealed = theirs.seal(b"x", table="chat.provider_keys", column="sealed", row_id=FIRST_KEY.id)

    class Damaged(KnownConfiguration):
        async def current(self):  # type: ignore[no-untyped-def]
            known = await super().current()
            return replace(known, values=KeyValues({FIRST_KEY.id: sealed}, {}, ours))

    calls = Calls()
    configuration = Damaged(catalogue(replace(ANTHROPIC, keys=(FIRST_KEY,))))
    with pytest.raises(ModelError) as failed:
        await asked(routed(calls, configuration))
    assert (failed.value.kind, calls.made) == (ErrorKind.CONFIG, [])
    assert "key-1" in str([record.__dict__ for record in caplog.records])


async def test_no_key_is_ever_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await asked(routed(Calls(key_1=(failure(ErrorKind.AUTH),))))
    logged = str([record.__dict__ for record in caplog.records])
    assert "key-1" in logged
    assert "value of" not in logged


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (replace(OPUS, is_enabled=False), ErrorKind.MODEL_UNAVAILABLE),
        (replace(OPUS, is_deleted=True), ErrorKind.MODEL_UNAVAILABLE),
        (replace(ANTHROPIC, is_enabled=False), ErrorKind.PROVIDER_DISABLED),
        (replace(ANTHROPIC, keys=()), ErrorKind.MISSING_KEY),
        (replace(LLAMA, id="opus", provider_id="nobody"), ErrorKind.MODEL_UNAVAILABLE),
    ],
)
async def test_a_model_that_went_away_during_the_turn_is_not_asked(
    changed: object, kind: ErrorKind
) -> None:
    calls = Calls()
    with pytest.raises(ModelError) as failed:
        await asked(routed(calls, KnownConfiguration(catalogue(changed))))  # type: ignore[arg-type]
    assert (failed.value.kind, calls.made) == (kind, [])


async def test_a_model_that_never_was_is_not_asked() -> None:
    with pytest.raises(ModelError) as failed:
        await asked(routed(Calls()), replace(REQUEST, model="nothing"))
    assert failed.value.kind is ErrorKind.MODEL_UNAVAILABLE


async def test_the_demo_answers_for_itself() -> None:
    calls = Calls()
    model = routed(calls, KnownConfiguration(merged(catalogue(), DEMO)))
    answer = await asked(model, replace(REQUEST, model="scripted"))
    assert (answer, calls.made) == ([TextDelta("demo"), Finished()], [])


async def test_what_another_provider_wrote_is_sent_without_what_is_its_own() -> None:
    foreign = PromptMessage(
        Role.ASSISTANT,
        (Text("said", "its own"), ToolCall("s", "web_search", "{}", provider_executed=True)),
        "llama",
    )
    own = PromptMessage(Role.ASSISTANT, (Text("said", "ours"),), "sonnet")
    calls = Calls()
    await asked(routed(calls), replace(REQUEST, messages=(ASK, foreign, own, ASK)))
    ((_, request),) = calls.made
    assert request.messages == (
        ASK,
        PromptMessage(Role.ASSISTANT, (Text("said"),), "llama"),
        own,
        ASK,
    )


async def test_closing_the_answer_closes_the_call() -> None:
    closed: list[bool] = []

    async def make(call: Call, request: ModelRequest, on_event: OnEvent) -> None:
        try:
            on_event(TextDelta("one"))
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    model = RoutedModel(
        KnownConfiguration(catalogue()),
        make=make,
        wires=WIRES,
        demo=ScriptedModel(lambda request: ()),
        clock=FakeClock(),
    )
    async with answering(partial(model.answer, REQUEST)) as following:
        assert await following() == TextDelta("one")
    assert closed == [True]
