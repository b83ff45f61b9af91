"""Anthropic's models on Bedrock: event stream framing, request signatures and AWS addresses."""

from chatd.providers.bedrock.frames import EventStreamFrames
from chatd.providers.bedrock.wire import BedrockWire

__all__ = ["BedrockWire", "EventStreamFrames"]
