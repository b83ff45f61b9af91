"""A provider that says the history is too long: it is shortened, summarised, and tried again."""

from collections.abc import Iterable

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind, Role
from chatd.content.domain.parts import Text, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
)
from chatd.turns.domain.compaction import SUMMARY_REQUEST, shortened
from support.chatd.turns.turn_stage import Stage

LONG = "word " * 4000


def size_of(request: ModelRequest) -> int:
    return sum(
        len(part.text)
        for message in request.messages
        for part in message.content
        if isinstance(part, Text)
    )


class Narrow:
    """Refuses what is longer than its window, which nobody knew before."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.refused = 0

    def __call__(self, request: ModelRequest) -> Iterable[ModelEvent]:
        if size_of(request) > self.window:
            self.refused += 1
            raise ModelError(ErrorKind.CONTEXT_OVERFLOW, "too long", is_retryable=False)
        if request.messages[-1].content == (Text(SUMMARY_REQUEST),):
            yield TextDelta("what happened so far")
        else:
            yield TextDelta("answer")
        yield Finished()


async def test_a_history_that_is_too_long_is_shortened_and_summarised_and_the_turn_goes_on() -> (
    None
):
    narrow = Narrow(15_000)
    stage = Stage(narrow)
    await stage.ask(LONG)
    assert narrow.refused == 1
    assert stage.texts[-1] == ("assistant", "answer")
    assert (stage.status, stage.state.compactions) == (Status.WAITING, 1)


async def test_a_window_that_nothing_fits_ends_the_turn_after_three_tries_with_the_reason() -> None:
    narrow = Narrow(10)
    stage = Stage(narrow)
    await stage.ask(LONG)
    assert stage.status is Status.ERROR
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.CONTEXT_OVERFLOW
    assert narrow.refused == 4
    assert [role for role, _ in stage.texts] == ["user"]


def result(call_id: str, text: str) -> PromptMessage:
    content = ToolResult(call_id, "look", f'{{"output": "{text}"}}', ToolOutcome.DONE)
    return PromptMessage(Role.TOOL, (content,))


def test_old_results_are_cut_first_and_instructions_never() -> None:
    system = PromptMessage(Role.SYSTEM, (Text("rules " * 1000),))
    asked = PromptMessage(Role.USER, (Text("please " * 1000),))
    old, new = result("a", "x" * 20_000), result("b", "y" * 4_000)
    once = shortened((system, asked, old, new), 1)
    assert once[0] == system
    assert once[1] == asked
    assert once[3] == new
    cut = once[2].content[0]
    assert isinstance(cut, ToolResult)
    assert len(cut.result_json) <= 1024
    often = shortened((system, asked, old, new), 4)
    assert often[0] == system
    assert all(cut != whole for cut, whole in zip(often[1:], (asked, old, new), strict=True))
