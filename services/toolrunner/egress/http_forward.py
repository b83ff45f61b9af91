"""Forwarding of one HTTP request with a rewritten head, and of its response."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from toolrunner.egress.dialer import Connection
from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.grants import Grant, SecretValue, header_of
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.http_heads import (
    Fields,
    RequestHead,
    ResponseHead,
    passed_on,
    read_response,
    written,
)
from toolrunner.egress.domain.policy import Limits
from toolrunner.egress.domain.secret_mask import Mask, spellings
from toolrunner.egress.domain.targets import TLS, TOKEN_MARK, Plain, Secured
from toolrunner.egress.relay import (
    Meter,
    Reading,
    head_of,
    joint,
    pump,
    pump_body,
    pump_chunks,
)

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE: Final = ("Connection", "close")
WITHOUT_BODY: Final = frozenset({204, 304})
REFUSAL_HEADER: Final = "X-Parley-Egress"
HTTPS: Final = "https://"
CONTENT_ENCODING: Final = "content-encoding"


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A request that is forwarded.

    Attributes:
        head: The head that the workspace sent.
        target: The target.
        token: The proxy token of the workspace, for redirects in responses.
        grant: The secret that is added, if any.
        secret: Its value.
        explanation: The message for git if the host asks for a password; empty for other requests.
    """

    head: RequestHead
    target: Plain | Secured
    token: str
    grant: Grant | None
    secret: SecretValue | None
    explanation: str = ""

    async def run(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: Connection,
        limits: Limits,
        sent: Meter,
        received: Meter,
        answered: Callable[[], None],
    ) -> None:
        """Send the request and return the response; `answered` is called before its first byte.

        Raises:
            Refused: The request or the response cannot be forwarded.
        """
        head, masked = self._request()
        sent.add(len(head))
        connection.writer.write(head)
        if (self.head.get("expect") or "").lower() == "100-continue":
            writer.write(CONTINUE)
        source = Reading(reader, limits.idle_s)
        async with joint() as ways:
            body = ways.create_task(self._send_body(source, connection, sent))
            answer = await self._answer_head(connection, limits)
            if answer.status == 401 and self.explanation:
                raise Refused(Reason.PASSWORD_WANTED, self.explanation)
            length = self._length(answer)
            is_chunked = bool(masked) and length != 0 and self._is_chunked(answer)
            answered()
            mask = Mask(masked)
            writer.write(mask.pass_on(self._answer(answer)) + mask.finish())
            back = Reading(connection.reader, limits.idle_s)
            if is_chunked:
                await pump_chunks(back, writer, received, pass_on=mask.pass_on, finish=mask.finish)
            else:
                await pump(back, writer, received, length=length, pass_on=mask.pass_on)
                writer.write(mask.finish())
            await writer.drain()
            # A response that arrives before the request is complete is valid.
            body.cancel()

    def _request(self) -> tuple[bytes, tuple[bytes, ...]]:
        """Return the head to send, and the values to mask in the response."""
        dropped: tuple[str, ...] = ()
        added: Fields = ()
        masked: tuple[bytes, ...] = ()
        if self.grant is not None and self.secret is not None:
            try:
                name, value = header_of(self.grant, self.secret)
            except ValueError as error:
                problem = f"The secret {self.grant.name!r} cannot be sent: {error}."
                raise Refused(Reason.SECRET_UNAVAILABLE, problem) from None
            # A compressed response could contain the secret without a match.
            added = ((name, value), ("Accept-Encoding", "identity"))
            # And a range of a response could contain a part of the secret.
            dropped = (name.lower(), "authorization", "accept-encoding", "range", "if-range")
            sent = value.rpartition(" ")[2].encode()
            masked = (*spellings(self.secret.value), *spellings(sent))
        fields = (
            ("Host", _authority(self.target)),
            *passed_on(self.head.fields, without=dropped),
            *added,
            CLOSE,
        )
        return written(f"{self.head.method} {self.target.path} HTTP/1.1", fields), masked

    async def _send_body(self, source: Reading, connection: Connection, sent: Meter) -> None:
        try:
            await pump_body(source, connection.writer, self.head.body, sent)
        except OSError:
            # A server that does not read the rest of a request may still respond.
            return

    async def _answer_head(self, connection: Connection, limits: Limits) -> ResponseHead:
        while True:
            text = await head_of(connection.reader, limits.idle_s)
            if not text:
                raise Refused(
                    Reason.BAD_ANSWER, f"{self.target.host_port} closed without an answer."
                )
            answer = read_response(text)
            if answer.status == 101:
                raise Refused(Reason.BAD_ANSWER, "The host changed to another protocol.")
            if answer.status >= 200:
                return answer

    def _is_chunked(self, answer: ResponseHead) -> bool:
        """Return whether a response that may contain a secret is chunked.

        Raises:
            Refused: Its encoding would hide a secret from the mask.
        """
        coding = (answer.get("transfer-encoding") or "").lower()
        contents = {
            value.lower() for key, value in answer.fields if key.lower() == CONTENT_ENCODING
        }
        if coding not in ("", "chunked") or contents - {"", "identity"}:
            raise Refused(
                Reason.BAD_ANSWER,
                f"{self.target.host_port} answers in an encoding that was not asked for, in which "
                "a secret could not be found.",
            )
        return coding == "chunked"

    def _answer(self, answer: ResponseHead) -> bytes:
        # With both headers, the content length is not that of the body.
        dropped = ("content-length",) if answer.get("transfer-encoding") is not None else ()
        kept = (each for each in passed_on(answer.fields) if each[0].lower() not in dropped)
        fields = (*map(self._brought_back, kept), CLOSE)
        return written(f"HTTP/1.1 {answer.status} {answer.phrase}", fields)

    def _brought_back(self, field: tuple[str, str]) -> tuple[str, str]:
        """Rewrite a redirect to the proxy, where the policy applies to it like to any request."""
        name, value = field
        if name.lower() != "location" or not isinstance(self.target, Secured):
            return field
        prefix = f"{TOKEN_MARK}{self.token}" if self.token else ""
        if value.lower().startswith(HTTPS):
            return name, f"{prefix}{TLS}{value[len(HTTPS) :]}"
        if value.startswith("/") and not value.startswith("//"):
            return name, f"{prefix}{TLS}{self.target.host_port}{value}"
        return field

    def _length(self, answer: ResponseHead) -> int | None:
        if self.head.method == "HEAD" or answer.status in WITHOUT_BODY:
            return 0
        length = answer.get("content-length")
        if length is None or answer.get("transfer-encoding") is not None:
            return None
        if not length.isascii() or not length.isdigit():
            raise Refused(Reason.BAD_ANSWER, "The length of the answer is no number.")
        return int(length)


def answer_of(refusal: Refused) -> bytes:
    """Return the response with the reason of a refusal, for users, programs and models."""
    text = f"Parley's egress proxy: {refusal}\n".encode()
    fields = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(text))),
        (REFUSAL_HEADER, f"refused; reason={refusal.reason}"),
        CLOSE,
    ]
    if refusal.status == 407:
        fields.append(("Proxy-Authenticate", 'Basic realm="parley-workspace"'))
    # Some programs show only this line of a refusal.
    phrase = f"Refused by the egress proxy ({refusal.reason})"
    return written(f"HTTP/1.1 {refusal.status} {phrase}", tuple(fields)) + text


def _authority(target: Plain | Secured) -> str:
    usual = 443 if isinstance(target, Secured) else 80
    host_port: HostPort = target.host_port
    return str(host_port).removesuffix(f":{usual}") if host_port.port == usual else str(host_port)
