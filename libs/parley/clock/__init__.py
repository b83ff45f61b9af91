"""Time as an argument: the `Clock` port, the system's clock, and one that tests move by hand."""

from parley.clock.fake import FakeClock
from parley.clock.port import Clock, SystemClock

__all__ = ["Clock", "FakeClock", "SystemClock"]
