"""Providers and models as values: what an installation can talk to."""

from enum import StrEnum


class ProviderType(StrEnum):
    """A family of endpoints that speak alike."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENAI_COMPATIBLE = "openai_compatible"
    AZURE = "azure"
    BEDROCK = "bedrock"
    SCRIPTED = "scripted"
