"""Parley's HTTP API for commands: requests, event streams, and problems as one-line errors.

The standard library's client is sufficient here and imports in a few milliseconds.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from parley.cli.api.server import Server
from parley.cli.errors import CliError
from parley.cli.time_words import MINUTE_S, ahead

REQUEST_S_MAX = 30.0
EVENTS = "text/event-stream"
PROBLEM_BYTES_MAX = 64 * 1024
PIECE_BYTES = 256 * 1024
#: Shorter waits are those of a busy server, which most commands make themselves.
SAID_FROM_S = 2 * MINUTE_S

#: The code of a wrong login, password or second factor, which no API key mends.
SIGN_IN_REFUSED = "SIGN_IN_REFUSED"


class Unreachable(CliError):
    """The server did not answer, or the answer was cut off; the same request may succeed later."""


class ApiRefused(CliError):
    """The server answered with a problem."""

    def __init__(
        self,
        status: int,
        code: str | None,
        message: str,
        *,
        retry_after_s: float | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.facts = facts or {}


class NotParley(CliError):
    """The answer is not one of Parley's API."""

    def __init__(self, url: str, said: str) -> None:
        super().__init__(f"{url} answered {said}: that is not Parley; check PARLEY_URL")
        self.url = url


class Api:
    """One server, called with one connection per request."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        needs: str | None = None,
        within_s: float = REQUEST_S_MAX,
    ) -> Any:
        """Make one request and return its decoded JSON answer, or None for an empty one.

        Args:
            method: The HTTP method.
            path: The path below the server's URL.
            body: The JSON body.
            headers: Headers in addition to the API key.
            needs: The key that the answer, a JSON object, must contain.
            within_s: How long to wait for the server.

        Raises:
            Unreachable: there was no complete answer.
            ApiRefused: the answer is a problem.
            NotParley: the answer is not one of Parley's API.
        """
        return self.exchange(method, path, body, headers, needs=needs, within_s=within_s)[0]

    def exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        needs: str | None = None,
        within_s: float = REQUEST_S_MAX,
    ) -> tuple[Any, Message]:
        """Make one request as `call` does, and return its answer with the headers."""
        content = None if body is None else json.dumps(body)
        sent = {**(headers or {})} | ({"Content-Type": "application/json"} if content else {})
        with self._exchange(method, path, content, sent, within_s) as (response, _):
            answer = response.read()
        try:
            found = json.loads(answer) if answer else None
        except ValueError as error:
            raise NotParley(self._server.url, f"{_kind(response)!r} that is not JSON") from error
        if needs is not None and not (isinstance(found, dict) and needs in found):
            raise NotParley(self._server.url, f"without {needs!r}")
        return found, response.headers

    def download(self, path: str, kind: str) -> Iterator[bytes]:
        """Yield the bytes of a file of one media type.

        Raises:
            Unreachable: the answer was cut off.
            ApiRefused: the answer is a problem.
            NotParley: the answer is of another media type.
        """
        with self._exchange("GET", path, None, {"Accept": kind}, REQUEST_S_MAX) as (response, _):
            if _kind(response) != kind:
                raise NotParley(self._server.url, f"{_kind(response)!r} and no {kind}")
            while piece := response.read(PIECE_BYTES):
                yield piece

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str], *, open_s: float
    ) -> Iterator[tuple[HTTPResponse, socket.socket]]:
        """Yield the open answer to a GET, and its socket for setting a read timeout.

        Raises:
            Unreachable: the stream could not be opened, or was cut off.
            ApiRefused: the answer is a problem.
            NotParley: the answer is not an event stream.
        """
        accept = {"Accept": EVENTS, **headers}
        with self._exchange("GET", path, None, accept, open_s) as (response, opened):
            if _kind(response) != EVENTS:
                raise NotParley(self._server.url, f"{_kind(response)!r} and no events")
            yield response, opened

    @contextmanager
    def _exchange(
        self,
        method: str,
        path: str,
        content: str | None,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> Iterator[tuple[HTTPResponse, socket.socket]]:
        give_up_at = monotonic() + timeout_s
        connection = self._connection(timeout_s)
        try:
            connection.connect()
            opened = connection.sock
            opened.settimeout(max(0.01, give_up_at - monotonic()))
            connection.request(
                method,
                urlsplit(self._server.url).path + path,
                body=content,
                headers={**self._credential(), **headers},
            )
            response = connection.getresponse()
            if response.status >= 400:
                raise _refusal(response)
            if response.status >= 300:
                place = response.getheader("Location", "nowhere")
                raise NotParley(self._server.url, f"{response.status} and points to {place!r}")
            yield response, opened
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(
                f"{self._server.url} does not answer ({reason}): is Parley running?"
            ) from error
        finally:
            connection.close()

    def _credential(self) -> Mapping[str, str]:
        key = self._server.api_key
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _connection(self, timeout_s: float) -> HTTPConnection:
        parts = urlsplit(self._server.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=timeout_s)


def _kind(response: HTTPResponse) -> str:
    return response.headers.get_content_type()


def _refusal(response: HTTPResponse) -> ApiRefused:
    """Return the problem document of `response` as an error."""
    return refusal_of(response.status, response.reason, response.read(PROBLEM_BYTES_MAX))


def refusal_of(status: int, reason: str, document: bytes) -> ApiRefused:
    """Return a problem document as an error."""
    try:
        problem = json.loads(document)
    except ValueError:
        problem = {}
    if not isinstance(problem, dict):
        problem = {}
    code = problem.get("code")
    said = [str(problem[key]) for key in ("title", "detail") if problem.get(key)]
    message = ": ".join(said) or f"the server answered {status} {reason}".rstrip()
    if status == 401 and code != SIGN_IN_REFUSED:
        message += " (check PARLEY_API_KEY, the file api_key in the home, or use `parley login`)"
    if status >= 500 and problem.get("trace_id"):
        message += f" trace_id: {problem['trace_id']}"
    after_ms = problem.get("retry_after_ms")
    after_s = after_ms / 1000 if isinstance(after_ms, int | float) else None
    if after_s is not None and after_s >= SAID_FROM_S:
        message += f" Try again {ahead(after_s)}."
    said_whole = f"{message} ({code})" if code else message
    return ApiRefused(status, code, said_whole, retry_after_s=after_s, facts=problem)
