"""A side call: a prompt of its own without tools, with a time limit, billed like any call."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.chat import ChatState
from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Part, Text
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.catalogue import DEMO_MODEL_ID, DEMO_PROVIDER_ID
from chatd.models.domain.language_model import LanguageModel, ModelError, ModelRequest
from chatd.models.domain.profile import ModelChoice, ModelProfile
from chatd.primitives.domain.ids import ChatId, Fence, Owner, OwnerId
from chatd.spend.domain.ledger import CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.turns.domain.fallbacks import is_fallback_due, lacking
from chatd.turns.domain.ports import Setups, UtilityModels
from chatd.turns.domain.retries import Failed, GiveUp, RetryIn, RetryPolicy, after_failure
from chatd.turns.engine.answer import Answer
from chatd.turns.engine.metering import CallObserver, MeteredCall
from chatd.turns.engine.stream import Answered, Broken, ModelStream, StreamLimits
from parley.clock import Clock

THOUGHT_TOKENS = 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SideCallRequest:
    """The prompt and limits of a side call.

    Attributes:
        history_version: The history version that it is about, which its bill names.
        model: The chat's own model, if it is already resolved.
        choice: The model of its turn, if that is known and `model` is not.
        attempt_offset: Is added to the number of the attempt in its bill, so that the attempts of
            two owners of one chat are two calls.
        is_repeated: Whether there may be several of the same purpose and version; each is billed.
        may_reason: Whether the model uses the reasoning effort that is configured for it.
        may_be_demo: Whether the scripted demo may answer.
        has_fallback: Whether the chat's fallback model answers when the provider is down.
    """

    chat_id: ChatId
    owner: Owner
    history_version: int
    purpose: CallPurpose
    prompt: tuple[PromptMessage, ...]
    tokens_max: int
    call_s: float
    total_s: float
    model: ModelProfile | None = None
    choice: ModelChoice | None = None
    attempt_offset: int = 0
    is_repeated: bool = False
    may_reason: bool = False
    may_be_demo: bool = False
    has_fallback: bool = True


@dataclass(frozen=True, slots=True)
class Generated:
    """An answer that is not in the ledger yet: the caller stores it together with its entry.

    Attributes:
        finish_reason: Why it ended, which tells whether it is complete.
    """

    text: str
    entry: LedgerEntry
    finish_reason: FinishReason = FinishReason.STOP


class AnswerListener(Protocol):
    """Receives the text of an answer while it is generated; neither blocks nor raises."""

    def on_text(self, text: str) -> None:
        """Append text."""
        ...

    def on_retry(self) -> None:
        """Discard the text: another attempt begins."""
        ...


class NoListener:
    """Discards the text."""

    def on_text(self, text: str) -> None:
        """Discard it."""

    def on_retry(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class SideCallPorts:
    """The dependencies of side calls.

    Attributes:
        unbilled: Called with the entry of each call whose answer is not stored.
    """

    model: LanguageModel
    setups: Setups
    utility: UtilityModels
    spending: Spending
    unbilled: Callable[[LedgerEntry, OwnerId], None]
    calls: CallObserver


class SideCalls:
    """Makes side calls."""

    def __init__(
        self,
        ports: SideCallPorts,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        retries: RetryPolicy | None = None,
    ) -> None:
        self._ports = ports
        self._clock = clock
        self._jitter = jitter
        self._retries = retries or RetryPolicy()

    async def ask(
        self, side_call: SideCallRequest, listener: AnswerListener | None = None
    ) -> Generated | None:
        """Return an answer; None if no model may or can answer in time.

        Raises:
            ModelError: the last attempt failed, or the model that is set cannot be used.
        """
        profile = await self._profile(side_call)
        if profile is None:
            return None
        if await self._ports.spending.refusal(side_call.chat_id, side_call.owner) is not None:
            return None
        listener = listener or NoListener()
        ends_s = self._clock.monotonic() + side_call.total_s
        attempt = 1
        while True:
            try:
                return await self._attempt(side_call, profile, attempt, ends_s, listener)
            except ModelError as error:
                failed = Failed(error, attempt)
                fallback = await self._fallback(side_call, profile, failed)
                match after_failure(failed, self._jitter(), self._retries):
                    case _ if fallback is not None and self._clock.monotonic() < ends_s:
                        listener.on_retry()
                        profile = fallback
                    case RetryIn(delay_s) if self._clock.monotonic() + delay_s < ends_s:
                        listener.on_retry()
                        await self._clock.sleep(delay_s)
                    case RetryIn() | GiveUp():
                        raise
            attempt += 1

    async def _fallback(
        self, side_call: SideCallRequest, profile: ModelProfile, failed: Failed
    ) -> ModelProfile | None:
        """Return the model that makes the next attempt in place of one whose provider is down."""
        if profile.is_fallback or not side_call.has_fallback:
            return None
        try:
            setup = await self._ports.setups.prepare(
                side_call.chat_id, side_call.owner, side_call.choice
            )
        except ModelError:
            return None
        fallback = setup.fallback
        if fallback is None or not is_fallback_due(failed, profile, fallback):
            return None
        if is_demo(fallback) and not side_call.may_be_demo:
            return None
        if (lack := lacking(fallback, _request(side_call, fallback, failed.attempt))) is not None:
            logger.warning("the fallback model %s is left out: %s", fallback.id, lack)
            return None
        logger.info("the fallback model %s answers: %s", fallback.id, failed.error.message)
        return fallback

    async def _profile(self, side_call: SideCallRequest) -> ModelProfile | None:
        """Return the model to call; None for the demo model where that cannot answer."""
        chat_id, owner = side_call.chat_id, side_call.owner
        own = side_call.model
        if own is None:
            own = (await self._ports.setups.prepare(chat_id, owner, side_call.choice)).model
        if is_demo(own) and not side_call.may_be_demo:
            return None
        chosen = await self._ports.utility.for_purpose(chat_id, owner, side_call.purpose) or own
        return None if is_demo(chosen) and not side_call.may_be_demo else chosen

    async def _attempt(
        self,
        side_call: SideCallRequest,
        profile: ModelProfile,
        attempt: int,
        ends_s: float,
        listener: AnswerListener,
    ) -> Generated:
        """Call the model once; usage is billed here or by the caller that stores the answer."""

        def show(role: Role, part_index: int, part: Part) -> None:
            if isinstance(part, Text):
                listener.on_text(part.text)

        answer = Answer(show, self._clock)
        offset = side_call.attempt_offset
        if side_call.is_repeated:
            offset = int(self._clock.now().timestamp() * 1000)
        episode = Fence(0, side_call.history_version, offset + attempt)
        request = _request(side_call, profile, attempt)
        call = MeteredCall(episode, side_call.purpose, profile, answer, request, alive_ms=lambda: 0)
        self._ports.calls.opened(call, side_call.chat_id, side_call.owner.id)
        limit_s = min(side_call.call_s, ends_s - self._clock.monotonic())
        limits = StreamLimits(startup_s=limit_s, silence_s=limit_s, total_s=limit_s)
        outcome = CallOutcome.ABORTED
        try:
            stream = ModelStream(self._ports.model, limits, self._clock)
            end = await stream.read(request, answer, _never)
            if isinstance(end, Broken):
                outcome = CallOutcome.FAILED
                raise end.error
            assert isinstance(end, Answered)  # Side calls are never superseded.
            outcome = CallOutcome.DONE
        finally:
            entry = call.entry(side_call.chat_id, outcome)
            if outcome is not CallOutcome.DONE and entry is not None:
                self._ports.unbilled(entry, side_call.owner.id)
            self._ports.calls.closed(call)
        assert entry is not None  # A call with an answer is always billed.
        texts = (part.text for part in answer.content if isinstance(part, Text))
        assert answer.finished is not None  # A stream that ends without it is broken.
        return Generated("".join(texts), entry, answer.finished.reason)


def is_demo(profile: ModelProfile) -> bool:
    """Return whether a model is the scripted demo."""
    return profile.id == DEMO_MODEL_ID or profile.provider_id == DEMO_PROVIDER_ID


def _request(side_call: SideCallRequest, profile: ModelProfile, attempt: int) -> ModelRequest:
    # Providers count reasoning tokens as part of the answer.
    tokens_max = side_call.tokens_max + (THOUGHT_TOKENS if profile.reasoning_effort else 0)
    tokens_max = min(tokens_max, profile.output_tokens_max or tokens_max)
    return ModelRequest(
        profile.id,
        side_call.prompt,
        tools=(),
        may_call_tools=False,
        output_tokens_max=tokens_max,
        reasoning_effort=profile.reasoning_effort if side_call.may_reason else "",
        chat_id=side_call.chat_id,
        owner_id=side_call.owner.id,
        attempt=attempt,
    )


async def _never() -> ChatState:
    never: asyncio.Future[ChatState] = asyncio.get_running_loop().create_future()
    return await never
