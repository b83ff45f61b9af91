"""Guarded HTTP to addresses that users or third parties choose; all of it goes through here."""

from parley.egress.policy import AddressBlocked, Policy
from parley.egress.sender import GuardedAnswer, GuardedSender, SendFailed

__all__ = ["AddressBlocked", "GuardedAnswer", "GuardedSender", "Policy", "SendFailed"]
