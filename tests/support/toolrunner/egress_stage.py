"""A proxy with a network of its own: origins on loopback under public names and addresses."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from parley.clock import SystemClock
from support.host.supervised import supervision
from support.toolrunner.egress_fakes import FakeNetwork, FakeSecrets, InMemoryAccessLog
from toolrunner.egress import (
    Access,
    Dialer,
    Grant,
    HostPort,
    Limits,
    Policy,
    Preset,
    Proxy,
    ProxyEndpoint,
    ProxyListeners,
    Rules,
    SecretValue,
)
from toolrunner.egress.reached_hosts import NoNotes, ReachedNotes
from toolrunner.primitives.domain import WorkspaceId

WORKSPACE = WorkspaceId("11111111-1111-4111-8111-111111111111")
TOKEN = "stage-token"
PUBLIC = "93.184.216.34"
OTHER_PUBLIC = "93.184.216.35"
PATIENCE_S = 10.0
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMITS = Limits(head_s=2.0, connect_s=2.0, idle_s=5.0, total_s=30.0)


@dataclass(slots=True)
class Certificates:
    """An authority that only this test trusts, and a server's certificate for some names."""

    trust: ssl.SSLContext
    server: ssl.SSLContext

    @classmethod
    def for_names(cls, directory: Path, *names: str) -> "Certificates":
        authority_key = ec.generate_private_key(ec.SECP256R1())
        server_key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Stage authority")])
        begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        end = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)

        def signed(
            subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
        ) -> x509.CertificateBuilder:
            return (
                x509.CertificateBuilder()
                .subject_name(subject)
                .issuer_name(authority)
                .public_key(key.public_key())
                .serial_number(2 if is_authority else 3)
                .not_valid_before(begin)
                .not_valid_after(end)
                .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            )

        root = signed(authority, authority_key, is_authority=True).sign(
            authority_key, hashes.SHA256()
        )
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        leaf = (
            signed(subject, server_key, is_authority=False)
            .add_extension(
                x509.SubjectAlternativeName([_named(name) for name in names]), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        chain, key = directory / "server.pem", directory / "server.key"
        chain.write_bytes(leaf.public_bytes(pem))
        key.write_bytes(
            server_key.private_bytes(
                pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        (directory / "authority.pem").write_bytes(root.public_bytes(pem))
        trust = ssl.create_default_context(cadata=root.public_bytes(pem).decode())
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(chain, key)
        return cls(trust, server)


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(slots=True)
class Origin:
    """A server that notes what it gets and answers with it."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    answer: bytes = b""
    handler: Handler | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.handler is not None:
            await self.handler(reader, writer)
            return
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            body = self.answer or b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (
                len(head),
                head,
            )
            writer.write(body)
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(
        self, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> AsyncIterator["Origin"]:
        server = await asyncio.start_server(self.serve, host, 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


@dataclass(slots=True)
class Stage:
    """The proxy with all that is around it."""

    egress: ProxyListeners
    endpoint: ProxyEndpoint
    network: FakeNetwork
    audit: InMemoryAccessLog
    secrets: FakeSecrets
    secured: Origin
    plain: Origin
    inside: Origin
    namespace_port: int

    async def ask(self, request: bytes, *, is_port: bool = False) -> bytes:
        """Say something to the proxy and return all it says."""
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await self.connect(is_port=is_port)
            try:
                writer.write(request)
                return await reader.read()
            except OSError:
                return b""
            finally:
                writer.close()

    async def connect(
        self, *, is_port: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self.endpoint.port if is_port else self.namespace_port
        return await asyncio.open_connection("127.0.0.1", port)


@asynccontextmanager
async def staged(
    directory: Path,
    *,
    allowed: tuple[str, ...] = ("secure.example", "plain.example"),
    presets: tuple[str, ...] = (),
    own_presets: tuple[Preset, ...] = (),
    denied: tuple[str, ...] = (),
    access: Access = Access.PROXY,
    grants: tuple[Grant, ...] = (),
    values: dict[str, SecretValue] | None = None,
    answers: dict[str, list[tuple[str, ...]]] | None = None,
    private: tuple[HostPort, ...] = (),
    certified: tuple[str, ...] = ("secure.example", "*.secure.example"),
    limits: Limits = LIMITS,
    reached: ReachedNotes | None = None,
) -> AsyncIterator[Stage]:
    """Run a proxy for one workspace; `inside` is a server of this machine that must stay hidden."""
    certificates = Certificates.for_names(directory, *certified)
    async with AsyncExitStack() as stack:
        secured = await stack.enter_async_context(Origin().running(certificates.server))
        plain = await stack.enter_async_context(Origin().running())
        inside = await stack.enter_async_context(Origin().running())
        network = FakeNetwork(
            {
                "secure.example": [(PUBLIC,)],
                "plain.example": [(OTHER_PUBLIC,)],
                **(answers or {}),
            },
            {(PUBLIC, 443): secured.port, (OTHER_PUBLIC, 80): plain.port},
        )
        audit, secrets = InMemoryAccessLog(), FakeSecrets(values or {})
        dialer, notes = Dialer(network, certificates.trust), reached or NoNotes()
        proxy = Proxy(dialer, secrets, audit, SystemClock(), limits, notes)
        egress = await stack.enter_async_context(
            ProxyListeners(proxy, lambda: TOKEN, supervision())
        )
        policy = Policy.read(
            access,
            presets=presets,
            own_presets=own_presets,
            allowed_hosts=allowed,
            denied_hosts=denied,
            private=private,
        )
        opened = await egress.open(Rules(WORKSPACE, policy, grants))
        bound = socket.create_server(("127.0.0.1", 0))
        namespace_port = bound.getsockname()[1]
        egress.take_listener(WORKSPACE, bound.detach())
        yield Stage(egress, opened, network, audit, secrets, secured, plain, inside, namespace_port)
