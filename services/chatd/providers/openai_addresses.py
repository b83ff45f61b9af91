"""URL and headers of a call in one of OpenAI's two wire formats."""

from collections.abc import Mapping
from typing import assert_never
from urllib.parse import quote, urlencode

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import OPENAI_BASE_URL, ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.models.engine.target import HOST_HEADER, Target, is_host_header
from parley.settings import Secret

# The only one of our paths that is under a deployment in Azure's dated addresses.
DEPLOYED_PATH = "chat/completions"


def address(target: Target, path: str) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers of a call to `path`, such as "chat/completions".

    Options: `api_version`, `deployment` and `azure_ad_token` (the token, or true when the key is
    one) for Azure; `organization` and `project` for OpenAI; `extra_headers` and `extra_query`
    everywhere, which override our own.

    Raises:
        ModelError: The target lacks an address or a key, or one of these options is invalid.
    """
    query: dict[str, str] = {}
    match target.provider_type:
        case ProviderType.OPENAI:
            url = f"{target.base_url or OPENAI_BASE_URL}/{path}"
            headers = _bearer(target, _required_key(target)) | _openai_headers(target)
        case ProviderType.OPENAI_COMPATIBLE:
            url = f"{_required_base_url(target)}/{path}"
            headers = _bearer(target, target.api_key)
        case ProviderType.AZURE:
            url, query = _azure_url(target, path)
            headers = _azure_headers(target)
        case ProviderType.ANTHROPIC | ProviderType.BEDROCK | ProviderType.SCRIPTED:
            raise config_error(target, "does not speak this protocol; choose another type for it.")
        case _:
            assert_never(target.provider_type)
    query |= _texts(target, "extra_query")
    headers["Content-Type"] = "application/json"
    for name, value in _texts(target, "extra_headers").items():
        if is_host_header(name):
            raise config_error(target, HOST_HEADER)
        headers = {each: kept for each, kept in headers.items() if each.lower() != name.lower()}
        headers[name] = value
    return f"{url}?{urlencode(query)}" if query else url, headers


def config_error(target: Target, what: str) -> ModelError:
    """Return the error of a call that the target's configuration makes impossible."""
    return ModelError(
        ErrorKind.CONFIG,
        f"{target.provider_name} {what}",
        is_retryable=False,
        provider=target.provider_name,
    )


def text_option(target: Target, name: str) -> str:
    """Return a string option; empty if it is not set.

    Raises:
        ModelError: It is not a string.
    """
    value = target.options.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise config_error(target, f"has an option {name} that is not a text; correct it.")
    return value


def _azure_url(target: Target, path: str) -> tuple[str, dict[str, str]]:
    base = _required_base_url(target).removesuffix("/openai/v1").removesuffix("/openai")
    version = text_option(target, "api_version")
    if not version:
        return f"{base}/openai/v1/{path}", {}
    if path != DEPLOYED_PATH:
        return f"{base}/openai/{path}", {"api-version": version}
    deployment = quote(text_option(target, "deployment") or target.model_name, safe="")
    return f"{base}/openai/deployments/{deployment}/{path}", {"api-version": version}


def _azure_headers(target: Target) -> dict[str, str]:
    token = target.options.get("azure_ad_token")
    match token:
        case None | False:
            return {"api-key": _sendable(target, _required_key(target))}
        case True:
            return _bearer(target, _required_key(target))
        case Secret():
            return _bearer(target, token)
        case _:
            return _bearer(target, Secret(text_option(target, "azure_ad_token")))


def _openai_headers(target: Target) -> dict[str, str]:
    named = {
        "OpenAI-Organization": text_option(target, "organization"),
        "OpenAI-Project": text_option(target, "project"),
    }
    return {name: value for name, value in named.items() if value}


def _bearer(target: Target, key: Secret) -> dict[str, str]:
    """Return the header for a key; local endpoints often need none."""
    return {"Authorization": f"Bearer {_sendable(target, key)}"} if key.reveal() else {}


def _sendable(target: Target, key: Secret) -> str:
    """Return the key without surrounding whitespace, such as a copied line break."""
    text = key.reveal().strip()
    if not (text.isascii() and text.isprintable()):
        raise config_error(target, "has a key with characters that no key has; set it again.")
    return text


def _required_key(target: Target) -> Secret:
    if not target.api_key.reveal():
        raise ModelError(
            ErrorKind.MISSING_KEY,
            f"{target.provider_name} has no key; ask an administrator to set one.",
            is_retryable=False,
            provider=target.provider_name,
        )
    return target.api_key


def _required_base_url(target: Target) -> str:
    if not target.base_url:
        raise config_error(target, "has no address; set the base URL of its endpoint.")
    return target.base_url


def _texts(target: Target, name: str) -> dict[str, str]:
    """Return an option that maps names to strings; a line break would inject another header."""
    value = target.options.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and text.isprintable() for pair in value.items() for text in pair
    ):
        raise config_error(target, f"has an option {name} that does not map names to plain texts.")
    return dict(value)
