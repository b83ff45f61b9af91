"""The history of a chat that rests follows what its process writes, and reads what others wrote."""

from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import Finished, TextDelta
from support.chatd.turns.turn_stage import ANN, CHAT, Stage

ANSWER = NewMessage(Role.ASSISTANT, (Text("yes"),))
HELLO = (NewMessage(Role.USER, (Text("hello"),), ANN.id),)


def answering(*_: object) -> tuple[TextDelta, Finished]:
    return TextDelta("yes"), Finished()


def send(stage: Stage) -> tuple[ChatState, ChatState]:
    """Let the user say hello; return the states around that."""
    before = stage.state
    return before, stage.send()


async def test_a_warm_chat_is_not_read_again_for_what_was_written_here() -> None:
    stage = Stage(answering)
    await stage.ask()
    stage.runner.appended(*send(stage), HELLO)
    await stage.run()
    assert stage.commits.reads == [0]
    assert [message.content for message in stage.model.requests[-1].messages] == [
        (Text("hello"),),
        (Text("yes"),),
        (Text("hello"),),
    ]


async def test_a_warm_chat_is_read_from_where_another_process_went_on() -> None:
    stage = Stage(answering)
    await stage.ask()
    known_to = stage.state.history_version
    stage.send()
    stage.chats.apply_now(CHAT, FinishTurn(fence_of(stage.state), (ANSWER,)))
    stage.runner.appended(*send(stage), HELLO)
    await stage.run()
    assert stage.commits.reads == [0, known_to]
    assert len(stage.model.requests[-1].messages) == 5
