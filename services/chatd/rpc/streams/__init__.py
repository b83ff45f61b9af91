"""Streams: from committed states and live parts to the events of every reader."""
