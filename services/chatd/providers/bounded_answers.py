"""Bounds what the SDKs of providers read of an answer: they keep all of it in memory."""

from collections.abc import AsyncIterator

import httpx2


class AnswerUnreadable(httpx2.TransportError):
    """An answer is too large, or compressed so that its size is not known."""


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error where it exceeds the limit."""

    def __init__(self, body: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._body = body
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._body:
            count += len(piece)
            if count > self._bytes_max:
                raise AnswerUnreadable("it is too large or compressed")
            yield piece

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


async def ask_uncompressed(request: httpx2.Request) -> None:
    """Ask for an answer whose size is that of its bytes on the wire."""
    request.headers["Accept-Encoding"] = "identity"


class BoundAnswers:
    """Bounds each answer of a client; a hook for responses.

    Args:
        bytes_max: The most bytes of a body.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max

    async def __call__(self, response: httpx2.Response) -> None:
        """Bound the body of one.

        Raises:
            AnswerUnreadable: It is compressed.
        """
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise AnswerUnreadable("it is too large or compressed")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._bytes_max)
