"""Checks of an installation from outside, through its public URL and the proxy in front of it."""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from parley.cli.host.checks import Finding

ANSWER_S_MAX: Final = 10.0
#: The first line of a stream is sent at once.
FIRST_LINE_S_MAX: Final = 5.0
CLOCK_SKEW_MAX: Final = timedelta(seconds=5)
CERTIFICATE_LEFT_MIN: Final = timedelta(days=14)
#: An address for documentation, which no client has.
CLAIMED_ADDRESS: Final = "203.0.113.66"
HANDSHAKE: Final = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "cGFybGV5IGRvY3RvciAhIQ==",
}


@dataclass(frozen=True, slots=True)
class Installation:
    """An installation as its clients see it.

    Attributes:
        url: The public URL.
        authorities_file: Certificates of authorities to believe instead of the system's.
        now: The time of this machine.
        api_key: A key for the checks that need one; empty to leave them out.
    """

    url: str
    authorities_file: str | None
    now: Callable[[], datetime]
    api_key: str = field(default="", repr=False)

    def connect(self) -> HTTPConnection:
        """Return a connection that is not opened yet.

        Raises:
            ValueError: The URL is none.
        """
        parts = urlsplit(self.url)
        if parts.scheme == "http":
            return HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_S_MAX)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError("is no https URL")
        context = ssl.create_default_context(cafile=self.authorities_file)
        context.set_alpn_protocols(["http/1.1"])
        return HTTPSConnection(parts.hostname, parts.port, timeout=ANSWER_S_MAX, context=context)

    def ask(self, path: str, headers: Mapping[str, str] | None = None) -> "Answer":
        """Return the answer to a GET request.

        Raises:
            OSError: The server cannot be reached, or its certificate is not valid.
            HTTPException: The answer is not HTTP.
        """
        connection = self.connect()
        try:
            connection.request("GET", path, headers=dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the API key."""
        return {"Authorization": f"Bearer {self.api_key}"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """Return the JSON object in the body; empty if it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def check_public(installation: Installation) -> tuple[Finding, ...]:
    """Return all findings; those that need an answer are left out if there is none."""
    url = find_url(installation.url)
    certificate = find_certificate(installation)
    if certificate.is_required and not certificate.is_there:
        return url, certificate
    try:
        seen = installation.ask("/connection")
        found = [find_host(seen), find_hsts(seen)]
        if seen.status == 200:
            claimed = installation.ask("/connection", {"X-Forwarded-For": CLAIMED_ADDRESS})
            found += [
                find_proxy(seen.document()),
                find_address(claimed.document()),
                find_clock(seen.document(), installation.now()),
                find_cookies(installation.ask("/login")),
                find_websockets(installation.ask("/healthz", HANDSHAKE)),
            ]
            # The key is not sent in the clear.
            if installation.api_key and url.is_there:
                found.append(find_streams(installation))
    except (OSError, HTTPException) as error:
        found = [_missing("answers", str(error), "the public URL does not answer as HTTP")]
    return (url, certificate, find_http_2(installation), *found)


def find_url(url: str) -> Finding:
    """Return whether the URL is one of HTTPS."""
    if urlsplit(url).scheme == "https":
        return Finding("public URL", True, url)
    return _missing(
        "public URL",
        f"{url} is not https",
        "passwords and keys can be read on the way; set GATEWAY_PUBLIC_URL or --public-url",
    )


def find_certificate(installation: Installation) -> Finding:
    """Return whether clients accept the certificate, and for how long."""
    name = "certificate"
    try:
        connection = installation.connect()
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        return _missing(name, error.verify_message, "no client connects; renew or replace it")
    except (OSError, ValueError) as error:
        return _missing(name, f"{installation.url}: {error}", "the public URL cannot be reached")
    try:
        channel = connection.sock
        if not isinstance(channel, ssl.SSLSocket):
            return Finding(name, False, "none, because the URL is http", "see public URL")
        expiry = str((channel.getpeercert() or {})["notAfter"])
    finally:
        connection.close()
    ends_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(expiry), UTC)
    left = ends_at - installation.now()
    detail = f"valid until {ends_at:%Y-%m-%d}"
    if left >= CERTIFICATE_LEFT_MIN:
        return Finding(name, True, detail)
    return _missing(name, detail, f"it ends in {left.days} days; see that it is renewed")


def find_http_2(installation: Installation) -> Finding:
    """Return whether clients get HTTP/2, with which a page has all its streams in a connection."""
    name, parts = "HTTP/2", urlsplit(installation.url)
    if parts.scheme != "https":
        return Finding(name, False, "not over http", "a browser opens six streams at most")
    context = ssl.create_default_context(cafile=installation.authorities_file)
    context.set_alpn_protocols(["h2", "http/1.1"])
    connection = HTTPSConnection(
        parts.hostname or "", parts.port, timeout=ANSWER_S_MAX, context=context
    )
    try:
        connection.connect()
        chosen = connection.sock.selected_alpn_protocol()
    except OSError as error:
        return Finding(name, False, str(error), "a browser opens six streams at most")
    finally:
        connection.close()
    if chosen == "h2":
        return Finding(name, True, "offered")
    return Finding(
        name, False, "not offered", "a browser opens six streams at most; turn it on in the proxy"
    )


def find_host(seen: Answer) -> Finding:
    """Return whether the gateway serves the host of the public URL."""
    if seen.status == 200:
        return Finding("host", True, str(seen.document().get("host")))
    code = seen.document().get("code", "")
    if code == "HOST_NOT_ALLOWED":
        return _missing(
            "host",
            "the gateway does not serve this name",
            "nothing works; set GATEWAY_PUBLIC_URL to this URL, add the name to "
            "GATEWAY_ALLOWED_HOSTS, or have the proxy pass the header Host",
        )
    return _missing("host", f"answers {seen.status} {code}", "nothing works; see the proxy's log")


def find_hsts(seen: Answer) -> Finding:
    """Return whether browsers are asked to use HTTPS alone."""
    value = seen.headers.get("strict-transport-security", "")
    if value:
        return Finding("HSTS", True, value)
    return _missing(
        "HSTS",
        "not sent",
        "browsers may begin without TLS; GATEWAY_PUBLIC_URL is not https, or the proxy removes it",
    )


def find_proxy(seen: Mapping[str, Any]) -> Finding:
    """Return whether the gateway heeds the proxy."""
    name = "trusted proxy"
    if seen.get("ignored_headers"):
        return _missing(
            name,
            f"the headers of {seen.get('address')} are ignored",
            "all clients count as one; add that address to GATEWAY_TRUSTED_PROXIES",
        )
    if seen.get("scheme") != "https":
        return _missing(
            name,
            f"the gateway gets {_scheme(seen)} from it",
            "have the proxy set X-Forwarded-Proto, -For and -Host, or set "
            "GATEWAY_FORWARDED_HEADERS if it writes Forwarded",
        )
    return Finding(name, True, f"this client is {seen.get('address')}")


def _scheme(seen: Mapping[str, Any]) -> str:
    scheme = seen.get("scheme")
    return f"the scheme {scheme} and not https" if scheme else "no scheme of the client's request"


def find_address(claimed: Mapping[str, Any]) -> Finding:
    """Return whether clients can claim any address."""
    name = "client address"
    if claimed.get("address") == CLAIMED_ADDRESS:
        return _missing(
            name,
            "a client can claim any",
            "limits by address do not hold; have the proxy set X-Forwarded-For itself",
        )
    return Finding(name, True, "cannot be claimed")


def find_clock(seen: Mapping[str, Any], now: datetime) -> Finding:
    """Return whether the clocks of the gateway and of this machine agree."""
    try:
        skew = abs(datetime.fromisoformat(str(seen.get("time"))) - now)
    except (ValueError, TypeError):
        return _missing("clock", "the gateway tells no time", "it is of another version")
    if skew <= CLOCK_SKEW_MAX:
        return Finding("clock", True, f"differs by {skew.total_seconds():.1f} s")
    return _missing(
        "clock",
        f"differs by {skew.total_seconds():.0f} s from this machine's",
        "codes of authenticator apps, links and tokens are refused; set both by NTP",
    )


def find_cookies(page: Answer) -> Finding:
    """Return whether cookies have the flags that bind them to this host and to TLS."""
    cookie = page.headers.get("set-cookie", "")
    flags = {part.strip().lower() for part in cookie.split(";")}
    wrong = [each for each in ("Secure", "HttpOnly", "SameSite=Lax") if each.lower() not in flags]
    if not cookie.startswith("__Host-"):
        wrong.insert(0, "__Host-")
    if not wrong:
        return Finding("cookies", True, "__Host-, Secure, HttpOnly, SameSite=Lax")
    return _missing(
        "cookies",
        f"lack {', '.join(wrong)}",
        "sessions can be stolen or do not work; GATEWAY_PUBLIC_URL is not https, or the proxy "
        "changes cookies",
    )


def find_streams(installation: Installation) -> Finding:
    """Return whether events pass the proxy at once."""
    name = "event streams"
    cost = "answers appear late or not at all; turn buffering off in the proxy"
    connection = installation.connect()
    connection.timeout = FIRST_LINE_S_MAX
    try:
        connection.request("GET", "/api/v1/events", headers=installation.authorization)
        response = connection.getresponse()
        if response.status != 200:
            return _missing(name, f"answers {response.status}", "see whether the key is right")
        response.readline()
    except TimeoutError:
        return _missing(name, f"nothing came within {FIRST_LINE_S_MAX:g} s", cost)
    except (OSError, HTTPException) as error:
        return _missing(name, str(error), cost)
    finally:
        connection.close()
    return Finding(name, True, "come at once")


def find_websockets(answer: Answer) -> Finding:
    """Return whether handshakes of terminals pass the proxy, by the answer of a path without any.

    The gateway refuses a handshake there; a proxy that takes it for a request gets the page.
    """
    if answer.document().get("code") == "NOT_A_WEBSOCKET":
        return Finding("WebSockets", True, "handshakes pass")
    return _missing(
        "WebSockets",
        f"a handshake is answered {answer.status}",
        "terminals do not work; have the proxy pass Upgrade and Connection",
    )


def _missing(name: str, detail: str, cost: str) -> Finding:
    return Finding(name, False, detail, cost, is_required=True)
