"""How many requests of one client are started before they are admitted."""

import gc
import weakref
from collections.abc import Callable

from gateway.http.limits.start_queue import StartQueue


class ReceivedRequest:
    """A request that notes when it is started."""

    def __init__(self, name: str, started: list[str], *, is_gone: bool = False) -> None:
        self._name = name
        self._started = started
        self._is_gone = is_gone
        self._when_gone: list[Callable[[], object]] = []
        self._admitted: Callable[[], None] | None = None

    def when_gone(self, tell: Callable[[], object]) -> Callable[[], object]:
        if self._is_gone:
            tell()
        else:
            self._when_gone.append(tell)
        return self._when_gone.clear

    def start(self, admitted: Callable[[], None]) -> None:
        assert not self._when_gone
        self._started.append(self._name)
        self._admitted = admitted

    def admit(self) -> None:
        assert self._admitted is not None
        self._admitted()

    def disconnect(self) -> None:
        for tell in self._when_gone:
            tell()


class FiveRequests:
    """Five requests of one client, with a limit of two."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.queue = StartQueue(unadmitted_max=2)
        self.requests = [ReceivedRequest(name, self.started) for name in "abcde"]
        for request in self.requests:
            self.queue.submit(b"key", request)


def test_requests_of_one_client_are_started_in_order_as_earlier_ones_are_admitted() -> None:
    received = FiveRequests()
    assert received.started == ["a", "b"]
    received.requests[1].admit()
    assert received.started == ["a", "b", "c"]
    received.requests[0].admit()
    assert received.started == ["a", "b", "c", "d"]


def test_requests_of_other_clients_do_not_wait() -> None:
    received = FiveRequests()
    received.queue.submit(b"another", ReceivedRequest("other", received.started))
    assert received.started == ["a", "b", "other"]


def test_a_request_that_is_admitted_and_then_ends_counts_once() -> None:
    received = FiveRequests()
    received.requests[0].admit()
    received.requests[0].admit()
    assert received.started == ["a", "b", "c"]


def test_a_request_whose_client_disconnected_is_never_started() -> None:
    received = FiveRequests()
    received.requests[2].disconnect()
    received.requests[0].admit()
    assert received.started == ["a", "b", "d"]


def test_a_request_whose_client_disconnected_before_is_never_started() -> None:
    received = FiveRequests()
    received.queue.submit(b"key", ReceivedRequest("gone", received.started, is_gone=True))
    for request in received.requests:
        request.admit()
    assert received.started == [*"abcde"]


def test_requests_that_are_dropped_are_kept_no_longer() -> None:
    received = FiveRequests()
    request = ReceivedRequest("late", received.started)
    kept = weakref.ref(request)
    received.queue.submit(b"key", request)
    request.disconnect()
    del request
    gc.collect()
    assert kept() is None


def test_nothing_is_started_after_the_end() -> None:
    received = FiveRequests()
    received.queue.close()
    received.requests[0].admit()
    received.queue.submit(b"another", ReceivedRequest("other", received.started))
    assert received.started == ["a", "b"]
