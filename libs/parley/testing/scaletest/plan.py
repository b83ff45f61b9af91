"""The plan of one client process, as it is sent to it."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Target:
    """The URL of Parley, and the API key for it."""

    url: str
    api_key: str = field(repr=False)

    @property
    def host(self) -> str:
        """The host to connect to."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port to connect to."""
        parts = urlsplit(self.url)
        return parts.port or (443 if self.is_tls else 80)

    @property
    def is_tls(self) -> bool:
        """Whether connections use TLS."""
        return urlsplit(self.url).scheme == "https"

    def path(self, below: str) -> str:
        """Return the path of an API route on this server."""
        return f"{urlsplit(self.url).path.rstrip('/')}{API}{below}"

    def request(
        self, method: str, below: str, body: bytes = b"", headers: tuple[str, ...] = ()
    ) -> bytes:
        """Return the bytes of a request."""
        parts = urlsplit(self.url)
        lines = [
            f"{method} {self.path(below)} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"Authorization: Bearer {self.api_key}",
            *headers,
        ]
        if body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join((*lines, "", "")).encode() + body


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The chats of one client process.

    Attributes:
        target: The Parley to test.
        run: Identifies the run; part of every idempotency key and label.
        first: Number of the first chat of this process among those of all.
        chats: How many chats it has.
        turns: Turns of each chat.
        prompt: The message of each turn.
        model_id: The model that answers; empty for the default.
        start_jitter_s: Chats begin within so many seconds.
        waits_after_first: Whether all chats wait after turn 1 for a command.
        turn_timeout_s: How long a turn may take.
        cut_every: After how many events, on average, the client closes its stream; 0 for never.
        seed: The seed of the disconnects and the jitter.
        cleaners: How many chats are read and deleted concurrently at the end.
        keeps: Whether the chats are not deleted.
    """

    target: Target
    run: str
    first: int = 0
    chats: int = 1
    turns: int = 1
    prompt: str = "Reply with one short sentence."
    model_id: str = ""
    start_jitter_s: float = 0.0
    waits_after_first: bool = False
    turn_timeout_s: float = 300.0
    cut_every: int = 0
    seed: int = 0
    cleaners: int = 8
    keeps: bool = False
