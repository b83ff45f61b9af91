"""Runs several checks and reports all their errors together."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from chatd.primitives.domain.errors import InvalidRequest

T = TypeVar("T")


def all_of(checks: Iterable[Callable[[], T]]) -> tuple[T, ...]:
    """Return the results of all checks.

    Raises:
        InvalidRequest: some checks failed; it contains the faults of all of them.
    """
    passed: list[T] = []
    refused: list[InvalidRequest] = []
    for check in checks:
        try:
            passed.append(check())
        except InvalidRequest as refusal:
            refused.append(refusal)
    if refused:
        raise InvalidRequest.together(refused)
    return tuple(passed)
