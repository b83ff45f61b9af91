"""Registers and renews the lease of a worker, and decides what the lease allows."""

import asyncio
import logging
from collections.abc import Callable

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.domain import Leases, NamedChat, WorkerEnded
from chatd.workers.engine.leases import Lease, LeaseTiming, contact_lost, renewed
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.telemetry import OutageLog

logger = logging.getLogger(__name__)


class LeaseKeeper:
    """Registers a worker and renews its lease.

    `named` is called after every renewal with the chats that this worker owns, `on_ended` when the
    worker was declared dead: it holds no lease any more and will get none.
    """

    def __init__(
        self,
        worker_id: WorkerId,
        address: str,
        leases: Leases,
        *,
        clock: Clock,
        timing: LeaseTiming,
        named: Callable[[tuple[NamedChat, ...]], None],
        on_ended: Callable[[], None],
        is_quarantine: bool = False,
    ) -> None:
        self._worker_id = worker_id
        self._address = address
        self._leases = leases
        self._clock = clock
        self._timing = timing
        self._named = named
        self._on_ended = on_ended
        self._is_quarantine = is_quarantine
        self._lease: Lease | None = None
        self._is_registered = asyncio.Event()
        self._is_ending = False
        self._outages = OutageLog(logger, clock, "the lease could not be renewed", normal_s=0.0)

    def may_act(self) -> bool:
        """Return whether a new effect may start: not shortly before the lease may expire."""
        now = self._clock.monotonic()
        return self._lease is not None and self._lease.may_act(now, self._timing)

    def may_take_over(self) -> bool:
        """Return whether chats of other workers may be considered abandoned."""
        now = self._clock.monotonic()
        return self._lease is not None and self._lease.may_sweep(now, self._timing)

    def note_outage(self) -> None:
        """Record that a call to the database failed."""
        self._lease = contact_lost(self._lease)

    def begin_end(self) -> None:
        """Continue renewing, but do not register again if the row of this worker is gone."""
        self._is_ending = True

    def end(self) -> None:
        """Stop using the lease."""
        self._lease = None

    async def until_registered(self) -> None:
        """Wait until the first registration succeeded."""
        await self._is_registered.wait()

    async def run(self) -> None:
        """Renew until cancelled, or until the worker was declared dead."""
        while True:
            try:
                if self._is_registered.is_set():
                    await self._renew()
                else:
                    await self._register()
                self._outages.succeeded()
                delay_s = self._timing.renew_every_s
            except WorkerEnded as ended:
                logger.error("%s; this process stops", ended)
                self._lease = None
                self._on_ended()
                return
            except DatabaseUnavailable as outage:
                self._outages.failed(outage)
                self.note_outage()
                delay_s = self._timing.renew_again_s
            except Exception:
                logger.exception("the lease could not be renewed")
                self.note_outage()
                delay_s = self._timing.renew_again_s
            await self._clock.sleep(delay_s)

    async def _register(self) -> None:
        sent_at = self._clock.monotonic()
        await self._leases.register(
            self._worker_id,
            self._address,
            self._timing.lease_s,
            is_quarantine=self._is_quarantine,
        )
        self._hold(sent_at)
        self._is_registered.set()

    async def _renew(self) -> None:
        sent_at = self._clock.monotonic()
        named = await self._leases.renew(self._worker_id, self._timing.lease_s)
        if named is not None:
            self._hold(sent_at)
            self._named(named)
        elif not self._is_ending:
            self._lease = None
            self._is_registered.clear()
            await self._register()
            logger.error("the row of this worker was gone; it registered again")

    def _hold(self, sent_at: float) -> None:
        answered_at = self._clock.monotonic()
        self._lease = renewed(
            self._lease, sent_at=sent_at, answered_at=answered_at, timing=self._timing
        )
