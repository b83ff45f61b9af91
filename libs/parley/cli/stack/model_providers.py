"""The model providers in the caller's environment, and the settings of chatd for them."""

from collections.abc import Mapping
from urllib.parse import urlsplit

#: Variable of the caller -> the setting of chatd that it sets; no other process gets them.
PROVIDER_VARIABLES: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL": "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY": "OPENAI_API_KEY",
    "OPENAI_BASE_URL": "OPENAI_BASE_URL",
    "AZURE_OPENAI_API_KEY": "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT": "AZURE_OPENAI_ENDPOINT",
    "OPENROUTER_API_KEY": "OPENROUTER_API_KEY",
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "AWS_REGION": "AWS_REGION",
    "PARLEY_MODEL": "MODEL",
}
#: Provider -> the variables that it needs.
NEEDED: Mapping[str, tuple[str, ...]] = {
    "Anthropic": ("ANTHROPIC_API_KEY",),
    "OpenAI": ("OPENAI_API_KEY",),
    "Azure OpenAI": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
    "OpenRouter": ("OPENROUTER_API_KEY",),
    "Amazon Bedrock": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
}
OPENAI_HOST = "api.openai.com"
HOW_TO_GET_ONE = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL to talk to a real model"


def provider_settings(caller: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the settings from the caller's variables."""
    return {
        f"{prefix}_{setting}": caller[name]
        for name, setting in PROVIDER_VARIABLES.items()
        if caller.get(name, "").strip()
    }


def found_providers(caller: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the providers in the caller's variables, without any key."""
    given = {name for name in PROVIDER_VARIABLES if caller.get(name, "").strip()}
    names = [name for name, needed in NEEDED.items() if given.issuperset(needed)]
    host = urlsplit(caller.get("OPENAI_BASE_URL", "").strip()).hostname
    if host and host != OPENAI_HOST:
        names = [f"OpenAI-compatible at {host}", *(name for name in names if name != "OpenAI")]
    return tuple(names)
