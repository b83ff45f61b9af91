"""Requests that are retried until they are answered: reads, and changes that have a key."""

from collections.abc import Callable, Mapping
from itertools import count
from time import monotonic
from typing import Any

from parley.cli.api.client import REQUEST_S_MAX, Api, ApiRefused, Unreachable
from parley.cli.errors import TimedOut

#: How often a server that cannot be reached is tried.
TRIES = 20
#: How often one is tried whose services restart, which takes longer on a busy machine.
RESTARTING_TRIES = 120
PAUSE_S = 0.5
#: A failing consumer of a hook is no restart of Parley; each try would ask it again.
HOOK_FAILED = "HOOK_FAILED"


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
    for attempt in count(1):
        try:
            return send(max(0.01, min(REQUEST_S_MAX, deadline - monotonic())))
        except (Unreachable, ApiRefused) as error:
            tries = _tries(error)
            if tries > 1 and monotonic() + PAUSE_S > deadline:
                raise TimedOut(f"{late}: {error.message}") from error
            if attempt >= tries:
                raise
            pause(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


def _tries(error: Unreachable | ApiRefused) -> int:
    if isinstance(error, Unreachable):
        return TRIES
    if error.code == HOOK_FAILED:
        return 1
    return RESTARTING_TRIES if error.status in (502, 503, 504) else 1
