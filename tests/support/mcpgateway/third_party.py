"""MCP servers of third parties, as published: where their programs are, and how they start."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ROOT / "tests" / "clients" / "mcp_servers"
PROGRAMS = Path(sys.executable).parent
PUBLISHED = Path("node_modules") / "@modelcontextprotocol"
EVERYTHING = PUBLISHED / "server-everything" / "dist" / "index.js"
FILESYSTEM = PUBLISHED / "server-filesystem" / "dist" / "index.js"
BRIDGE = Path("node_modules") / "supergateway" / "dist" / "index.js"


def install_packages() -> None:
    """Install the servers that are packages of Node, as locked."""
    script, place = ROOT / "scripts" / "node_packages", PACKAGES.relative_to(ROOT)
    subprocess.run([script, place], check=True, timeout=300)


def node(program: Path, *words: object) -> list[str]:
    """Return the words that start a program of the packages."""
    return [str(PROGRAMS / "node"), str(PACKAGES / program), *map(str, words)]
