"""Recorded traffic of real providers, which lies beside the repository and is never part of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = Path(__file__).parents[5] / "shared" / "recordings"


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange: what was asked, and what came back."""

    path: Path
    folder: str
    case: str
    index: int
    host: str
    url_path: str
    status: int
    headers: Mapping[str, str]
    request: Any
    body: str

    @property
    def name(self) -> str:
        """Return folder and file name, as tests are labelled."""
        return f"{self.folder}/{self.path.stem}"

    @property
    def is_streamed(self) -> bool:
        """Return whether the answer is a stream of events."""
        return "event-stream" in self.headers.get("content-type", "")


def recordings(folder: str) -> list[Recording]:
    """Return the recordings of one folder, none if there are none beside this clone."""
    return [_read(path) for path in sorted((DIRECTORY / folder).glob("*.json"))]


def recorded(folder: str) -> pytest.MarkDecorator:
    """Run a test once for each recorded stream of a folder, or skip it and say why."""
    found = [each for each in recordings(folder) if each.is_streamed]
    if not found:
        absent = pytest.param(None, marks=pytest.mark.skip(reason="no recordings beside the clone"))
        return pytest.mark.parametrize("recording", [absent], ids=[folder])
    return pytest.mark.parametrize("recording", found, ids=[each.name for each in found])


def _read(path: Path) -> Recording:
    raw = json.loads(path.read_text())
    return Recording(
        path=path,
        folder=path.parent.name,
        case=raw["case"],
        index=raw["index"],
        host=raw["host"],
        url_path=raw["path"],
        status=raw["status"],
        headers={name.lower(): value for name, value in raw["headers"].items()},
        request=raw["request"],
        body=raw["body"],
    )
