"""Requests that may be sent again: the same key each time, until somebody answers."""

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
    """Post `body` and return the answer; try again while nobody answers.

    The key makes it safe to send the request again when the answer got lost.

    Args:
        api: The server.
        path: Where to post.
        body: What to send.
        key: What makes the request one, however often it is sent.
        needs: The name that the answer must have.
        deadline: The `time.monotonic` at which to give up.
        pause: Waits that many seconds.
        late: What to say when the deadline passes.

    Raises:
        TimedOut: the deadline passed.
        Unreachable: nobody answered for too long.
        ApiRefused: the answer is a problem.
    """
    headers = {"Idempotency-Key": f'"{key}"'}
    for attempt in range(1, TRIES + 1):
        left_s = max(0.01, min(REQUEST_S_MAX, deadline - monotonic()))
        try:
            return api.call("POST", path, body, headers, needs=needs, within_s=left_s)
        except (Unreachable, ApiRefused) as error:
            is_passing = isinstance(error, Unreachable) or error.status in (502, 503, 504)
            if is_passing and monotonic() + PAUSE_S > deadline:
                raise TimedOut(f"{late}: {error.message}") from error
            if not is_passing or attempt == TRIES:
                raise
            pause(PAUSE_S)
    raise AssertionError("the last attempt returns or raises")
