"""The default model, as reported by the server, which also has the stored models."""

from collections.abc import Mapping
from typing import Any

from parley.cli.api.client import Api
from parley.cli.api.requests import listed
from parley.cli.api.server import local_server
from parley.cli.errors import CliError
from parley.cli.home.layout import Home
from parley.cli.stack.model_providers import HOW_TO_GET_ONE
from parley.cli.text import sanitized

MODELS = "/api/v1/models"
PROVIDERS = "/api/v1/providers"
DEMO_ID = "scripted"
ASK_S = 2.0
#: The end of the line if the default is a real model.
BY_DEFAULT = " by default"
HOW_TO_CHOOSE = (
    f'make another model the default: PATCH {MODELS}/ID with {{"is_default": true}} (GET {MODELS} '
    "has the ids)"
)


def default_model_line(home: Home, url: str | None) -> str:
    """Return one line with the default model, and how to choose another one."""
    try:
        api = Api(local_server(home, url or ""))
        models = list_models(api)
        default = next((model for model in models if model.get("is_default")), None)
        if default is None:
            return f"none is the default; {HOW_TO_CHOOSE}"
        if default.get("id") != DEMO_ID:
            return _named(default, api)
    except CliError as error:
        return f"unknown, the server does not tell: {error}"
    hint = HOW_TO_CHOOSE if len(models) > 1 else HOW_TO_GET_ONE
    return f"the scripted demo answers; {hint}"


def _named(model: Mapping[str, Any], api: Api) -> str:
    provider = api.call("GET", f"{PROVIDERS}/{model['provider_id']}", needs="name", within_s=ASK_S)
    names = (provider["display_name"], model["display_name"])
    return f"{', '.join(sanitized(str(name)) for name in names)}{BY_DEFAULT}"


def list_models(api: Api) -> list[dict[str, Any]]:
    """Return all models that the server has.

    Raises:
        CliError: it does not answer, or the answer is not one of Parley's API.
    """
    return list(listed(api, MODELS, within_s=ASK_S))
