"""Time as a dependency: the `Clock` port, the system clock, a fake for tests, and timeouts."""

from parley.clock.fake import FakeClock
from parley.clock.port import Clock, SystemClock
from parley.clock.timeouts import patient

__all__ = ["Clock", "FakeClock", "SystemClock", "patient"]
