"""What the auditor reports of an invariant."""

from dataclasses import dataclass
from typing import Final

IDS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one invariant: the number of violations, and the ids of the first ones."""

    name: str
    sentence: str
    count: int = 0
    ids: tuple[str, ...] = ()
