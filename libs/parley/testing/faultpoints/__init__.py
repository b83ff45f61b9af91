"""Named fault points at which a test makes a running process hold, stop, fail or die."""

from parley.testing.faultpoints.arming import Action, Arming, OffsetClock
from parley.testing.faultpoints.directory import FaultInjected, FaultpointDirectory

__all__ = ["Action", "Arming", "FaultInjected", "FaultpointDirectory", "OffsetClock"]
