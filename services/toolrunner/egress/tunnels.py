"""Tunnels for the workspace's own TLS, whose server name must be the host of the tunnel."""

import asyncio

from toolrunner.egress.dialer import Connection
from toolrunner.egress.domain.client_hello import (
    ALERT,
    HelloUnreadable,
    handshake_of,
    read_hello,
)
from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.rules import Limits
from toolrunner.egress.relay import Meter, Reading, joint, pump


async def greeting_of(reader: asyncio.StreamReader, host_port: HostPort, limits: Limits) -> bytes:
    """Return the first bytes of a tunnel, once they are a ClientHello for its host.

    Raises:
        Refused: They are not TLS, or for another host.
    """
    records = b""
    try:
        async with asyncio.timeout(limits.head_s):
            while (message := handshake_of(records)) is None:
                piece = await reader.read(limits.head_bytes)
                records += piece
                if not piece or len(records) > limits.head_bytes:
                    raise HelloUnreadable("it is cut short, or too long")
        hello = read_hello(message)
    except TimeoutError:
        raise Refused(Reason.TOO_SLOW, "No TLS came through the tunnel in time.") from None
    except HelloUnreadable as error:
        raise Refused(Reason.MALFORMED, f"What came through the tunnel: {error}.") from None
    if hello.is_hiding:
        raise Refused(Reason.MISMATCH, "The TLS hides its host (Encrypted Client Hello).")
    # An address is never sent as a server name.
    if hello.server_name.lower() != ("" if host_port.is_address else host_port.host):
        raise Refused(
            Reason.MISMATCH, f"The tunnel is for {host_port}, and its TLS is for another."
        )
    return records


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: Connection,
    *,
    sent: Meter,
    received: Meter,
    idle_s: float,
) -> None:
    """Copy both directions until both have ended.

    Raises:
        Refused: The byte limit is exceeded, or the idle timeout expired.
        OSError: A connection is lost.
    """
    async with joint() as ways:
        ways.create_task(_one_way(Reading(reader, idle_s), connection.writer, sent))
        ways.create_task(_one_way(Reading(connection.reader, idle_s), writer, received))


def alert(writer: asyncio.StreamWriter) -> None:
    """Refuse with a TLS alert, since the tunnel is open already."""
    writer.write(ALERT)


async def _one_way(source: Reading, sink: asyncio.StreamWriter, meter: Meter) -> None:
    await pump(source, sink, meter)
    if sink.can_write_eof():
        sink.write_eof()
