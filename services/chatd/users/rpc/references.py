"""Checks that the users and groups of a request exist."""

from collections.abc import Sequence

from chatd.primitives.domain.errors import UnknownIds
from chatd.users.domain.grantees import Grantee, Grantees


async def require_grantees(
    known: Grantees,
    grantees: Sequence[Grantee],
    *,
    fields: Sequence[str],
    stored: Sequence[Grantee] = (),
) -> None:
    """Require that all users and groups exist or are already stored.

    Args:
        known: Checks which exist.
        grantees: The users and groups.
        fields: The request field of each of them.
        stored: Those that are not checked again.

    Raises:
        UnknownIds: one of them does not exist.
        CheckUnavailable: no gateway answers.
    """
    new = [each for each in grantees if each not in stored]
    unknown = await known.unknown(new) if new else frozenset()
    if unknown:
        problems = {
            field: f"names no {each.kind}"
            for each, field in zip(grantees, fields, strict=True)
            if each in unknown
        }
        resource = " or ".join(sorted({each.kind for each in unknown}))
        raise UnknownIds(resource, problems)
