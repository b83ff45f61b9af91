"""When a history is summarised, the summary request, and the rows that are stored of it.

The boundary is a compressed message that only the model sees; a prompt begins there. Context use is
measured by the newest answer since the boundary; messages after that answer are estimated.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from chatd.chats.domain.chat import Message, NewMessage
from chatd.chats.domain.pieces import CHAT_SUMMARIZED
from chatd.content.domain.messages import ErrorKind, FinishReason, Role, TurnError, Visibility
from chatd.content.domain.parts import (
    Fallback,
    Part,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.todos import Todo, open_todos_text
from chatd.content.domain.truncation import truncated, truncated_json
from chatd.models.domain.estimates import estimated_tokens
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import THRESHOLD_NEVER_PERCENT, THRESHOLD_PERCENT

COMPACTIONS_MAX = 3

SUMMARY_REQUEST = """\
The window for this conversation is nearly full. What you write now replaces everything above: \
whoever goes on, you included, will know nothing else. Write a handover, dense and factual, with \
these headings.

Rules from the user: every wish, limit, correction and prohibition that the user stated, in their \
words or close to them, not softened. They hold until the user takes them back. Leave out what \
system prompts or configuration files say; those will be there again.
Goal: what the user wants in the end, and the task at hand.
Decisions: what was decided, and why.
Facts: paths, names, commands, interfaces, settings and values that the work depends on, exactly.
Problems: errors that occurred, each with what fixed it. Do not turn one failure into a general \
rule against a tool.
State: what is done, what is half done, what remains.
Right now: the very action that was under way when this message came, and the next step after it.

Point to what can be read again, such as files and command output, instead of repeating it. No \
greeting, no praise, no questions. Call no tools."""

SUMMARY_PREFIX = """\
This is a handover of the conversation so far, which was too long to keep. You were in the middle \
of the work that it describes. Go on with it now, from the point where it stops; do not start \
over and do not ask whether to continue."""

KEPT_PART = 0.6
RESULT_BYTES_MIN = 1024
TEXT_BYTES_MIN = 2048


class CompactionSource(StrEnum):
    """What requested a summary."""

    AUTOMATIC = "automatic"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How much of the context window the next request would use."""

    tokens: int
    limit_tokens: int

    @property
    def percent(self) -> int:
        """Return the percentage of the window in use, rounded down; 0 if the window is unknown."""
        return self.tokens * 100 // self.limit_tokens if self.limit_tokens else 0

    def is_over(self, threshold_percent: int) -> bool:
        """Return whether a summary is due; never at 100 or when the use is unknown."""
        if not 0 <= threshold_percent <= THRESHOLD_NEVER_PERCENT:
            threshold_percent = THRESHOLD_PERCENT
        is_known = self.tokens > 0 and self.limit_tokens > 0
        return (
            is_known
            and threshold_percent < THRESHOLD_NEVER_PERCENT
            and self.tokens * 100 >= threshold_percent * self.limit_tokens
        )


def boundary_place(history: Sequence[Message]) -> int | None:
    """Return the index of the newest boundary; None if the history was never summarised."""
    for place in range(len(history) - 1, -1, -1):
        message = history[place]
        if message.is_compressed and message.visibility is Visibility.MODEL:
            return place
    return None


def since_boundary(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages since the newest summary, without the rows of summaries."""
    place = boundary_place(history)
    rows = history if place is None else history[place:]
    return tuple([message for message in rows if not message.is_compressed])


def context_use(rows: Sequence[Message], limit_tokens: int) -> ContextUse:
    """Measure a request of these rows by the newest measured answer and the rows after it.

    An estimated use counts only if no provider reported one.
    """
    estimated: ContextUse | None = None
    newer_tokens = 0
    for row in reversed(rows):
        use = row.use
        is_known = use is not None and use.is_estimate and estimated is not None
        if use is not None and not is_known and (prompt_tokens := _prompt_tokens(use)):
            tokens = prompt_tokens + use.output_tokens + newer_tokens
            measured = ContextUse(tokens, limit_tokens or use.context_limit_tokens)
            if not use.is_estimate:
                return measured
            estimated = measured
        newer_tokens += estimated_tokens(row.content)
    return estimated or ContextUse(0, limit_tokens)


def is_summary_too_large(
    history: Sequence[Message], limit_tokens: int, threshold_percent: int
) -> bool:
    """Return whether the first answer after the newest summary was over the threshold already.

    Only a direct answer to the summary proves that: messages that a user added since could be
    summarised.
    """
    if boundary_place(history) is None:
        return False
    rows = since_boundary(history)
    if not rows or rows[0].role is not Role.ASSISTANT or rows[0].use is None:
        return False
    if rows[0].use.is_estimate:
        return False
    first = ContextUse(_prompt_tokens(rows[0].use), limit_tokens)
    return first.is_over(threshold_percent)


def overflow_error(use: ContextUse) -> TurnError:
    """Return the error of a turn whose history cannot be made to fit."""
    return TurnError(
        "The conversation does not fit into the model's window, even summarised. "
        "Choose a model with a larger window or start a new chat.",
        ErrorKind.CONTEXT_OVERFLOW,
        detail=f"{use.tokens} of {use.limit_tokens} tokens are in use ({use.percent} %)",
    )


def is_resting_after_manual(history: Sequence[Message]) -> bool:
    """Return whether no message follows a summary that a user requested."""
    place = boundary_place(history)
    if place is None or since_boundary(history):
        return False
    results = (
        part
        for message in history[place:]
        for part in message.content
        if isinstance(part, ToolResult) and part.tool_name == CHAT_SUMMARIZED
    )
    return any(
        json.loads(result.result_json).get("source") == CompactionSource.MANUAL
        for result in results
    )


def summary_call(call_id: str, source: CompactionSource, threshold_percent: int) -> ToolCall:
    """Return the tool call that shows users that a summary is being made."""
    args = {"source": source, "threshold_percent": threshold_percent}
    return ToolCall(call_id, CHAT_SUMMARIZED, json.dumps(args))


def summary_result(call: ToolCall, summary: str, use: ContextUse) -> ToolResult:
    """Return the result of that call."""
    told = {
        "summary": summary,
        **json.loads(call.args_json),
        "usage_percent": use.percent,
        "context_tokens": use.tokens,
        "context_limit_tokens": use.limit_tokens,
    }
    result_json = json.dumps(told, ensure_ascii=False)
    return ToolResult(call.tool_call_id, call.tool_name, result_json, ToolOutcome.DONE)


def stored_summary(
    call: ToolCall,
    result: ToolResult,
    summary: str,
    use: ModelUse,
    finish_reason: FinishReason | None = None,
    todos: Sequence[Todo] = (),
    fallback: Fallback | None = None,
) -> tuple[NewMessage, ...]:
    """Return the rows of a summary: the boundary, the call and its result, all compressed.

    The to-do list is part of the boundary, because the calls that made it are before it. A fallback
    model that summarises first is named before the call, since the retry that names it ends.
    """
    blocks = (SUMMARY_PREFIX, summary, open_todos_text(todos))
    boundary = (Text("\n\n".join(block for block in blocks if block)),)
    return (
        NewMessage(Role.USER, boundary, visibility=Visibility.MODEL, is_compressed=True),
        NewMessage(
            Role.ASSISTANT,
            (call,) if fallback is None else (fallback, call),
            visibility=Visibility.USER,
            is_compressed=True,
            use=use,
            finish_reason=finish_reason,
        ),
        NewMessage(Role.TOOL, (result,), is_compressed=True),
    )


def _prompt_tokens(use: ModelUse) -> int:
    return use.input_tokens + use.cache_read_tokens + use.cache_write_tokens


def shortened(messages: Sequence[PromptMessage], times: int) -> tuple[PromptMessage, ...]:
    """Return a prompt cut to about 60 % of its size, `times` times; system messages stay.

    Cutting stops as soon as the size is reached, and goes from old to new, because the work depends
    most on the newest messages.
    """
    total_bytes = sum(_bytes_of(part) for message in messages for part in message.content)
    excess_bytes = total_bytes - round(total_bytes * KEPT_PART**times)
    made = list(messages)
    for kind in (ToolResult, Text):
        for place, message in enumerate(made):
            if excess_bytes <= 0:
                return tuple(made)
            if message.role is Role.SYSTEM:
                continue
            content = tuple(
                _cut(part) if isinstance(part, kind) else part for part in message.content
            )
            excess_bytes -= sum(map(_bytes_of, message.content)) - sum(map(_bytes_of, content))
            made[place] = replace(message, content=content)
    return tuple(made)


def _cut(part: Part) -> Part:
    match part:
        case ToolResult(result_json=result_json):
            return msgspec.structs.replace(
                part, result_json=truncated_json(result_json, RESULT_BYTES_MIN)
            )
        case Text(text):
            return msgspec.structs.replace(part, text=truncated(text, TEXT_BYTES_MIN))
        case _:
            return part


def _bytes_of(part: Part) -> int:
    match part:
        case ToolResult(result_json=text) | Text(text=text):
            return len(text.encode())
        case _:
            return 0
