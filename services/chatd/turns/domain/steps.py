"""The next action of a turn, decided from its history and its state alone.

The order of the rules matters. Dispatched calls are completed before anything else; then come the
client's results; only a complete history is summarised, finished or sent to a model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Message, NewMessage
from chatd.content.domain.messages import ErrorKind, Role, TurnError, Visibility
from chatd.content.domain.parts import Notice, Source, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.profile import THRESHOLD_PERCENT
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.compaction import (
    COMPACTIONS_MAX,
    CompactionSource,
    ContextUse,
    context_use,
    is_resting_after_manual,
    is_summary_too_large,
    overflow_error,
    since_boundary,
)
from chatd.turns.domain.loops import ASK_AFTER, repetitions

REPETITIONS_MAX = 50

STEPS_MAX = 1200
PAUSES_MAX = 5


def repeated_call(
    history: Sequence[Message], turn_id: MessageId, repetitions_max: int
) -> ToolCall | None:
    """Return a call of the newest answer that too many answers of the turn made identically.

    Identical calls within one answer count once.
    """
    answers = _calls_of_turn(history, turn_id)
    newest = next(answers, ())
    if not newest:
        return None
    counts = {_identity(call): 1 for call in newest}
    for calls in answers:
        for identity in counts.keys() & {_identity(call) for call in calls}:
            counts[identity] += 1
    return next((call for call in newest if counts[_identity(call)] >= repetitions_max), None)


def stuck_call(history: Sequence[Message], turn_id: MessageId) -> ToolCall | None:
    """Return a call of the newest answer that had the same result too often in the turn."""
    newest = next(_calls_of_turn(history, turn_id), ())
    counted = (call for call in newest if repetitions(history, turn_id, call)[0] >= ASK_AFTER)
    return next(counted, None)


def _calls_of_turn(
    history: Sequence[Message], turn_id: MessageId
) -> Iterator[tuple[ToolCall, ...]]:
    """Yield the calls of each answer since the turn began, the newest first."""
    for message in reversed(history):
        if message.id <= turn_id:
            return
        if message.role is Role.ASSISTANT and not message.is_compressed:
            yield tuple(
                part
                for part in message.content
                if isinstance(part, ToolCall) and not part.provider_executed
            )


def _identity(call: ToolCall) -> tuple[str, str]:
    return call.tool_name, call.args_json


@dataclass(frozen=True, slots=True)
class StepPolicy:
    """The inputs of the rules beside the chat."""

    context_limit_tokens: int = 0
    threshold_percent: int = THRESHOLD_PERCENT
    is_final_step_compacted: bool = True
    ending_tools: frozenset[str] = frozenset()
    steps_max: int = STEPS_MAX
    repetitions_max: int = REPETITIONS_MAX
    is_attended: bool = True  # Whether a person can be asked before a call is repeated once more.


@dataclass(frozen=True, slots=True)
class RunTools:
    """Complete the dispatched calls, then add all results to the history."""


@dataclass(frozen=True, slots=True)
class EnterAction:
    """Wait for the answers of a client or a person."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Summarise the history; one that was too long for the model is shortened first."""

    source: CompactionSource
    use: ContextUse
    shortenings: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The turn is over."""


@dataclass(frozen=True, slots=True)
class StepLimit:
    """The turn has too many steps or repeats itself; end it with a notice to the user."""

    notice: NewMessage


@dataclass(frozen=True, slots=True)
class Fail:
    """The turn cannot continue."""

    error: TurnError


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model for the next step."""


Action = RunTools | EnterAction | Compact | Finish | StepLimit | Fail | CallModel


def next_action(state: ChatState, history: Sequence[Message], policy: StepPolicy) -> Action:
    """Return the next action of a running chat with this live history."""
    if state.pending and all(call.is_asked for call in state.pending):
        return EnterAction()
    if state.pending:
        return RunTools()
    rows = since_boundary(history)
    use = context_use(rows, policy.context_limit_tokens)
    if state.is_compaction_requested:
        has_material = any(message.role is Role.ASSISTANT for message in rows)
        return Compact(CompactionSource.MANUAL, use) if has_material else Finish()
    if is_resting_after_manual(history) or _has_ended(state, rows, policy.ending_tools):
        return Finish()
    shortenings = _shortenings(state)
    is_over = shortenings > 0 or use.is_over(policy.threshold_percent)
    overflow = _overflow(state, history, use, policy) if is_over else None
    pauses = _pauses(state, rows)
    if pauses >= PAUSES_MAX:
        return StepLimit(_pause_notice())
    if rows and not pauses and _is_final_answer(rows[-1]):
        goes_on = is_over and overflow is None and policy.is_final_step_compacted
        return Compact(CompactionSource.AUTOMATIC, use) if goes_on else Finish()
    if steps_of_turn(state, history) >= policy.steps_max:
        return StepLimit(_step_notice(policy.steps_max))
    looping = repeated_call(history, state.turn_id, policy.repetitions_max)
    if looping is not None:
        return StepLimit(_loop_notice(looping, policy.repetitions_max))
    stuck = None if policy.is_attended else stuck_call(history, state.turn_id)
    if stuck is not None:
        return StepLimit(_loop_notice(stuck, ASK_AFTER))
    if overflow is not None:
        return Fail(overflow)
    if is_over:
        return Compact(CompactionSource.AUTOMATIC, use, shortenings)
    return CallModel()


def _shortenings(state: ChatState) -> int:
    """Return how often the history must be shortened for a summary: once more per failure."""
    retry = state.retry
    is_too_long = retry is not None and retry.error.kind is ErrorKind.CONTEXT_OVERFLOW
    return max(1, state.generation_attempt - 1) if is_too_long else 0


def _overflow(
    state: ChatState, history: Sequence[Message], use: ContextUse, policy: StepPolicy
) -> TurnError | None:
    """Return why another summary would not help; None if it may."""
    is_too_large = is_summary_too_large(
        history, policy.context_limit_tokens, policy.threshold_percent
    )
    return overflow_error(use) if is_too_large or state.compactions >= COMPACTIONS_MAX else None


def _has_ended(state: ChatState, rows: Sequence[Message], ending_tools: frozenset[str]) -> bool:
    """Return whether a tool that ends turns succeeded in this one."""
    return bool(ending_tools) and any(
        isinstance(part, ToolResult)
        and part.tool_name in ending_tools
        and part.outcome is ToolOutcome.DONE
        for message in rows
        if message.id > state.turn_id
        for part in message.content
    )


def _is_final_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT and not any(
        isinstance(part, ToolCall) and not part.provider_executed for part in message.content
    )


def _pauses(state: ChatState, rows: Sequence[Message]) -> int:
    """Count the newest answers that ended while the provider's own tools were still running."""
    count = 0
    for message in reversed(rows):
        if message.id <= state.turn_id or not _is_paused(message):
            break
        count += 1
    return count


def _is_paused(message: Message) -> bool:
    said = [part for part in message.content if not isinstance(part, Source)]
    last = said[-1] if said else None
    is_provided = isinstance(last, ToolCall | ToolResult) and last.provider_executed
    return message.role is Role.ASSISTANT and is_provided and _is_final_answer(message)


def steps_of_turn(state: ChatState, history: Sequence[Message]) -> int:
    """Count the answers since the message that started the turn."""
    steps = 0
    for message in reversed(history):
        if message.id <= state.turn_id:
            break
        steps += message.role is Role.ASSISTANT and not message.is_compressed
    return steps


def _step_notice(steps_max: int) -> NewMessage:
    return _notice(f"The turn was stopped after {steps_max} steps. Send a message to let it go on.")


def _pause_notice() -> NewMessage:
    return _notice(
        f"The provider paused its work {PAUSES_MAX} times in a row. Send a message to let it go on."
    )


def _loop_notice(call: ToolCall, repetitions_max: int) -> NewMessage:
    return _notice(
        f"The turn was stopped: the model called {call.tool_name} {repetitions_max} times with the "
        "same arguments. Say what it should do instead, or that it should go on."
    )


def _notice(told: str) -> NewMessage:
    return NewMessage(Role.ASSISTANT, (Notice(told),), visibility=Visibility.USER)
