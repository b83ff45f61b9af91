"""Plays recorded provider responses through the real adapters and prints one value for each."""

from chatd.replay.outcome import Outcome
from chatd.replay.playing import NotPlayable, play

__all__ = ["NotPlayable", "Outcome", "play"]
