"""Time as an argument: the `Clock` port, the system's clock, one that tests move, and waits."""

from parley.clock.fake import FakeClock
from parley.clock.port import Clock, SystemClock
from parley.clock.timeouts import patient

__all__ = ["Clock", "FakeClock", "SystemClock", "patient"]
