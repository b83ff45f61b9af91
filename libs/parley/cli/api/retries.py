"""Requests that are retried until they are answered: reads, and changes that have a key."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from parley.cli.api.client import REQUEST_S_MAX, Api, ApiRefused, Unreachable
from parley.cli.errors import TimedOut

TRIES = 20
PAUSE_S = 0.5


def post(
    api: Api,
    path: str,
    body: Mapping[str, Any],
    *,
    key: str,
    needs: str,
    deadline: float,
    pause: Callable[[float], object],
    late: str,
) -> Any:
    """Post `body` and return the answer; retry while the server is unreachable.

    The key makes it safe to send the request again when its answer was lost.

    Args:
        api: The server.
        path: The path to post to.
        body: The JSON body.
        key: The idempotency key, the same for every attempt.
        needs: The key that the answer must contain.
        deadline: The `time.monotonic` at which to stop.
        pause: Sleeps that many seconds.
        late: The error message when the deadline passes.

    Raises:
        TimedOut: the deadline passed.
        Unreachable: the server was unreachable for too long.
        ApiRefused: the answer is a problem.
    """
    headers = {"Idempotency-Key": f'"{key}"'}

    def send(within_s: float) -> Any:
        return api.call("POST", path, body, headers, needs=needs, within_s=within_s)

    return _answer(send, deadline=deadline, pause=pause, late=late)


def get(
    api: Api,
    path: str,
    *,
    needs: str,
    deadline: float,
    pause: Callable[[float], object],
    late: str,
) -> Any:
    """Read a path and return the answer; retry while the server is unreachable.

    Args:
        api: The server.
        path: The path to read.
        needs: The key that the answer must contain.
        deadline: The `time.monotonic` at which to stop.
        pause: Sleeps that many seconds.
        late: The error message when the deadline passes.

    Raises:
        TimedOut: the deadline passed.
        Unreachable: the server was unreachable for too long.
        ApiRefused: the answer is a problem.
    """

    def send(within_s: float) -> Any:
        return api.call("GET", path, needs=needs, within_s=within_s)

    return _answer(send, deadline=deadline, pause=pause, late=late)


def _answer(
    send: Callable[[float], Any],
    *,
    deadline: float,
    pause: Callable[[float], object],
    late: str,
) -> Any:
    for attempt in range(1, TRIES + 1):
        try:
            return send(max(0.01, min(REQUEST_S_MAX, deadline - monotonic())))
        except (Unreachable, ApiRefused) as error:
            is_passing = isinstance(error, Unreachable) or error.status in (502, 503, 504)
            if is_passing and monotonic() + PAUSE_S > deadline:
                raise TimedOut(f"{late}: {error.message}") from error
            if not is_passing or attempt == TRIES:
                raise
            pause(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")
