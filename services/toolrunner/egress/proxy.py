"""One connection of a workspace to the proxy: one request, checked, forwarded and logged.

Each connection carries one request, and so does the outgoing connection. So no second request can
be smuggled behind it, and no response can be matched to another request.
"""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, assert_never

from parley.clock import Clock
from toolrunner.egress.access_log import AccessLog, ProxyAccessRecord
from toolrunner.egress.dialer import Connection, Dialer
from toolrunner.egress.domain.errors import Reason, Refused, SecretUnavailable
from toolrunner.egress.domain.grants import (
    Grant,
    SecretSource,
    SecretUse,
    SecretValue,
    grant_for,
    is_git_path,
    password_advice,
)
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.http_heads import RequestHead, read_request
from toolrunner.egress.domain.policy import Limits, Rules, Transport
from toolrunner.egress.domain.reached import ReachedHost, is_git_agent
from toolrunner.egress.domain.targets import Plain, Secured, Target, Tunnel, target_of
from toolrunner.egress.http_forward import Forwarding, answer_of
from toolrunner.egress.reached_hosts import NoNotes, ReachedNotes
from toolrunner.egress.relay import Meter, alert, greeting_of, hang_up, head_of, join

logger = logging.getLogger(__name__)

LINGER_S: Final = 2.0
HANG_UP_S: Final = 2.0
LINGER_BYTES: Final = 1024**2
PURPOSE_CHARACTERS_MAX: Final = 500
ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Proxy:
    """Serves connections of workspaces.

    Attributes:
        dialer: Makes outgoing connections.
        secrets: Returns values of granted secrets.
        audit: The access log.
        clock: Measures durations.
        limits: Limits of each connection.
        reached: Is told of the hosts that workspaces reach.
    """

    dialer: Dialer
    secrets: SecretSource
    audit: AccessLog
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    reached: ReachedNotes = field(default_factory=NoNotes)

    async def serve(
        self, rules: Rules, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve one connection to its end; every outcome is logged."""
        # What was received counts for chats that come until the workspace has all of it.
        async with AsyncExitStack() as open_until_sent:
            await self._serve(rules, reader, writer, open_until_sent)

    async def refuse(self, rules: Rules, writer: asyncio.StreamWriter, refusal: Refused) -> None:
        """Refuse a connection before reading from it."""
        self.audit.note(
            ProxyAccessRecord(rules.workspace_id, outcome=refusal.reason, problem=refusal.problem)
        )
        writer.write(answer_of(refusal))
        await hang_up(writer, limit_s=HANG_UP_S)

    async def _serve(
        self,
        rules: Rules,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        open_until_sent: AsyncExitStack,
    ) -> None:
        record = ProxyAccessRecord(rules.workspace_id)
        began = self.clock.monotonic()
        sent = Meter(self.limits.sent_bytes)
        connection = _ProxyConnection(self, rules, reader, writer, record, sent, open_until_sent)
        try:
            await connection.run()
        except OSError:
            record.outcome, record.problem = "broken", "a connection was lost"
        except Exception:
            # Input of one workspace must not end the proxy for all.
            logger.exception("the egress proxy could not serve a connection")
            record.outcome, record.problem = "broken", "the proxy has a defect; see its log"
        except asyncio.CancelledError:
            record.outcome, record.problem = "cut_off", "the workspace's listener was closed"
            for each in connection.writers:
                each.transport.abort()
            raise
        finally:
            record.duration_s = self.clock.monotonic() - began
            if record.form or record.outcome != "passed":
                self.audit.note(record)
        await hang_up(*connection.writers, limit_s=HANG_UP_S)


@dataclass(slots=True)
class _ProxyConnection:
    """One connection while it is served."""

    proxy: Proxy
    rules: Rules
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    record: ProxyAccessRecord
    sent: Meter
    open_until_sent: AsyncExitStack
    connection: Connection | None = None
    is_answered: bool = False
    is_tunnel: bool = False

    @property
    def writers(self) -> tuple[asyncio.StreamWriter, ...]:
        """The writers of both connections, the workspace's first."""
        return (self.writer,) if self.connection is None else (self.writer, self.connection.writer)

    async def run(self) -> None:
        limits = self.proxy.limits
        received = Meter(limits.received_bytes)
        try:
            async with asyncio.timeout(limits.total_s):
                await self._serve(received)
        except TimeoutError:
            await self._refuse(Refused(Reason.TOO_SLOW, "It took too long altogether."))
        except Refused as refusal:
            await self._refuse(refusal)
        finally:
            self.record.sent_bytes = self.sent.count
            self.record.received_bytes = received.count

    async def _serve(self, received: Meter) -> None:
        text = await head_of(self.reader, self.proxy.limits.head_s)
        if not text:
            return
        head = read_request(text)
        target = target_of(head, self.rules.token)
        self._record_access(head, target)
        match target:
            case Tunnel():
                await self._tunnel(head, target, received)
            case Plain():
                await self._forward(head, target, Transport.HTTP, received)
            case Secured():
                await self._forward(head, target, Transport.TLS, received)
            case _:
                assert_never(target)

    def _record_access(self, head: RequestHead, target: Target) -> None:
        self.record.form = type(target).__name__.lower()
        self.record.host_port = str(target.host_port)
        path = "" if isinstance(target, Tunnel) else target.path
        self.record.request = f"{head.method} {path.partition('?')[0]}".strip()[
            :PURPOSE_CHARACTERS_MAX
        ]

    async def _tunnel(self, head: RequestHead, target: Tunnel, received: Meter) -> None:
        limits, policy = self.proxy.limits, self.rules.policy
        is_raw = policy.allows(target.host_port, Transport.RAW)
        policy.check_host_port(target.host_port, Transport.RAW if is_raw else Transport.TLS)
        connection = await self._dial(head, target.host_port, is_secured=False)
        self.is_answered = self.is_tunnel = True
        self.writer.write(ESTABLISHED)
        await self.writer.drain()
        if not is_raw:
            greeting = await greeting_of(self.reader, target.host_port, limits)
            self.sent.add(len(greeting))
            connection.writer.write(greeting)
        await join(
            self.reader,
            self.writer,
            connection,
            sent=self.sent,
            received=received,
            idle_s=limits.idle_s,
        )

    async def _forward(
        self, head: RequestHead, target: Plain | Secured, transport: Transport, received: Meter
    ) -> None:
        limits = self.proxy.limits
        self.rules.policy.check_host_port(target.host_port, transport)
        is_secured = transport is Transport.TLS
        grant = grant_for(self.rules.grants, target.host_port, target.path) if is_secured else None
        connection = await self._dial(head, target.host_port, is_secured=is_secured)
        secret = await self._secret(grant, target) if grant is not None else None
        is_git = is_secured and is_git_path(target.path)
        rules = self.rules
        advice = (
            password_advice(rules.grants, rules.workspace_id, target.host_port) if is_git else ""
        )
        forwarding = Forwarding(head, target, self.rules.token, grant, secret, advice)
        await forwarding.run(
            self.reader, self.writer, connection, limits, self.sent, received, self._answered
        )

    async def _dial(
        self, head: RequestHead, host_port: HostPort, *, is_secured: bool
    ) -> Connection:
        """Connect to a target, and record that before anything of it reaches the workspace.

        A connection that fails is recorded, too: what the workspace is told of it is from outside.
        """
        reached = ReachedHost(host_port.host, is_git_agent(head.get("user-agent")))
        await self.open_until_sent.enter_async_context(
            self.proxy.reached.connection(self.rules.workspace_id, reached)
        )
        self.connection = await self.proxy.dialer.dial(
            host_port,
            self.rules.policy,
            is_secured=is_secured,
            limit_s=self.proxy.limits.connect_s,
        )
        self.record.address = self.connection.address
        return self.connection

    async def _secret(self, grant: Grant, target: Plain | Secured) -> SecretValue:
        self.record.secret_name = grant.name
        use = SecretUse(
            self.rules.workspace_id, grant.name, str(target.host_port), self.record.request
        )
        try:
            return await self.proxy.secrets.use(use)
        except SecretUnavailable as error:
            raise Refused(Reason.SECRET_UNAVAILABLE, f"{error}.") from error

    def _answered(self) -> None:
        self.is_answered = True

    async def _refuse(self, refusal: Refused) -> None:
        self.record.outcome, self.record.problem = refusal.reason, refusal.problem
        if self.is_tunnel:
            alert(self.writer)
        elif not self.is_answered:
            self.writer.write(answer_of(refusal))
        await self._linger()

    async def _linger(self) -> None:
        """Let the response arrive: closing with unread input would reset the connection."""
        if self.writer.can_write_eof():
            self.writer.write_eof()
        left = LINGER_BYTES
        try:
            async with asyncio.timeout(LINGER_S):
                while left > 0 and (piece := await self.reader.read(left)):
                    left -= len(piece)
        except TimeoutError:
            return
