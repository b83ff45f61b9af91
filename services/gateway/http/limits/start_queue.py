"""Limits the requests of one client that were started and have not been admitted yet.

A request costs most of its processing before it is admitted: it is parsed, routed, authenticated
and counted, only to wait then for other requests of its user. A client that sends thousands at once
would keep the event loop busy with that while the requests of others wait. So only some requests
of a client are started; the rest wait here, in order, and cost next to nothing. A request whose
client disconnects while it waits is dropped at once.
"""

from collections.abc import Callable
from typing import Final, Protocol

UNADMITTED_MAX: Final = 16


class StartableRequest(Protocol):
    """A request whose head was received."""

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        """Call `tell` once the client disconnects, possibly at once; return how to cancel that."""
        ...

    def start(self, admitted: Callable[[], None]) -> None:
        """Start it; `admitted` is to be called once it is admitted or has ended."""
        ...


class _Client:
    """The requests of one client."""

    __slots__ = ("unadmitted", "waiting")

    def __init__(self) -> None:
        self.unadmitted = 0
        #: In order, each with what cancels the report of its client's disconnection.
        self.waiting: dict[StartableRequest, Callable[[], object]] = {}


class StartQueue:
    """Starts requests, only some of each client until they are admitted.

    Args:
        unadmitted_max: The limit of one client.
    """

    def __init__(self, unadmitted_max: int = UNADMITTED_MAX) -> None:
        self._unadmitted_max = unadmitted_max
        self._clients: dict[bytes, _Client] = {}
        self._is_closed = False

    def submit(self, key: bytes, request: StartableRequest) -> None:
        """Start a request of a client, now or after earlier ones.

        Args:
            key: Distinguishes clients.
            request: The request; it is dropped if its client disconnects while it waits.
        """
        if self._is_closed:
            return
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _Client()
        if client.unadmitted < self._unadmitted_max:
            self._start(key, client, request)
            return
        client.waiting[request] = _nothing
        forget = request.when_gone(lambda: client.waiting.pop(request, None))
        if request in client.waiting:
            client.waiting[request] = forget

    def close(self) -> None:
        """Drop all requests that wait, and start no further ones."""
        self._is_closed = True
        for client in self._clients.values():
            client.waiting.clear()

    def _start(self, key: bytes, client: _Client, request: StartableRequest) -> None:
        client.unadmitted += 1
        request.start(self._when_admitted(key, client))

    def _start_waiting(self, key: bytes, client: _Client) -> None:
        while client.waiting and client.unadmitted < self._unadmitted_max:
            request = next(iter(client.waiting))
            forget = client.waiting.pop(request)
            forget()
            self._start(key, client, request)
        if not client.unadmitted:
            self._clients.pop(key, None)

    def _when_admitted(self, key: bytes, client: _Client) -> Callable[[], None]:
        """Return what is called, possibly repeatedly, once a request is admitted or has ended."""
        is_counted = True

        def admitted() -> None:
            nonlocal is_counted
            if is_counted:
                is_counted = False
                client.unadmitted -= 1
                self._start_waiting(key, client)

        return admitted


def _nothing() -> None:
    """Cancel nothing: the client is already disconnected."""
