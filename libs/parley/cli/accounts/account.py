"""`parley account`: what is one's own; exports of accounts, saved as archives."""

import os
import time
from pathlib import Path
from typing import Any

import click

from parley.cli.api.client import Api
from parley.cli.api.requests import current_api, new_key
from parley.cli.errors import CliError
from parley.cli.options import HomeGroup


@click.group(cls=HomeGroup)
def account() -> None:
    """Export all that is one's own."""


@account.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
def export(path: Path) -> None:
    """Write profile, settings, chats, files and spend of one's own to the ZIP file PATH."""
    save_export(current_api(), "/api/v1/me/exports", path)


LOOK_EVERY_S = 1.0
ZIP = "application/zip"


def save_export(api: Api, path: str, target: Path) -> None:
    """Begin an export at `path` of the API, or join the one that runs, and save it in a file.

    Raises:
        CliError: the file exists, or the export failed or was deleted meanwhile.
    """
    if target.exists():
        raise CliError(f"{target} exists; choose another name")
    export = api.call("POST", path, None, new_key(), needs="id")
    export_id, entries = export["id"], -1
    while export["state"] != "complete":
        if export["entries"] != entries:
            entries = export["entries"]
            click.echo(f"{entries} files, {export['size_bytes']} bytes so far", err=True)
        time.sleep(LOOK_EVERY_S)  # noqa: TID251 (the command waits as a person would)
        export = _found(api.call("GET", path, needs="items"), export_id)
        if export["state"] == "failed":
            raise CliError(f"the export {export_id} failed. {export['failure']}")
    part = target.with_name(f"{target.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        for piece in api.download(f"{path}/{export_id}/archive", ZIP):
            file.write(piece)
    part.rename(target)
    click.echo(f"Wrote {target}: {export['entries']} files.")


def _found(listed: Any, export_id: str) -> Any:
    for each in listed["items"]:
        if each["id"] == export_id:
            return each
    raise CliError("the export was deleted meanwhile; begin it again")
