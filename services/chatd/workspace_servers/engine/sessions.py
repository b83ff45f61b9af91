"""The sessions of this process with workspace servers: one for each chat, server and profile.

A chat in a mode that only reads has servers of its own, started with a profile that only reads; it
never meets one that may write.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from chatd.primitives.domain.ids import ChatId
from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.ports import LineReducer, ServerPlace, ServerProcesses
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.engine.session import STOPPED, ServerSession
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.rpc import detached
from parley.tasks import Starter, is_set_within

SESSIONS_MAX: Final = 128
OF_OWNER_MAX: Final = 32
OF_CHAT_MAX: Final = 8
FAILURES_MAX: Final = 1024
PAUSE_S: Final = 1.0
PAUSE_S_MAX: Final = 60.0
#: A server that ran for so long before it failed is started again at once.
GOOD_S: Final = 60.0
#: How long a turn or a call waits for a server to start.
STARTING_S: Final = 15.0
STILL_STARTING: Final = "it is still starting"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What a session belongs to."""

    chat_id: ChatId
    workspace_id: str
    epoch: int
    name: str
    digest: str
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class _Failures:
    """Failures of a server in a row."""

    count: int
    until_s: float
    reason: str


class ServerSessions:
    """Starts servers when they are needed, and again after they failed, with growing pauses.

    Args:
        processes: Runs servers.
        tasks: Owns the sessions.
        clock: The clock.
        reducer: Reduces large lines.
    """

    def __init__(
        self, processes: ServerProcesses, tasks: Starter, clock: Clock, reducer: LineReducer
    ) -> None:
        self._processes = processes
        self._reducer = reducer
        self._tasks = tasks
        self._clock = clock
        self._sessions: dict[SessionKey, ServerSession] = {}
        self._failures: BoundedCache[SessionKey, _Failures] = BoundedCache(FAILURES_MAX)

    async def session(self, place: ServerPlace, definition: ServerDefinition) -> ServerSession:
        """Return a running session, started if there is none.

        Raises:
            ServerFailed: The server cannot be used now.
        """
        key = _key(place, definition)
        session = self._sessions.get(key)
        if session is None or session.stopping.is_set():
            session = self._started(key, place, definition)
        if not await is_set_within(session.ready, STARTING_S, self._clock):
            raise ServerFailed(STILL_STARTING)
        if session.failure:
            raise ServerFailed(session.failure)
        return session

    def running(self, place: ServerPlace, definition: ServerDefinition) -> ServerSession | None:
        """Return the session of a place if it runs."""
        session = self._sessions.get(_key(place, definition))
        return session if session is not None and session.is_running else None

    def failure(self, place: ServerPlace, definition: ServerDefinition) -> str:
        """Return why the server of a place failed last; empty if it did not."""
        failures = self._failures.get(_key(place, definition))
        return "" if failures is None else failures.reason

    def stop(self, workspace_id: str, name: str) -> None:
        """Stop all sessions of a server of a workspace."""
        for key, session in self._sessions.items():
            if (key.workspace_id, key.name) == (workspace_id, name):
                session.stopping.set()

    def keep_only(self, workspace_id: str, digests: Mapping[str, str]) -> None:
        """Stop the sessions of a workspace whose definition is not among these, by name."""
        for key, session in self._sessions.items():
            if key.workspace_id == workspace_id and digests.get(key.name) != key.digest:
                session.stopping.set()

    def workspaces(self) -> frozenset[str]:
        """Return the workspaces that have sessions."""
        return frozenset(key.workspace_id for key in self._sessions)

    def close(self) -> None:
        """Stop all sessions."""
        for session in self._sessions.values():
            session.stopping.set()

    def _started(
        self, key: SessionKey, place: ServerPlace, definition: ServerDefinition
    ) -> ServerSession:
        failures = self._failures.get(key)
        pause_s = 0.0 if failures is None else failures.until_s - self._clock.monotonic()
        if failures is not None and pause_s > 0:
            raise ServerFailed(failures.reason, pause_s)
        self._require_room(place)
        # Those of an earlier definition or placement.
        for other, session in self._sessions.items():
            if replace(other, digest="", epoch=0) == replace(key, digest="", epoch=0):
                session.stopping.set()
        session = ServerSession(self._processes, place, definition, self._clock, self._reducer)
        self._sessions[key] = session
        self._tasks.create_task(
            self._run(key, session), name="workspace_servers.run", context=detached()
        )
        return session

    def _require_room(self, place: ServerPlace) -> None:
        """Raise ServerFailed if too many servers run, of the chat, of its owner, or of all."""
        places = [session.place for session in self._sessions.values()]
        of_owner = sum(1 for each in places if each.owner.id == place.owner.id)
        of_chat = sum(1 for each in places if each.chat_id == place.chat_id)
        if of_chat >= OF_CHAT_MAX:
            raise ServerFailed(f"{OF_CHAT_MAX} servers of this chat run already; try again later")
        if of_owner >= OF_OWNER_MAX:
            raise ServerFailed(f"{OF_OWNER_MAX} servers of your chats run already; try again later")
        if len(places) >= SESSIONS_MAX:
            raise ServerFailed(f"{SESSIONS_MAX} servers run already; try again later")

    async def _run(self, key: SessionKey, session: ServerSession) -> None:
        began_s = self._clock.monotonic()
        try:
            await session.run()
        finally:
            if self._sessions.get(key) is session:
                del self._sessions[key]
            now_s = self._clock.monotonic()
            if session.failure == STOPPED:
                self._failures.pop(key)
            else:
                before = self._failures.get(key)
                is_new = before is None or now_s - began_s >= GOOD_S
                count = 1 if is_new or before is None else before.count + 1
                pause_s = min(PAUSE_S * 2 ** min(count - 1, 16), PAUSE_S_MAX)
                self._failures.put(key, _Failures(count, now_s + pause_s, session.failure))


def _key(place: ServerPlace, definition: ServerDefinition) -> SessionKey:
    return SessionKey(
        place.chat_id,
        place.location.workspace_id,
        place.location.epoch,
        definition.name,
        definition.digest,
        place.is_read_only,
    )
