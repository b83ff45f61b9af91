"""Agents are stopped with all below them, also those that start while the others are stopped."""

from chatd.chats.domain.agents import STOP_AGENT, stop_below
from chatd.chats.domain.chat import Status
from chatd.chats.domain.transitions import decide
from chatd.chats.domain.writes import ClearQueue
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId
from support.chatd.chats.transition_states import STATES

ROOT = ChatId("root")


class Growing:
    """Chats below a root, of which each starts others until it is stopped."""

    def __init__(self, later: dict[str, tuple[str, ...]]) -> None:
        self._below = [ChatId("first"), ChatId("second")]
        self._later = later
        self.stopped: list[str] = []

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        return tuple(self._below)

    async def stop(self, chat_id: ChatId) -> None:
        self.stopped.append(chat_id)
        self._below += map(ChatId, self._later.get(chat_id, ()))
        if chat_id == "second":
            raise ChatNotFound(chat_id)


async def test_agents_that_start_after_the_first_listing_are_stopped_too_each_once() -> None:
    chats = Growing({"first": ("third",), "third": ("fourth",)})
    await stop_below(chats, ROOT, chats.stop)
    assert chats.stopped == ["first", "second", "third", "fourth"]


def test_a_stopped_agent_drops_its_queue_in_every_status_in_which_it_works() -> None:
    for name in ("R1", "I1", "A1", "Q1"):
        decision = decide(STATES[name], STOP_AGENT)
        assert ClearQueue() in decision.writes, name
        assert decision.state.queue_length == 0
        assert decision.state.status in (Status.INTERRUPTING, Status.WAITING)
    reverting = decide(STATES["V1"], STOP_AGENT)
    assert (reverting.state.status, reverting.state.queue_length) == (Status.RUNNING, 0)
    failed = STATES["E1"]
    assert decide(failed, STOP_AGENT).state == failed
