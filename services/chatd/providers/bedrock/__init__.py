"""Anthropic's models at Bedrock: the framing, the signature and the addresses of AWS."""

from chatd.providers.bedrock.frames import EventStreamFrames
from chatd.providers.bedrock.wire import BedrockWire

__all__ = ["BedrockWire", "EventStreamFrames"]
