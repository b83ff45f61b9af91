"""Named fault points at which a test makes a running process hold, stop, fail or die."""

from parley.testing.faultpoints.arming import Action, Arming
from parley.testing.faultpoints.directory import FaultpointDirectory
from parley.testing.faultpoints.errors import FaultInjected
from parley.testing.faultpoints.offset_clock import OffsetClock

__all__ = ["Action", "Arming", "FaultInjected", "FaultpointDirectory", "OffsetClock"]
