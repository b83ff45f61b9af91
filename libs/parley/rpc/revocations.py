"""Follows the gateway's list of revoked service tokens.

A stream begins with a snapshot and goes on with changes and heartbeats, each of which contains the
version it continues. A version that does not follow, a silence longer than the heartbeat interval
allows, and a lost connection are handled alike: a new stream is opened, to the next gateway, and
its snapshot is applied. The entries known until then stay in force, because a revocation is final.
"""

import asyncio
import logging
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

import grpc

from parley.api.identity.v1 import token_pb2
from parley.api.identity.v1 import token_service_pb2 as api
from parley.api.identity.v1.token_service_pb2_grpc import ServiceTokenServiceStub
from parley.clock import Clock, backoff_s
from parley.identity import CertificateUnreadable, RevocationsUnknown
from parley.rpc.channels import Channels
from parley.rpc.errors import NoAddress
from parley.rpc.limits import LIMITS
from parley.rpc.problem import problem_of
from parley.telemetry import OutageLog

_LOGGER = logging.getLogger(__name__)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RevocationTiming:
    """The timeouts and delays of following the list.

    Attributes:
        silence_s: Silence after which a stream is closed; heartbeats come every 15 s.
        retry_first_s: Delay before the first new stream; it doubles from there.
        retry_last_s: Longest delay between two streams.
        retry_unknown_s: Longest delay before the first snapshot; until then no service token is
            accepted.
    """

    silence_s: float = 45.0
    retry_first_s: float = LIMITS.reconnect_first_s
    retry_last_s: float = LIMITS.reconnect_last_s
    retry_unknown_s: float = 0.3


@dataclass(frozen=True, slots=True)
class _Known:
    """The revoked tokens and the expiry of each, as of one version."""

    version: int
    revoked: Mapping[str, datetime]


class FollowedRevocations:
    """The revoked tokens as published by the gateways; unknown until the first snapshot.

    The owner runs `run` in a task and passes this object to its guard.
    """

    def __init__(
        self,
        channels: Channels,
        *,
        clock: Clock,
        random: random.Random,
        timing: RevocationTiming | None = None,
    ) -> None:
        """Follow one of the gateways of `channels`.

        Args:
            channels: The gateways.
            clock: Times the delays between two streams and the expiry of entries.
            random: Distributes the processes over the gateways, and the retries after a loss.
            timing: The timeouts and delays.
        """
        self._channels = channels
        self._clock = clock
        self._random = random
        self._timing = timing or RevocationTiming()
        self._known: _Known | None = None
        self._failures = 0
        self._outages = OutageLog(_LOGGER, clock, "no gateway sends revocations")

    def is_revoked(self, token_id: str) -> bool:
        """Return whether the token is revoked.

        Raises:
            RevocationsUnknown: No snapshot has arrived yet.
        """
        if self._known is None:
            raise RevocationsUnknown
        return token_id in self._known.revoked

    async def run(self) -> NoReturn:
        """Follow the list until cancelled; no failure of a gateway ends it."""
        turn = self._random.randrange(2**16)
        while True:
            lost = await self._follow(turn)
            turn += 1
            self._failures += 1
            delay_s = self._delay_s()
            self._outages.failed(lost)
            await self._clock.sleep(delay_s)

    async def _follow(self, turn: int) -> str:
        """Follow one gateway until its stream is lost; return the reason."""
        try:
            call = self._open(turn)
        except (NoAddress, CertificateUnreadable) as error:
            return str(error)
        try:
            while True:
                async with asyncio.timeout(self._timing.silence_s):
                    response = await call.read()
                if not isinstance(response, api.WatchRevocationsResponse):
                    return "the gateway ended the stream"
                gap = self._take(response)
                if gap is not None:
                    return gap
        except grpc.aio.AioRpcError as error:
            problem = problem_of(error)
            return f"{problem.reason}: {problem.message}"
        except TimeoutError:
            return f"the gateway said nothing for {self._timing.silence_s:g} s"
        finally:
            call.cancel()

    def _open(
        self, turn: int
    ) -> "grpc.aio.UnaryStreamCall[api.WatchRevocationsRequest, api.WatchRevocationsResponse]":
        addresses = self._channels.addresses
        if not addresses:
            raise NoAddress
        channel = self._channels.at(addresses[turn % len(addresses)])
        return ServiceTokenServiceStub(channel).WatchRevocations(api.WatchRevocationsRequest())

    def _take(self, response: api.WatchRevocationsResponse) -> str | None:
        """Apply one message; return the reason if a new stream must be opened."""
        match response.WhichOneof("event"):
            case "snapshot":
                self._begin(response.snapshot)
                return None
            case "change":
                return self._continue(response.change)
            case "heartbeat":
                return self._check(response.heartbeat.version)
            case _:
                # An event of a newer gateway, which changes no revocation.
                return None

    def _begin(self, snapshot: api.RevocationSnapshot) -> None:
        known, revoked = self._known, _entries(snapshot.revoked_tokens)
        if known is not None and snapshot.version < known.version:
            # This gateway lags behind the one before; tokens revoked there stay revoked.
            revoked = {**known.revoked, **revoked}
        self._know(snapshot.version, revoked)

    def _continue(self, change: api.RevocationChange) -> str | None:
        gap = self._check(change.previous_version)
        known = {} if self._known is None else self._known.revoked
        revoked = {**known, **_entries(change.revoked_tokens)}
        if self._known is not None:
            # Even after a gap these tokens are revoked; the version is kept to show the gap.
            self._know(self._known.version if gap else change.version, revoked)
        return gap

    def _check(self, version: int) -> str | None:
        known = self._known
        if known is None or known.version != version:
            at = "nothing" if known is None else f"version {known.version}"
            return f"the gateway continues version {version} and {at} is known here"
        # A snapshot is not enough: only a stream that continues correctly resets the failures.
        self._failures = 0
        self._outages.succeeded()
        return None

    def _know(self, version: int, revoked: Mapping[str, datetime]) -> None:
        now = self._clock.now()
        alive = {token_id: end for token_id, end in revoked.items() if end > now}
        self._known = _Known(version, alive)

    def _delay_s(self) -> float:
        timing = self._timing
        last_s = timing.retry_last_s
        if self._known is None:
            last_s = min(last_s, timing.retry_unknown_s)
        delay_s = backoff_s(self._failures, timing.retry_first_s, last_s)
        return delay_s * self._random.uniform(0.5, 1.0)


def _entries(tokens: Iterable[token_pb2.RevokedToken]) -> dict[str, datetime]:
    return {token.token_id: _end_of(token) for token in tokens}


def _end_of(token: token_pb2.RevokedToken) -> datetime:
    return token.expires_at.ToDatetime(UTC) if token.HasField("expires_at") else _NEVER
