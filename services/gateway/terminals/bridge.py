"""Bridges a WebSocket to a terminal: input is sent to the node, output to the client.

From the client: bytes are input; text is JSON, either {"type": "resize", "rows", "columns"} or
{"type": "signal", "signal"}. To the client: bytes are output; text is JSON: `opened` with the
cursor of the first byte, `heartbeat`, and at the end `exited`, `closed` or `problem`. A client that
counts the bytes has the cursor for a reconnect.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Final, Literal, assert_never

import grpc
import msgspec
from starlette.types import Message, Receive, Scope, Send

from gateway.api.json_output import to_json
from gateway.http.problems.errors import HttpProblem, UpstreamProblem, http_problem_of
from gateway.http.request_body import decode
from gateway.http.websockets import closed
from parley.api.workspace.v1 import process_pb2, workspace_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.clock import Clock
from parley.rpc import problem_of
from parley.tasks import first_of

INPUT_BYTES_MAX: Final = 64 * 1024
#: Frames per second, far above the rate of typing or pasting.
FRAMES_PER_S_MAX: Final = 500
#: How long a client may not read.
UNREAD_S_MAX: Final = 30.0

Cells = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class CloseCode(IntEnum):
    """Why a connection was closed, as codes of RFC 6455."""

    DONE = 1000
    REFUSED = 1008
    FAILED = 1011
    COME_BACK = 1012


class Signal(StrEnum):
    """A signal that a client may send."""

    INTERRUPT = "interrupt"
    TERMINATE = "terminate"
    KILL = "kill"
    HANGUP = "hangup"
    STOP = "stop"
    CONTINUE = "continue"


class Resize(msgspec.Struct, frozen=True, tag="resize", forbid_unknown_fields=True):
    """The size of the client's window changed."""

    rows: Cells
    columns: Cells


class SendSignal(msgspec.Struct, frozen=True, tag="signal", forbid_unknown_fields=True):
    """A signal to all processes of the terminal."""

    signal: Signal


@dataclass(frozen=True, slots=True)
class AttachmentEnd:
    """The end of an attachment: the final message, and the close code."""

    code: CloseCode
    said: dict[str, Any] | None = None


class BadFrame(Exception):
    """A frame of the client is invalid."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class FrameRate:
    """Counts frames per second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.monotonic()
        self._count = 0

    def count(self) -> None:
        """Count one frame.

        Raises:
            BadFrame: There were too many in this second.
        """
        now_s = self._clock.monotonic()
        if now_s - self._since_s >= 1:
            self._since_s, self._count = now_s, 0
        self._count += 1
        if self._count > FRAMES_PER_S_MAX:
            raise BadFrame("TOO_MANY_FRAMES", f"Send at most {FRAMES_PER_S_MAX} frames a second.")


class TerminalBridge:
    """The ASGI application of one connection with an open attachment at the node.

    Args:
        call: The attachment; its first response was read.
        opened: That response.
        watching: Watches the credential: is called with a callback for when it becomes invalid.
        clock: The clock.
        unread_s_max: How long a client may not read.
    """

    def __init__(
        self,
        call: Any,
        opened: api.AttachOpened,
        *,
        watching: Callable[[Callable[[], None]], AbstractContextManager[None]],
        clock: Clock,
        unread_s_max: float = UNREAD_S_MAX,
    ) -> None:
        self._call = call
        self._opened = opened
        self._watching = watching
        self._rate = FrameRate(clock)
        self._unread_s_max = unread_s_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept the connection and serve it until either side ends."""
        signed_out = asyncio.Event()
        try:
            with self._watching(signed_out.set):
                over = await self._serve(receive, send, signed_out)
            if over is not None:
                async with asyncio.timeout(self._unread_s_max):
                    if over.said is not None:
                        await self._tell(send, over.said)
                    await closed(receive, send, over.code)
        except OSError:
            # The client is gone, or reads nothing: the connection is closed without a message.
            return
        finally:
            self._call.cancel()

    async def _serve(
        self, receive: Receive, send: Send, signed_out: asyncio.Event
    ) -> AttachmentEnd | None:
        """Return the end of the attachment, None if the client disconnected."""
        await receive()
        await send({"type": "websocket.accept"})
        opened = self._opened
        await self._tell(
            send,
            {
                "type": "opened",
                "process": to_json(opened.process),
                "cursor": opened.cursor,
                "view_only": opened.view_only,
            },
        )
        return await first_of(
            self._print(send), lambda: self._type(receive), lambda: _signed_out(signed_out)
        )

    async def _print(self, send: Send) -> AttachmentEnd | None:
        """Forward the node's output, with the backpressure of the client.

        Returns None once the client disconnected, or has read nothing for too long.
        """
        cursor = self._opened.cursor
        try:
            while isinstance(answer := await self._call.read(), api.AttachResponse):
                match answer.WhichOneof("kind"):
                    case "chunk":
                        cursor = answer.chunk.cursor + len(answer.chunk.data)
                        await self._send(send, {"bytes": answer.chunk.data})
                    case "heartbeat":
                        await self._tell(send, {"type": "heartbeat", "cursor": cursor})
                    case "ended":
                        process = to_json(answer.ended.process)
                        said = {"type": "exited", "process": process, "cursor": cursor}
                        return AttachmentEnd(CloseCode.DONE, said)
                    case "closed":
                        return _closed(cursor, answer.closed)
        except grpc.aio.AioRpcError as error:
            return _failed(error, cursor)
        except OSError:
            return None
        return _closed(cursor, workspace_pb2.StreamEnd())

    async def _type(self, receive: Receive) -> AttachmentEnd | None:
        """Forward the client's input, with the backpressure of the node."""
        try:
            while (message := await receive())["type"] == "websocket.receive":
                self._rate.count()
                await self._call.write(self._request(message))
        except BadFrame as error:
            said = {"type": "problem", "code": error.code, "detail": error.detail}
            return AttachmentEnd(CloseCode.REFUSED, said)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # The reader of the node gets the reason.
            await asyncio.Event().wait()
        return None

    async def _tell(self, send: Send, said: dict[str, Any]) -> None:
        await self._send(send, {"text": msgspec.json.encode(said).decode()})

    async def _send(self, send: Send, content: dict[str, Any]) -> None:
        async with asyncio.timeout(self._unread_s_max):
            await send({"type": "websocket.send", **content})

    def _request(self, message: Message) -> api.AttachRequest:
        if self._opened.view_only:
            raise BadFrame("VIEW_ONLY", "This attachment only looks; attach without view_only.")
        data = message.get("bytes")
        if data is not None:
            if len(data) > INPUT_BYTES_MAX:
                raise BadFrame("FRAME_TOO_LARGE", f"Send at most {INPUT_BYTES_MAX} bytes at once.")
            return api.AttachRequest(stdin=data)
        return _control(message.get("text") or "")


def _control(text: str) -> api.AttachRequest:
    try:
        control: Resize | SendSignal = decode(text.encode(), Resize | SendSignal)  # type: ignore[arg-type]
    except (HttpProblem, UnicodeEncodeError) as error:
        why = error.detail if isinstance(error, HttpProblem) else "It is no UTF-8."
        raise BadFrame("BAD_FRAME", f"Text is for control messages. {why}") from error
    match control:
        case Resize(rows, columns):
            size = process_pb2.TerminalSize(rows=rows, columns=columns)
            return api.AttachRequest(resize=size)
        case SendSignal(signal):
            value = process_pb2.ProcessSignal.Value(f"PROCESS_SIGNAL_{signal.name}")
            return api.AttachRequest(signal=value)
        case _:
            assert_never(control)


async def _signed_out(event: asyncio.Event) -> AttachmentEnd:
    await event.wait()
    detail = "The sign-in behind this connection is over."
    return AttachmentEnd(
        CloseCode.REFUSED, {"type": "problem", "code": "UNAUTHENTICATED", "detail": detail}
    )


def _closed(cursor: int, end: workspace_pb2.StreamEnd) -> AttachmentEnd:
    reason: Literal["resync", "going_away"] = (
        "resync" if end.reason == workspace_pb2.STREAM_END_REASON_RESYNC else "going_away"
    )
    return AttachmentEnd(
        CloseCode.COME_BACK, {"type": "closed", "reason": reason, "cursor": cursor}
    )


def _failed(error: grpc.aio.AioRpcError, cursor: int) -> AttachmentEnd:
    problem = problem_of(error)
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return _closed(cursor, workspace_pb2.StreamEnd())
    is_about_them = problem.reason != error.code().name
    refusal = http_problem_of(UpstreamProblem(problem))
    said = {
        "type": "problem",
        "code": problem.reason if is_about_them else "INTERNAL",
        "detail": refusal.detail if is_about_them else "Something went wrong at the node.",
        "cursor": cursor,
    }
    return AttachmentEnd(CloseCode.REFUSED if is_about_them else CloseCode.FAILED, said)
