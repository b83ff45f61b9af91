"""Named points at which a test makes a running process hold, stop, fail or die."""

from parley.faultpoints.arming import Action, Arming
from parley.faultpoints.directory import FaultpointDirectory
from parley.faultpoints.errors import FaultInjected
from parley.faultpoints.offset_clock import OffsetClock

__all__ = ["Action", "Arming", "FaultInjected", "FaultpointDirectory", "OffsetClock"]
