"""Programs that attack a sandbox from inside, as text; each prints what came of its attempts."""

from pathlib import Path

READING = (Path(__file__).parent / "reading.py").read_text()
CONNECTING = (Path(__file__).parent / "connecting.py").read_text()
CALLING = (Path(__file__).parent / "calling.py").read_text()
BORROWING = (Path(__file__).parent / "borrowing.py").read_text()
