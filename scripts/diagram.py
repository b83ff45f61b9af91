"""Draws the state diagram of a chat into ARCHITECTURE.md, from the table that decides."""

import sys
from pathlib import Path

from chatd.chats.domain.matrix import ALLOWED

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "ARCHITECTURE.md"
BEGIN = "<!-- state diagram: scripts/diagram.py writes from here -->\n"
END = "<!-- to here -->\n"


def main() -> int:
    """Write the diagram, or with --check tell whether it is the one that is there."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    drawn = before + BEGIN + diagram() + END + after
    if "--check" in sys.argv[1:]:
        if drawn != text:
            print("ARCHITECTURE.md is stale; run scripts/diagram.py", file=sys.stderr)
        return int(drawn != text)
    DOCUMENT.write_text(drawn)
    return 0


def diagram() -> str:
    """Return the arrows between statuses, and the commands that leave a status as it is."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> running: CreateChat"]
    for status, commands in ALLOWED.items():
        targets = {target for outcomes in commands.values() for target in outcomes}
        for target in sorted(targets):
            names = [command.__name__ for command, to in commands.items() if target in to]
            if target != status:
                lines.append(f"    {status} --> {target}: {', '.join(sorted(names))}")
    lines += ["```", "", "| status | what leaves it as it is |", "|---|---|"]
    for status, commands in ALLOWED.items():
        stays = sorted(command.__name__ for command, to in commands.items() if status in to)
        lines.append(f"| `{status}` | {', '.join(stays)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
