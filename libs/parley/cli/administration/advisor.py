"""`parley advisor`: whether and how agents may ask the advisor."""

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.options import HomeGroup
from parley.cli.text import print_json

PATH = "/api/v1/settings/advisor"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@click.group(cls=HomeGroup)
def advisor() -> None:
    """Let agents ask a model without tools for advice."""


@advisor.command()
def show() -> None:
    """Print the settings of the advisor as JSON."""
    _print(current_api().call("GET", PATH))


@advisor.command()
@click.option(
    "--uses", "uses_per_turn_max", type=click.IntRange(1, 1000), default=3, show_default=True,
    help="How often it may be asked in a turn.",
)  # fmt: skip
@click.option(
    "--tokens", "output_tokens_max", type=click.IntRange(1, 1_000_000), default=16384,
    show_default=True, help="Size limit of its answer.",
)  # fmt: skip
@click.option(
    "--model", "model_id", metavar="MODEL",
    help="The model that advises (default: the model of the chat).",
)  # fmt: skip
@click.option("--effort", type=click.Choice(EFFORTS), help="Its reasoning effort; needs --model.")
def enable(
    uses_per_turn_max: int, output_tokens_max: int, model_id: str | None, effort: str | None
) -> None:
    """Let the agents of root chats ask it, with these settings."""
    if effort and not model_id:
        raise click.UsageError("--effort needs --model.")
    body: dict[str, object] = {
        "enabled": True,
        "uses_per_turn_max": uses_per_turn_max,
        "output_tokens_max": output_tokens_max,
        "model_id": model_id,
    }
    if effort:
        body["reasoning_effort"] = effort
    _print(current_api().call("PUT", PATH, body, new_key()))


@advisor.command()
def disable() -> None:
    """Take it away; the other settings stay."""
    api = current_api()
    _print(api.call("PUT", PATH, {**api.call("GET", PATH), "enabled": False}, new_key()))


def _print(settings: object) -> None:
    print_json(settings)
