"""Our own adapters against the mock: what they send is accepted, what they are sent is read."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from chatd.content.domain.messages import ErrorKind, FinishReason, Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import Finished, ModelError, ModelEvent, ModelRequest
from chatd.models.engine.target import Target
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.bedrock import BedrockWire
from chatd.providers.completions import CompletionsWire
from chatd.providers.responses import ResponsesWire
from chatd.providers.transport import HttpModels
from chatd.providers.wire import Wire
from chatd.turns.engine.answer import Answer, ignore_part
from parley.clock import FakeClock
from parley.settings import Secret
from parley.testing.llm_mock import MockModels
from parley.testing.llm_mock.providers.anthropic.aws import EXAMPLE_ACCESS_KEY, EXAMPLE_SECRET_KEY

TOOL = ToolSpec(
    "add",
    "Add a number.",
    '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}',
    Executor.TOOLRUNNER,
)
ASKED = PromptMessage(Role.USER, (Text("add"),))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to a model."""

    name: str
    wire: Wire
    provider_type: ProviderType
    base_path: str
    path: str
    key: str = "key"
    api_version: str = ""
    model: str = "mock:deltas=2"

    def target(self, url: str, model: str) -> Target:
        options = {"api_version": self.api_version} if self.api_version else {}
        return Target(
            "p1",
            self.provider_type,
            "Mock",
            model,
            f"{url}{self.base_path}",
            Secret(self.key),
            options,
        )


WAYS = (
    Way("anthropic", AnthropicWire(), ProviderType.ANTHROPIC, "", "/v1/messages"),
    Way("responses", ResponsesWire(), ProviderType.OPENAI, "/v1", "/v1/responses"),
    Way("completions", CompletionsWire(), ProviderType.OPENAI, "/v1", "/v1/chat/completions"),
    Way(
        "compatible",
        CompletionsWire(),
        ProviderType.OPENAI_COMPATIBLE,
        "/api/v1",
        "/api/v1/chat/completions",
    ),
    Way("azure responses", ResponsesWire(), ProviderType.AZURE, "", "/openai/v1/responses"),
    Way("azure", CompletionsWire(), ProviderType.AZURE, "", "/openai/v1/chat/completions"),
    Way(
        "azure deployment",
        CompletionsWire(),
        ProviderType.AZURE,
        "",
        "/openai/deployments/mock:deltas=2/chat/completions",
        api_version="2025-01-01-preview",
    ),
    Way(
        "signed bedrock",
        BedrockWire(FakeClock()),
        ProviderType.BEDROCK,
        "",
        "/model/mock:deltas=2/invoke-with-response-stream",
        key=f"{EXAMPLE_ACCESS_KEY}:{EXAMPLE_SECRET_KEY}",
    ),
    Way(
        "bedrock",
        BedrockWire(FakeClock()),
        ProviderType.BEDROCK,
        "",
        "/model/mock:deltas=2/invoke-with-response-stream",
    ),
)
#: Events of an answer of three pieces, up to the one without which it is not complete.
EVENTS_TO_TERMINAL = {"anthropic": 9, "bedrock": 9, "responses": 11, "completions": 5}
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
EVERY_FORMAT = pytest.mark.parametrize("way", [*WAYS[:3], WAYS[-1]], ids=lambda way: way.name)


@pytest.fixture
async def models(clock: FakeClock) -> AsyncIterator[HttpModels]:
    async with HttpModels(clock) as opened:
        yield opened


class Asking:
    """A conversation with a model of the mock."""

    def __init__(self, models: HttpModels, server: MockModels, way: Way, clock: FakeClock) -> None:
        self._models = models
        self._server = server
        self._way = way
        self._clock = clock

    async def events(self, model: str, *messages: PromptMessage) -> list[ModelEvent]:
        request = ModelRequest(model, messages or (ASKED,), (TOOL,))
        target = self._way.target(self._server.url, model)
        found: list[ModelEvent] = []
        async with asyncio.timeout(10):
            await self._models.answer(self._way.wire, request, target, found.append)
        return found

    async def answer(self, model: str, *messages: PromptMessage) -> Answer:
        answer = Answer(ignore_part, self._clock)
        for event in await self.events(model, *messages):
            answer.on_event(event)
        return answer

    async def error(self, model: str, *messages: PromptMessage) -> ModelError:
        with pytest.raises(ModelError) as raised:
            await self.events(model, *messages)
        return raised.value


@pytest.fixture
def asking(models: HttpModels, server: MockModels, way: Way, clock: FakeClock) -> Asking:
    return Asking(models, server, way, clock)


@EVERY_WAY
async def test_a_streamed_turn_goes_every_way(asking: Asking, server: MockModels, way: Way) -> None:
    echo = PromptMessage(Role.USER, (Text("repeat after me: yes, naïve 会話"),))
    answer = await asking.answer(way.model, echo)
    texts = [part.text for part in answer.content if isinstance(part, Text)]
    assert texts == ["yes, naïve 会話"]
    assert answer.finished == Finished(FinishReason.STOP)
    assert server.stats().by_path == {way.path: 1}


@EVERY_FORMAT
async def test_calls_and_thoughts_are_sent_back_as_the_provider_wants_them(
    asking: Asking, server: MockModels, way: Way
) -> None:
    model = "mock:reasoning=3,tools=2,preface=2,rounds=2"
    history: tuple[PromptMessage, ...] = (ASKED,)
    for _ in range(2):
        answer = await asking.answer(model, *history)
        calls = [part for part in answer.content if isinstance(part, ToolCall)]
        assert [(call.tool_name, call.args_json) for call in calls] == [("add", '{"a":1}')] * 2
        assert any(isinstance(part, Reasoning) for part in answer.content)
        assert answer.finished == Finished(FinishReason.TOOL_CALLS)
        history = (*history, _told(answer.content), _results(calls))
    last = await asking.answer(model, *history)
    assert last.finished == Finished(FinishReason.STOP)
    assert server.stats().by_status == {200: 3}


def _told(content: tuple[Part, ...]) -> PromptMessage:
    return PromptMessage(Role.ASSISTANT, content, "mock")


def _results(calls: list[ToolCall]) -> PromptMessage:
    results = [ToolResult(call.tool_call_id, "add", "3", ToolOutcome.DONE) for call in calls]
    return PromptMessage(Role.TOOL, tuple(results))


@EVERY_FORMAT
async def test_usage_is_read_with_what_a_cache_held_apart(asking: Asking) -> None:
    answer = await asking.answer("mock:input_tokens=50,output_tokens=9,cache_read=30")
    usage = answer.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (50, 9, 30)


@EVERY_FORMAT
@pytest.mark.parametrize(
    ("words", "kind", "is_retryable"),
    [
        ("fail=401", ErrorKind.AUTH, False),
        ("fail=429", ErrorKind.RATE_LIMIT, True),
        ("fail=529", ErrorKind.OVERLOADED, True),
        ("context=1", ErrorKind.CONTEXT_OVERFLOW, False),
    ],
)
async def test_refusals_are_judged_for_what_they_are(
    asking: Asking, words: str, kind: ErrorKind, is_retryable: bool
) -> None:
    error = await asking.error(f"mock:{words}")
    assert (error.kind, error.is_retryable) == (kind, is_retryable)


@EVERY_FORMAT
@pytest.mark.parametrize(
    ("words", "wait_s"), [("retry_after=7", 7), ("retry_after_ms=1500", 1.5), ("retry_date=9", 9)]
)
async def test_all_forms_of_retry_after_are_obeyed(
    asking: Asking, words: str, wait_s: float
) -> None:
    error = await asking.error(f"mock:fail=429,{words}")
    assert error.retry_after_s == wait_s


@EVERY_FORMAT
@pytest.mark.parametrize(
    "words",
    ["cut=4", "cut_byte=300", "drop=4", "reset=4", "error=4", "bad_json=4"],
)
async def test_a_broken_stream_is_an_error_once_and_never_a_success(
    asking: Asking, words: str
) -> None:
    model = f"mock:{words},times=1"
    await asking.error(model)
    assert (await asking.answer(model)).finished == Finished(FinishReason.STOP)


@EVERY_FORMAT
@pytest.mark.parametrize("words", ["bad_utf8=4", "nul=4", "garbage=4", "huge_line=4@200kB"])
async def test_a_spoilt_stream_ends_in_a_typed_error_or_is_read_for_what_it_is(
    asking: Asking, words: str
) -> None:
    try:
        answer = await asking.answer(f"mock:{words}")
    except ModelError:
        return
    assert answer.finished == Finished(FinishReason.STOP)


@EVERY_FORMAT
async def test_every_place_to_cut_before_the_terminal_event_is_an_error(
    asking: Asking, way: Way
) -> None:
    for place in range(EVENTS_TO_TERMINAL[way.name]):
        await asking.error(f"mock:deltas=3,cut={place}")
    whole = f"mock:deltas=3,cut={EVENTS_TO_TERMINAL[way.name]}"
    assert (await asking.answer(whole)).finished == Finished(FinishReason.STOP)


@EVERY_FORMAT
async def test_a_silent_stream_can_be_left(asking: Asking, server: MockModels) -> None:
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(asking.events("mock:stall=5"))
        async with asyncio.timeout(5):
            await _until(lambda: server.stats().open_streams == 1)
        reading.cancel()
    async with asyncio.timeout(5):
        await _until(lambda: server.stats().open_streams == 0)


async def _until(is_so: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the server and its client share it."""
    while not is_so():
        await asyncio.to_thread(lambda: None)


@EVERY_FORMAT
@pytest.mark.parametrize("ids", ["duplicate", "missing"])
async def test_calls_have_ids_of_their_own_whatever_is_sent(asking: Asking, ids: str) -> None:
    answer = await asking.answer(f"mock:tools=2,ids={ids}")
    calls = [part.tool_call_id for part in answer.content if isinstance(part, ToolCall)]
    assert len({*calls}) == 2
    assert all(calls)
