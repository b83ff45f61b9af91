"""`parley notifications`: the devices that are notified when a chat finishes, fails or asks."""

import json
from typing import Any
from urllib.parse import quote

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.chats.id_prefixes import IdParameter
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_table

PATH = "/api/v1/me/push-subscriptions"
COLUMNS = ("id", "name", "host", "created_at", "last_sent_at", "last_error")


def _devices(api: Api) -> list[Any]:
    listed = api.call("GET", PATH, needs="push_subscriptions")
    return list(listed["push_subscriptions"])


DEVICE = IdParameter("device", "parley notifications ls", _devices, named_by="name")


@click.group(cls=HomeGroup)
def notifications() -> None:
    """See and delete the devices that are notified; browsers add themselves in the settings."""


@notifications.command()
@json_option
def ls(as_json: bool) -> None:
    """List your devices."""
    devices = _devices(current_api())
    if as_json:
        shown = json.dumps({"push_subscriptions": devices}, indent=2, ensure_ascii=False)
        click.echo(shown)
        return
    rows = [[str(each.get(column) or "-") for column in COLUMNS] for each in devices]
    print_table(COLUMNS, rows)


@notifications.command()
@click.argument("device", metavar="ID", type=DEVICE)
def test(device: str) -> None:
    """Send a test notification to the device ID, which may be its name."""
    current_api().call("POST", f"{_path(device)}/test", None, new_key())
    click.echo("The push service accepted it.")


@notifications.command()
@click.argument("device", metavar="ID", type=DEVICE)
def rm(device: str) -> None:
    """Do not notify the device ID any more, which may be its name."""
    current_api().call("DELETE", _path(device), None, new_key())
    click.echo("Deleted.")


def _path(device: str) -> str:
    return f"{PATH}/{quote(device, safe='')}"
