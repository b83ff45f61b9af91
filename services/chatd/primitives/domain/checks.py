"""Checks that are made together, so that all that is wrong with a request is told at once."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from chatd.primitives.domain.errors import InvalidRequest

T = TypeVar("T")


def all_of(checks: Iterable[Callable[[], T]]) -> tuple[T, ...]:
    """Return what every check returns.

    Raises:
        InvalidRequest: some of them refuse; it has the faults of all.
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
