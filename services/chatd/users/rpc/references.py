"""Checks that users and groups in a request exist, and that many checks are told at once."""

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
    """Let only users and groups pass that exist or are stored already.

    Args:
        known: Tells which exist.
        grantees: The users and groups.
        fields: Where each of them is in the request.
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
