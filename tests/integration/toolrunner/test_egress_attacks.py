"""Ways past the proxy that are known from other proxies, each tried on real sockets (row E13)."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.egress_stage import OTHER_PUBLIC, PATIENCE_S, PUBLIC, Origin, Stage, staged
from toolrunner.egress import Access, Grant, HostPattern, Limits, SecretValue

VALUE = b"the-secret-that-must-not-leave"
FORBIDDEN = "93.184.216.99"
LIMITS = Limits(head_s=1.0, connect_s=1.0, idle_s=1.0, total_s=5.0)
#: Names that the policy allows, and where they lead.
ANSWERS: dict[str, list[tuple[str, ...]]] = {
    "rebound.example": [("127.0.0.1",)],
    "mixed.example": [(PUBLIC, "127.0.0.1")],
    "flipping.example": [("127.0.0.1",), (PUBLIC,)],
    "six.example": [("::1",)],
    "mapped.example": [("::ffff:127.0.0.1",)],
    "translated.example": [("64:ff9b::7f00:1",)],
    "metadata.example": [("169.254.169.254",)],
    "private.example": [("10.0.0.1",)],
    "zero.example": [("0.0.0.0",)],
    "many.example": [("224.0.0.1",)],
    "azure.example": [("168.63.129.16",)],
    "zone.example": [("fe80::1%lo",)],
    "forbidden.test": [(FORBIDDEN,)],
}
ALLOWED = ("secure.example", "plain.example", *(name for name in ANSWERS if "test" not in name))
#: Other spellings of this machine, of what is not allowed, and of one behind the other.
HOSTS = (
    *("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "0"),
    *("[::]", "127.1", "127.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1"),
    *("127.0.0.1.", "localhost.", "127.000.000.001", "[::1%25lo]", "[0:0:0:0:0:0:0:1]"),
    *("169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    *("forbidden.test", "FORBIDDEN.test", "forbidden.test.", "secure.example.forbidden.test"),
    *("secure.example@127.0.0.1", "secure.example:443@127.0.0.1", "user:pass@localhost"),
    *("127.0.0.1@secure.example", "secure.example\\@127.0.0.1", "127.0.0.1\\.secure.example"),
    *("127.0.0.1#.secure.example", "127.0.0.1?.secure.example", "127.0.0.1%00.secure.example"),
    *("127.0.0.1\x00.secure.example", "secure.example\x00.forbidden.test", "127.0.0.1;x"),
    *("127.0.0.1\tsecure.example", "127.0.0.1 secure.example", "secure.example,127.0.0.1"),
    *("①②⑦.0.0.1", "127。0。0。1", "ⓛocalhost", "secure.example.", "*.example", "%6cocalhost"),
    *(name for name in ANSWERS if name != "forbidden.test"),
)


@dataclass(frozen=True)
class Attempt:
    """Something said to the proxy, and something more if it opens a tunnel."""

    name: str
    said: bytes
    then: bytes = b""


def by_host(port: int) -> Iterator[Attempt]:
    for host in HOSTS:
        for at in (port, 80, 443):
            place = f"{host}:{at}"
            for name, line, own in (
                ("tunnel", f"CONNECT {place}", place),
                ("plain", f"GET http://{place}/latest/meta-data/", place),
                ("plain with an allowed Host", f"GET http://{place}/", "plain.example"),
                ("secured", f"GET /https/{place}/", "127.0.0.1:3128"),
            ):
                text = f"{line} HTTP/1.1\r\nHost: {own}\r\n\r\n".encode()
                yield Attempt(f"{name} to {place!r}", text, b"GET / HTTP/1.1\r\n\r\n")


def by_message(port: int) -> Iterator[Attempt]:
    inside = f"127.0.0.1:{port}".encode()
    second = b"GET http://" + inside + b"/ HTTP/1.1\r\nHost: " + inside + b"\r\n\r\n"
    plain = b"http://plain.example/ HTTP/1.1\r\nHost: "
    yield Attempt("absolute form against Host", b"GET " + plain + b"forbidden.test\r\n\r\n")
    yield Attempt("two Hosts", b"GET " + plain + b"plain.example\r\nHost: forbidden.test\r\n\r\n")
    yield Attempt("folded Host", b"GET " + plain + b"plain.example\r\n forbidden.test\r\n\r\n")
    yield Attempt("bare newline", b"GET " + plain + b"plain.example\nHost: forbidden.test\r\n\r\n")
    for name, fields in (
        ("both lengths", b"Content-Length: 4\r\nTransfer-Encoding: chunked"),
        ("two lengths", b"Content-Length: 0\r\nContent-Length: 99"),
        ("length list", b"Content-Length: 0, 99"),
        ("spaced coding", b"Transfer-Encoding : chunked"),
        ("odd coding", b"Transfer-Encoding: \x0bchunked"),
        ("identity coding", b"Transfer-Encoding: identity"),
        ("twofold coding", b"Transfer-Encoding: chunked, chunked"),
        ("signed length", b"Content-Length: -1"),
    ):
        said = b"POST " + plain + b"plain.example\r\n" + fields + b"\r\n\r\n0\r\n\r\n" + second
        yield Attempt(name, said)
    yield Attempt("line in the address", b"CONNECT secure.example:443\r\nX: y HTTP/1.1\r\n\r\n")
    yield Attempt("address of a file", b"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n")
    yield Attempt("old protocol", b"GET http://" + inside + b"/\r\n\r\n")
    yield Attempt("path out", b"GET /https/../" + inside + b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    yield Attempt(
        "path slashes", b"GET /https//" + inside + b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    yield Attempt("TLS in plain words", second.replace(b"http://", b"https://"))
    yield Attempt("trace", second.replace(b"GET", b"TRACE"))
    connect = b"CONNECT secure.example:443 HTTP/1.1\r\nHost: secure.example:443\r\n\r\n"
    yield Attempt("no TLS in a tunnel", connect, second)
    yield Attempt("ssh in a tunnel", connect, b"SSH-2.0-x\r\n")
    yield Attempt("TLS for another in a tunnel", connect, _hello("forbidden.test"))
    yield Attempt("TLS for a subdomain in a tunnel", connect, _hello("x.secure.example"))
    yield Attempt("TLS for nobody in a tunnel", connect, _hello(None))
    yield Attempt("broken TLS in a tunnel", connect, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    yield Attempt(
        "a tunnel with a body", connect.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nGET /")
    )


def _hello(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


async def attempt(stage: Stage, each: Attempt) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await stage.connect()
        try:
            writer.write(each.said)
            answer = b""
            if each.then:
                answer = await reader.read(4096)
                if answer.startswith(b"HTTP/1.1 200 Connection established"):
                    writer.write(each.then)
            if writer.can_write_eof():
                writer.write_eof()
            return answer + await reader.read()
        except OSError:
            return b""
        finally:
            writer.close()


def leaked(stage: Stage, forbidden: Origin, answer: bytes) -> bool:
    """Tell whether anything came where it must not, or came back from there."""
    is_inside = any(
        address != PUBLIC and address != OTHER_PUBLIC for address, _ in stage.network.connected
    )
    strange = [each for each in stage.plain.requests if b"Host: plain.example\r\n" not in each]
    return bool(
        is_inside
        or stage.inside.connections
        or forbidden.connections
        or strange
        or stage.secured.requests
        or VALUE in answer
        or VALUE in b"".join(stage.plain.requests)
        or (answer.startswith(b"HTTP/1.1 200 OK"))
    )


@pytest.mark.parametrize("access", [Access.PROXY, Access.OPEN])
async def test_no_known_way_leads_past_the_proxy(tmp_path: Path, access: Access) -> None:
    grants = (Grant("api", (HostPattern.parse("secure.example"),)),)
    async with (
        staged(
            tmp_path,
            access=access,
            allowed=ALLOWED,
            denied=("forbidden.test", "*.forbidden.test"),
            grants=grants,
            values={"api": SecretValue("", VALUE)},
            answers={name: [*answers] for name, answers in ANSWERS.items()},
            limits=LIMITS,
        ) as stage,
        Origin().running() as forbidden,
    ):
        stage.network.routes = {
            **stage.network.routes,
            **{(FORBIDDEN, port): forbidden.port for port in (80, 443, stage.inside.port)},
        }
        attempts = [*by_host(stage.inside.port), *by_message(stage.inside.port)]
        succeeded = [
            each.name for each in attempts if leaked(stage, forbidden, await attempt(stage, each))
        ]
        noted = len(stage.audit.passages)

    print(f"E13 by {access}: attempts {len(attempts)}, successes {len(succeeded)}, noted {noted}")
    assert succeeded == []
    assert noted >= len(attempts) * 0.99


async def test_what_the_attacks_build_on_does_pass(tmp_path: Path) -> None:
    """Without this, a proxy that lets nothing through would stand every attack."""
    grants = (Grant("api", (HostPattern.parse("secure.example"),)),)
    async with staged(
        tmp_path, grants=grants, values={"api": SecretValue("", VALUE)}, limits=LIMITS
    ) as stage:
        plain = Attempt(
            "plain", b"GET http://plain.example/ HTTP/1.1\r\nHost: plain.example\r\n\r\n"
        )
        secured = Attempt(
            "secured", b"GET /https/secure.example/ HTTP/1.1\r\nHost: localhost:3128\r\n\r\n"
        )

        assert (await attempt(stage, plain)).startswith(b"HTTP/1.1 200 OK")
        assert (await attempt(stage, secured)).startswith(b"HTTP/1.1 200 OK")
        assert VALUE in stage.secured.requests[0]
