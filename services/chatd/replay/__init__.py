"""Recorded answers of providers, played through the real adapters and told as one value each."""

from chatd.replay.outcome import Outcome
from chatd.replay.playing import NotPlayable, play

__all__ = ["NotPlayable", "Outcome", "play"]
