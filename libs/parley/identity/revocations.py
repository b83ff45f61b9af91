"""Service tokens that were revoked before they expired."""

from collections.abc import Iterable
from typing import Protocol

from parley.identity.errors import RevocationsUnknown


class Revocations(Protocol):
    """The lookup that a guard makes for every service token."""

    def is_revoked(self, token_id: str) -> bool:
        """Return whether the token is revoked.

        Raises:
            RevocationsUnknown: No snapshot has arrived yet.
        """
        ...


class InMemoryRevocations:
    """Revoked ids in memory, unknown until the first snapshot.

    A service feeds it from the gateway; tests give it a snapshot at once.
    """

    def __init__(self, snapshot: Iterable[str] | None = None) -> None:
        self._revoked = frozenset(snapshot or ())
        self._is_known = snapshot is not None

    def is_revoked(self, token_id: str) -> bool:
        """Return whether the token is revoked.

        Raises:
            RevocationsUnknown: No snapshot has arrived yet.
        """
        if not self._is_known:
            raise RevocationsUnknown
        return token_id in self._revoked

    def replace(self, snapshot: Iterable[str]) -> None:
        """Replace all revoked ids by those of `snapshot`."""
        self._revoked = frozenset(snapshot)
        self._is_known = True

    def revoke(self, *token_ids: str) -> None:
        """Add revoked ids; without a snapshot the others stay unknown."""
        self._revoked |= frozenset(token_ids)
