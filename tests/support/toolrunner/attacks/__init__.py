"""Programs that attack a sandbox from inside, as text; each prints what came of its attempts."""

import os
from pathlib import Path

READING = (Path(__file__).parent / "reading.py").read_text()
CONNECTING = (Path(__file__).parent / "connecting.py").read_text()
CALLING = (Path(__file__).parent / "calling.py").read_text()
BORROWING = (Path(__file__).parent / "borrowing.py").read_text()
MEDDLING = (Path(__file__).parent / "meddling.py").read_text()
EXHAUSTING = (Path(__file__).parent / "exhausting.py").read_text()
BUFFERING = (Path(__file__).parent / "buffering.py").read_text()
CHANGING = (Path(__file__).parent / "changing.py").read_text()
WATCHING = (Path(__file__).parent / "watching.py").read_text()


def attributes(path: str) -> tuple[int, int, int, list[str]]:
    """Return what an attacker might change of a file without opening it."""
    found = os.stat(path)
    return found.st_mode, found.st_uid, found.st_gid, os.listxattr(path)
