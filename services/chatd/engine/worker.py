"""The worker of this process: one task for each chat it has claimed."""

import asyncio
import logging
from contextvars import Context
from types import TracebackType

from chatd.domain.chat import ChatState, ErrorKind, Owner, TurnError, WorkerId
from chatd.domain.commands import FailTurn
from chatd.domain.errors import ChatNotFound, FenceLost
from chatd.domain.transitions import fence_of
from chatd.engine.turn import TurnPorts, run_turn

logger = logging.getLogger(__name__)


class Worker:
    """Runs the turns of the chats that this process owns; leaving it stops them."""

    def __init__(self, worker_id: WorkerId, *, ports: TurnPorts, model: str) -> None:
        self.worker_id = worker_id
        self._ports = ports
        self._model = model
        self._turns = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Worker":
        await self._turns.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for turn in self._running:
            turn.cancel()
        await self._turns.__aexit__(kind, error, traceback)

    def start(self, claimed: ChatState, owner: Owner, context: Context) -> None:
        """Run the turn of a chat that was claimed for this worker, outside of the asking call."""
        turn = self._turns.create_task(self._run(claimed, owner), context=context)
        self._running.add(turn)
        turn.add_done_callback(self._running.discard)

    async def _run(self, claimed: ChatState, owner: Owner) -> None:
        """Run one turn; a crash of ours becomes an error of the chat, never a stuck one."""
        try:
            await run_turn(claimed, owner=owner, model=self._model, ports=self._ports)
        except (FenceLost, ChatNotFound):
            logger.info("a turn was taken over", extra={"chat_id": claimed.chat_id})
        except Exception:
            logger.exception("a turn crashed", extra={"chat_id": claimed.chat_id})
            await self._fail(claimed)

    async def _fail(self, claimed: ChatState) -> None:
        error = TurnError("The chat request failed.", ErrorKind.GENERIC, is_retryable=True)
        chats = self._ports.chats
        present = await chats.state(claimed.chat_id)
        if present.owner_epoch == claimed.owner_epoch:
            await chats.apply(claimed.chat_id, FailTurn(fence_of(present), error))
