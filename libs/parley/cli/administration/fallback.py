"""`parley fallback`: the model that continues a turn when a provider is down or over quota."""

import click

from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import CHAT_ID
from parley.cli.chats.listing import chat_path
from parley.cli.invocation import current
from parley.cli.options import HomeGroup

SETTINGS = "/api/v1/settings"
FIELD = "fallback_model_id"
NO_MODEL = "none"

of_chat = click.option(
    "--chat", "chat_id", type=CHAT_ID, metavar="CHAT",
    help="Of this chat, instead of all that name none.",
)  # fmt: skip


@click.group(cls=HomeGroup)
def fallback() -> None:
    """Choose the model that continues when a provider is down or over quota."""


@fallback.command()
@of_chat
def show(chat_id: str | None) -> None:
    """Print the id of the model; `default` for a chat with the one of the installation."""
    found = current_api().call("GET", _path(chat_id))
    _print(found, chat_id)


@fallback.command("set")
@click.argument("model_id", metavar="MODEL")
@of_chat
def set_model(model_id: str, chat_id: str | None) -> None:
    """Let MODEL continue; with --chat, `none` for no model at all."""
    if model_id == NO_MODEL and chat_id is None:
        clear_command = current().hint("fallback clear")
        raise click.UsageError(f"`none` is for --chat: `{clear_command}` lets no model continue.")
    _change(model_id, chat_id)


@fallback.command()
@of_chat
def clear(chat_id: str | None) -> None:
    """Let none continue; with --chat, the one of the installation."""
    _change(None, chat_id)


def _change(model_id: str | None, chat_id: str | None) -> None:
    api = current_api()
    _print(api.call("PATCH", _path(chat_id), {FIELD: model_id}, new_key()), chat_id)


def _path(chat_id: str | None) -> str:
    return SETTINGS if chat_id is None else chat_path(chat_id)


def _print(found: object, chat_id: str | None) -> None:
    assert isinstance(found, dict)
    click.echo(found.get(FIELD) or ("none" if chat_id is None else "default"))
