"""Compression of JSON answers with gzip, for clients that accept it.

Only answers to GET are compressed, and none that could contain a secret: a page that can make a
browser ask for texts of its choice could measure how well they compress beside the secret (BREACH).
Streams and files are not compressed. The ETag is that of the document in either form: conditions
on changes name it.
"""

import asyncio
import zlib
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

JSON: Final = "application/json"
#: Below this, a packet is sent in any case.
BYTES_MIN: Final = 1400
LEVEL: Final = 1
#: Compressed in one go; between pieces other requests are served.
PIECE_BYTES: Final = 64 * 1024
#: The format of gzip, with the largest window.
GZIP: Final = 16 + zlib.MAX_WBITS
#: Answers below these paths may contain keys, tokens or codes.
SECRET_PATHS: Final = (
    "/api/v1/me",
    "/api/v1/sign-in",
    "/api/v1/users",
    "/api/v1/service-tokens",
    "/api/v1/secrets",
    "/api/v1/providers",
    "/api/v1/settings",
)


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding allows gzip."""
    allowed: dict[str, bool] = {}
    for entry in header.lower().split(","):
        name, *parameters = (each.strip() for each in entry.split(";"))
        allowed[name] = all(_weight(each) > 0 for each in parameters if each.startswith("q="))
    return allowed.get("gzip", allowed.get("*", False))


def may_compress(request: Request, response: Response) -> bool:
    """Return whether an answer is JSON that is worth it, and no secret can be in it."""
    path = request.scope["path"]
    return (
        request.method == "GET"
        and type(response) is Response
        and response.headers.get("content-type") == JSON
        and len(response.body) >= BYTES_MIN
        and not any(path == each or path.startswith(f"{each}/") for each in SECRET_PATHS)
    )


async def compressed(request: Request, response: ASGIApp) -> ASGIApp:
    """Return an answer, compressed if it may be and the client accepts that."""
    if not isinstance(response, Response) or not may_compress(request, response):
        return response
    response.headers.add_vary_header("Accept-Encoding")
    if not accepts_gzip(request.headers.get("accept-encoding", "")):
        return response
    packer = zlib.compressobj(LEVEL, wbits=GZIP)
    body, packed = memoryview(response.body), bytearray()
    for place in range(0, len(body), PIECE_BYTES):
        if place:
            await asyncio.sleep(0)  # noqa: TID251 (no time passes; others get their turn)
        packed += packer.compress(body[place : place + PIECE_BYTES])
    packed += packer.flush()
    headers = {**response.headers, "content-encoding": "gzip", "content-length": str(len(packed))}
    return Response(bytes(packed), status_code=response.status_code, headers=headers)


def _weight(parameter: str) -> float:
    try:
        return float(parameter.removeprefix("q="))
    except ValueError:
        return 0.0
