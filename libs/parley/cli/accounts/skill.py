"""`parley skill`: texts that models read when they need them."""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from parley.cli.accounts.skill_archive import (
    SKILL_FILE,
    SkillFile,
    name_in,
    read_archive,
    skill_content,
    write_archive,
)
from parley.cli.api.client import Api, ApiRefused
from parley.cli.api.requests import current_api, new_key
from parley.cli.errors import CliError
from parley.cli.options import HomeGroup, json_option
from parley.cli.text import print_list, sanitized

PATH = "/api/v1/me/skills"
COLUMNS = ("name", "bytes", "description")


@click.group(cls=HomeGroup)
def skill() -> None:
    """Keep skills: texts that models read when they need them."""


@skill.command()
@json_option
def ls(as_json: bool) -> None:
    """List your skills."""
    found = current_api().call("GET", PATH, needs="items")
    rows = ((each["name"], str(each["size_bytes"]), each["description"]) for each in found["items"])
    print_list(found, COLUMNS, rows, as_json=as_json)


@skill.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
def add(file: Path) -> None:
    """Store the SKILL.md FILE, or the one in the directory FILE; - reads standard input.

    It begins with its name and description between two lines of three dashes. A skill that has the
    same name is replaced.
    """
    content = _content_of(file)
    name = name_in(content)
    if name is None:
        raise click.UsageError("The file has no line with name: in its first lines.")
    _store(current_api(), SkillFile(name, content))


@skill.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def import_(file: Path) -> None:
    """Store the skills of the ZIP archive FILE: those with a SKILL.md in their directory.

    Skills that have the same names are replaced. Other files are left out.
    """
    archive = read_archive(file)
    if archive.skipped:
        click.echo(f"Left out: {sanitized(', '.join(archive.skipped))}", err=True)
    api, refused = current_api(), 0
    for each in archive.skills:
        try:
            _store(api, each)
        except ApiRefused as refusal:
            refused += 1
            click.echo(f"{sanitized(each.name)} is refused: {refusal}", err=True)
    if refused:
        raise CliError(f"{refused} of {len(archive.skills)} skills are not stored")


@skill.command()
@click.argument("file", type=click.Path(path_type=Path))
def export(file: Path) -> None:
    """Write all your skills into the new ZIP archive FILE, each as NAME/SKILL.md."""
    api = current_api()
    names = [each["name"] for each in api.call("GET", PATH, needs="items")["items"]]
    found = [api.call("GET", _path(name), needs="name") for name in names]
    texts = [skill_content(each["name"], each["description"], each["body"]) for each in found]
    write_archive(file, map(SkillFile, names, texts))
    click.echo(f"Wrote {file}: {len(names)} skill{'' if len(names) == 1 else 's'}.")


@skill.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Print the skill NAME."""
    found = current_api().call("GET", _path(name), needs="name")
    click.echo(json.dumps(found, indent=2, ensure_ascii=False) if as_json else _shown(found))


@skill.command()
@click.argument("name")
def rm(name: str) -> None:
    """Delete the skill NAME."""
    current_api().call("DELETE", _path(name), None, new_key())
    click.echo(f"Deleted {sanitized(name)}.")


def _store(api: Api, given: SkillFile) -> None:
    body = {"content": given.content}
    stored = api.call("PUT", _path(given.name), body, new_key(), needs="name")
    click.echo(f"Stored {stored['name']}: {sanitized(str(stored['description']))}")


def _shown(found: dict[str, Any]) -> str:
    return sanitized(f"{found['name']}: {found['description']}\n\n{found['body']}")


def _content_of(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return (file / SKILL_FILE if file.is_dir() else file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from None


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"
