"""The header that makes a repeated request one request."""

import uuid


def new_key() -> dict[str, str]:
    """Return the header with which a request can be repeated safely."""
    key = str(uuid.uuid4())  # noqa: TID251 (a command's own composition root)
    return {"Idempotency-Key": f'"{key}"'}
