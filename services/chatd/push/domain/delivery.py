"""Deliveries: what the answer of a push service means, and how long it is left alone then."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BACKOFF_FIRST_S: Final = 30.0
BACKOFF_MAX_S: Final = 3600.0
RETRY_AFTER_MAX_S: Final = 24 * 3600.0


class Result(StrEnum):
    """What became of a notification."""

    SENT = "sent"
    GONE = "gone"  # The subscription has ended, and is deleted.
    REFUSED = "refused"  # The push service does not accept the request, the key or the size.
    LIMITED = "limited"  # The push service asks for fewer.
    BUSY = "busy"  # It was not tried, because too much is sent already.
    FAILED = "failed"  # The push service failed or did not answer.


class Dropped(StrEnum):
    """Why an event of a chat was not sent."""

    SUPERSEDED = "superseded"  # The chat changed, is hidden, or continues by itself.
    QUEUE_FULL = "queue_full"
    BACKOFF = "backoff"  # The subscription is left alone for a while.
    UNREADABLE = "unreadable"  # The database or the keys cannot be read.
    ERROR = "error"  # Something unexpected happened, which is in the log.


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a notification.

    Attributes:
        problem: Why it was not accepted, in words for the user; empty if it was.
        retry_after_s: How long the push service asks to wait; None if it does not say.
    """

    result: Result
    problem: str = ""
    retry_after_s: float | None = None


_WORDS: Final = {
    400: "the push service does not accept the request",
    401: "the push service does not accept the key of this installation",
    403: "the push service does not accept the key of this installation",
    404: "the subscription has ended; turn notifications on again on that device",
    410: "the subscription has ended; turn notifications on again on that device",
    413: "the notification is too large for the push service",
    429: "the push service asks for fewer notifications",
}


def result_of_answer(status: int, retry_after: str = "") -> Answer:
    """Return what an answer of a push service means; its text is never read."""
    if 200 <= status < 300:
        return Answer(Result.SENT)
    if 300 <= status < 400:
        return Answer(Result.REFUSED, f"the push service redirects ({status})")
    words = _WORDS.get(status) or (
        "the push service failed" if status >= 500 else "the push service does not accept it"
    )
    problem = f"{words} ({status})"
    match status:
        case 404 | 410:
            return Answer(Result.GONE, problem)
        case 429:
            return Answer(Result.LIMITED, problem, _seconds(retry_after))
        case _ if status >= 500:
            return Answer(Result.FAILED, problem, _seconds(retry_after))
        case _:
            return Answer(Result.REFUSED, problem)


def not_tried() -> Answer:
    """Return the result of a request that could not be begun, which says nothing of the device."""
    return Answer(Result.BUSY, "too many notifications are being sent; try again later")


def no_answer(problem: str) -> Answer:
    """Return the result of a request without an answer."""
    return Answer(Result.FAILED, problem)


def backoff_s(answer: Answer, failures: int) -> float:
    """Return for how long nothing is sent to a subscription after so many failures in a row."""
    if answer.retry_after_s is not None:
        return min(answer.retry_after_s, RETRY_AFTER_MAX_S)
    return min(BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 16), BACKOFF_MAX_S)


def _seconds(text: str) -> float | None:
    """Return the seconds of `Retry-After`; a date counts as absent."""
    return float(text) if text.isascii() and text.isdigit() else None
