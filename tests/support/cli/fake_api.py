"""An HTTP server that plays the gateway's side of a chat as the test scripts it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from parley.cli.api.server import Server

API_KEY = "pk_fake"


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: JSON, a page, or the bytes of a stream after which the connection is closed."""

    status: int = 200
    body: Any = None
    stream: bytes | None = None
    #: The stream stays open after its bytes until the server ends.
    stays_open: bool = False
    #: HTML, as something answers that is not Parley.
    page: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Nothing at all is answered until the server ends.
    is_silent: bool = False


Handler = Callable[[Request], Answer]


def event(type_: str, data: Any, cursor: str) -> bytes:
    """Return one server-sent event."""
    return f"id: {cursor}\nevent: {type_}\ndata: {json.dumps(data)}\n\n".encode()


@dataclass(slots=True)
class FakeApi:
    """A running server and what it was asked."""

    server: Server
    requests: list[Request] = field(default_factory=list)


@contextmanager
def fake_api(*answers: Answer) -> Iterator[FakeApi]:
    """Serve `answers` in this order, one per request."""
    remaining = list(answers)
    closing = threading.Event()

    class Playing(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            return

        def _play(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            body = json.loads(content) if content else None
            api.requests.append(Request(self.command, self.path, dict(self.headers), body))
            answer = remaining.pop(0)
            if answer.is_silent:
                closing.wait(30)
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.stream is not None:
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.wfile.write(answer.stream)
                self.wfile.flush()
                if answer.stays_open:
                    closing.wait(30)
                return
            sent = b"" if answer.body is None else json.dumps(answer.body).encode()
            kind = "application/json" if answer.status < 400 else "application/problem+json"
            if answer.page is not None:
                sent, kind = answer.page.encode(), "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _play  # noqa: N815 (the names are http.server's)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Playing)
    listener.daemon_threads = True
    api = FakeApi(Server(f"http://127.0.0.1:{listener.server_address[1]}", API_KEY))
    serving = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield api
    finally:
        closing.set()
        listener.shutdown()
        listener.server_close()
        serving.join()
