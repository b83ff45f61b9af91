"""`parley account`: what is one's own."""

from pathlib import Path

import click

from parley.cli.accounts.exports import save_export
from parley.cli.api.client import Api
from parley.cli.api.server import find_server
from parley.cli.invocation import current
from parley.cli.options import HomeGroup


@click.group(cls=HomeGroup)
def account() -> None:
    """Export all that is one's own."""


@account.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
def export(path: Path) -> None:
    """Write profile, settings, chats, files and spend of one's own to the ZIP file PATH."""
    save_export(Api(find_server(current())), "/api/v1/me/exports", path)
