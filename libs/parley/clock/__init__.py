"""Time as a dependency: the `Clock` port, the system clock, a fake, timeouts and backoff."""

from parley.clock.backoff import backoff_s
from parley.clock.fake import FakeClock
from parley.clock.port import Clock, SystemClock
from parley.clock.timeouts import patient

__all__ = ["Clock", "FakeClock", "SystemClock", "backoff_s", "patient"]
