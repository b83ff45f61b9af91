"""Responses that are not streams."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

_encode = msgspec.json.Encoder().encode


def json_response(
    document: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a document as JSON."""
    return Response(
        _encode(document), status_code=status, headers=headers, media_type="application/json"
    )
