"""The access log: one line for each request when it has ended, streams included.

The ids are those that users see: the request id in `X-Request-Id` and both ids in problem
documents. The trace id is added to every line of a log, so that the same request can be found in
the logs of the other services.
"""

import logging
import random  # noqa: TID251 (only the type; the random numbers are an argument)
import re
from dataclasses import dataclass
from typing import ClassVar, Final, Self

ON: Final = "on"
OFF: Final = "off"
#: Health probes request these every few seconds.
PROBES: Final = frozenset({"/healthz", "/readyz"})
FAILED: Final = 400
#: The logged status of a request whose client disconnected before the response.
NO_ANSWER: Final = 499
METHOD_CHARACTERS_MAX: Final = 16

_ID: Final = re.compile(r"[0-9a-f-]{36}")
_log = logging.getLogger("gateway.access")


@dataclass(frozen=True, slots=True)
class AccessLogShare:
    """The share of the requests that is logged, from 0 to 1; 0 is off."""

    SETTING_KIND: ClassVar[str] = "on, off or a share from 0 to 1"

    share: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "on", "off" or a share such as "0.1".

        Raises:
            ValueError: `text` is none of these.
        """
        word = text.strip().lower()
        if word in (ON, OFF):
            return cls(1.0 if word == ON else 0.0)
        try:
            share = float(word)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise ValueError(f"{text!r} is not on, off or a share from 0 to 1, such as 0.1")
        return cls(share)

    def __str__(self) -> str:
        return {1.0: ON, 0.0: OFF}.get(self.share, str(self.share))


@dataclass(frozen=True, slots=True)
class RequestLogEntry:
    """A request that has ended.

    Attributes:
        method: Its method.
        route: The path of its route, with parameters in braces; empty if there is no such route.
        status: The status of its response; None if there was none.
        duration_s: From its start to the end of its response.
        request_id: Its id.
        user_id: Its user; empty without a sign-in.
        chat_id: The chat in its path; empty if there is none.
    """

    method: str
    route: str
    status: int | None
    duration_s: float
    request_id: str
    user_id: str
    chat_id: str


class AccessLog:
    """Writes the access log.

    Args:
        share: The share of the requests that is logged. If it is not 0, all failed requests are
            logged, because users see their ids.
        rng: Chooses which.
    """

    def __init__(self, share: AccessLogShare, rng: random.Random) -> None:
        self._share = share.share
        self._rng = rng

    def write(self, served: RequestLogEntry) -> None:
        """Write the line of a request, if it is selected."""
        status = served.status or NO_ANSWER
        if not self._is_logged(status, served.route) or not _log.isEnabledFor(logging.INFO):
            return
        fields = {
            "method": served.method[:METHOD_CHARACTERS_MAX],
            "route": served.route,
            "status": status,
            "duration_ms": round(served.duration_s * 1000, 1),
            "request_id": served.request_id,
        }
        if served.user_id:
            fields["user_id"] = served.user_id
        if _ID.fullmatch(served.chat_id):
            fields["chat_id"] = served.chat_id
        _log.info("request", extra=fields)

    def _is_logged(self, status: int, route: str) -> bool:
        if not self._share:
            return False
        if status >= FAILED:
            return True
        return route not in PROBES and (self._share >= 1 or self._rng.random() < self._share)
