"""The glossary and the protos have the same nouns, and metaphors do not come back as names."""

import importlib
import io
import pkgutil
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import parley.api
from support.source.modules import ROOT, modules_below, source_of, tracked_files

GLOSSARY = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`([A-Za-z]+)`")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

#: Each has a plain word instead: docs/glossary.md and ARCHITECTURE.md use those.
BANNED = frozenset(
    {
        "barred",
        "barring",
        "booth",
        "census",
        "clerk",
        "clerks",
        "janitor",
        "kin",
        "labeller",
        "surroundings",
        "switchboard",
        "tending",
        "whoever",
        "workshop",
    }
)
#: Words that are plain in a sentence or in an identifier, and a metaphor as the name of a file.
BANNED_IN_FILES = BANNED | {
    "beats",
    "carried",
    "carrying",
    "cells",
    "family",
    "labelling",
    "news",
    "offers",
    "passage",
    "quick",
    "resting",
    "rooms",
    "sites",
}
#: The entries of the menu of the page's composer.
PLAIN_FILES = frozenset({Path("services/gateway/web/page/src/composer/offers.tsx")})


def test_every_resource_of_the_protos_is_in_the_glossary() -> None:
    assert sorted(resources() - described()) == []


def test_every_message_that_the_glossary_names_is_in_the_protos() -> None:
    assert sorted(described() - messages().keys()) == []


def test_no_name_is_a_metaphor_that_was_replaced() -> None:
    found = {
        f"{path}: {name}"
        for path in modules()
        for name in names_in(path)
        if {word.lower() for word in WORD.findall(name)} & BANNED
    }
    assert sorted(found) == []


def test_no_file_is_named_by_a_metaphor_that_was_replaced() -> None:
    found = [
        path
        for path in tracked_files()
        if {word.lower() for part in path.parts for word in WORD.findall(part)} & BANNED_IN_FILES
    ]
    assert {*found} - PLAIN_FILES == set()


def described() -> set[str]:
    return {name for _, cell, _ in ROW.findall(GLOSSARY.read_text()) for name in NAME.findall(cell)}


def resources() -> set[str]:
    """Return the messages that have an id of their own, and the subjects of services."""
    return {
        name for name, fields in messages().items() if "id" in fields or f"{own(name)}" in fields
    }


def own(name: str) -> str:
    """Return the field that has the id of a message, such as `process_id` for `Process`."""
    return "_".join(word.lower() for word in WORD.findall(name)) + "_id"


def messages() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module in pkgutil.walk_packages(parley.api.__path__, "parley.api."):
        if module.name.endswith("_pb2"):
            descriptor = importlib.import_module(module.name).DESCRIPTOR
            for name, message in descriptor.message_types_by_name.items():
                found[name] = set(message.fields_by_name)
    return found


def modules() -> Iterator[Path]:
    for path in modules_below("services", "libs/parley", "bench", "scripts"):
        if "api" not in path.parts[2:3] and "versions" not in path.parts:
            yield path


def names_in(path: Path) -> set[str]:
    # Reading tokens takes long, and few modules contain one of the words anywhere.
    text = source_of(path)
    if not {word.lower() for word in WORD.findall(text)} & BANNED:
        return set()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}
