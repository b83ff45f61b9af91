"""`parley models`: the models that one can use, and one's own choices among them."""

from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.default_model import list_models
from parley.cli.errors import CliError
from parley.cli.invocation import current
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list

OVERRIDES = "/api/v1/me/model-overrides"
SETTINGS = "/api/v1/me/settings"
THRESHOLDS = "compaction_threshold_percents"
PURPOSES = ("root", "general", "explore")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
COLUMNS = ("id", "model", "provider", "summarized at", "marks")

purpose_argument = click.argument("purpose", type=click.Choice(PURPOSES))
off_option = click.option("--off", is_flag=True, help="Take it off the list again.")


@click.group(cls=HomeGroup)
def models() -> None:
    """List the models, and keep one's own choices among them.

    PURPOSE is root for chats without a chosen model, general for agents that chats start, and
    explore for agents that only read and search.
    """


@models.command()
@json_option
def ls(as_json: bool) -> None:
    """List the models that you can use, your favourites first."""
    found = list_models(current_api())
    rows = (
        (
            each["id"],
            each["display_name"],
            each["provider_display_name"],
            f"{each['effective_compaction_threshold_percent']} %",
            ", ".join(_marks(each)),
        )
        for each in found
    )
    print_list(found, COLUMNS, rows, as_json=as_json)


@models.command()
def own() -> None:
    """Print your own models by purpose."""
    found = current_api().call("GET", OVERRIDES, needs="items")
    for each in found["items"]:
        click.echo(_line(each))
    if not found["allowed"]:
        click.echo("Own models are switched off here, so these have no effect.")


@models.command("set")
@purpose_argument
@click.argument("model", metavar="MODEL|chat|installation")
@click.option("--effort", type=click.Choice(EFFORTS), help="Its reasoning effort.")
def set_model(purpose: str, model: str, effort: str | None) -> None:
    """Use MODEL for PURPOSE; `chat` for the default of chats, `installation` for that of all."""
    body: dict[str, object] = {"mode": "model", "model_id": model}
    if model in ("chat", "installation"):
        body = {"mode": f"{model}_default"}
    if effort:
        body["reasoning_effort"] = effort
    click.echo(
        _line(current_api().call("PUT", f"{OVERRIDES}/{purpose}", body, new_key(), needs="mode"))
    )


@models.command()
@purpose_argument
def clear(purpose: str) -> None:
    """Forget your own model for PURPOSE."""
    current_api().call("DELETE", f"{OVERRIDES}/{purpose}", None, new_key())
    click.echo(f"{purpose}: as configured for all")


@models.command()
@click.argument("model", metavar="MODEL")
@click.argument("percent", metavar="PERCENT|default")
def threshold(model: str, percent: str) -> None:
    """Summarize your chats when the window of MODEL is PERCENT full; 100 never does."""
    if percent != "default" and not (percent.isdecimal() and int(percent) <= 100):
        raise click.UsageError("PERCENT is a number from 0 to 100, or `default`.")
    api = current_api()
    model_id = _id_of(api, model)
    percents = api.call("GET", SETTINGS, needs=THRESHOLDS)[THRESHOLDS]
    percents.pop(model_id, None)
    if percent != "default":
        percents[model_id] = int(percent)
    api.call("PATCH", SETTINGS, {THRESHOLDS: percents}, new_key())
    click.echo(f"{model_id}: {percent}")


@models.command()
@click.argument("model", metavar="MODEL")
@off_option
def favourite(model: str, off: bool) -> None:
    """Put MODEL first in your lists."""
    _relist("favourite_model_ids", model, is_off=off)


@models.command()
@click.argument("model", metavar="MODEL")
@off_option
def hide(model: str, off: bool) -> None:
    """Leave MODEL out of your pickers; it can still be used."""
    _relist("hidden_model_ids", model, is_off=off)


def _relist(field: str, model: str, *, is_off: bool) -> None:
    api = current_api()
    model_id = _id_of(api, model)
    kept = [each for each in api.call("GET", SETTINGS, needs=field)[field] if each != model_id]
    listed = kept if is_off else [*kept, model_id]
    saved = api.call("PATCH", SETTINGS, {field: listed}, new_key(), needs=field)
    click.echo("\n".join(saved[field]) or "none")


def _id_of(api: Api, reference: str) -> str:
    """Return the id of the model that has this id or name.

    Raises:
        CliError: There is none, or several have the name.
    """
    found = [each for each in list_models(api) if reference in (each["id"], each["name"])]
    if len(found) != 1:
        hint = current().hint("models ls")
        problem = "No model is called" if not found else "Several models are called"
        raise CliError(f"{problem} {reference}; `{hint}` has the ids.")
    return str(found[0]["id"])


def _marks(model: dict[str, Any]) -> list[str]:
    marks = {"default": "is_default", "favourite": "is_favourite", "hidden": "is_hidden"}
    return [word for word, field in marks.items() if model.get(field)]


def _line(override: dict[str, Any]) -> str:
    chosen = override["model_id"] or str(override["mode"]).replace("_", " ")
    effort = override.get("reasoning_effort")
    return f"{override['purpose']}: {chosen}" + (f", {effort}" if effort else "")
