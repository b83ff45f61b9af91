"""Clients that public generators write from the served OpenAPI document work against a stack."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / "tests" / "clients" / "python"
TYPESCRIPT = ROOT / "tests" / "clients" / "typescript"
PROGRAMS = Path(sys.executable).parent
COMMAND_S_MAX = 90.0
SENT = ("repeat after me: one", "repeat after me: two")
FOLDED = {
    "status": "waiting",
    "messages": [
        ["user", "repeat after me: one"],
        ["assistant", "one"],
        ["user", "repeat after me: two"],
        ["assistant", "two"],
    ],
    "problem": "CHAT_NOT_FOUND",
}


@pytest.fixture
def document(stack: LocalStack, tmp_path: Path) -> Path:
    """Give a file with the document that the stack serves."""
    with urllib.request.urlopen(f"http://{stack.http}/openapi.json") as served:
        (tmp_path / "openapi.json").write_bytes(served.read())
    return tmp_path / "openapi.json"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, and return what it printed."""
    path = f"{PROGRAMS}{os.pathsep}{os.defpath}"
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={"PATH": path, "HOME": str(Path.home()), "PYTHONPATH": str(cwd)},
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def arguments(stack: LocalStack) -> tuple[str, ...]:
    """Return the arguments of the programs that fold a chat."""
    return (f"http://{stack.http}", stack.home.api_key_file.read_text().strip(), *SENT)


def test_a_generated_python_client_creates_a_chat_and_folds_its_stream(
    stack: LocalStack, document: Path
) -> None:
    place = document.parent
    generated = run(
        *(PROGRAMS / "openapi-python-client", "generate", "--path", document),
        *("--output-path", place / "parley_client", "--meta", "none"),
        *("--config", PYTHON / "generator.yaml", "--fail-on-warning"),
        cwd=place,
    )

    assert "Warning" not in generated
    printed = run(sys.executable, PYTHON / "fold.py", *arguments(stack), cwd=place)
    assert json.loads(printed) == FOLDED


def test_a_generated_typescript_client_is_type_checked_and_folds_a_stream(
    stack: LocalStack, document: Path
) -> None:
    place = document.parent
    run(ROOT / "scripts" / "node_packages", cwd=ROOT)
    for name in ("package.json", "tsconfig.json", "fold.ts"):
        (place / name).write_text((TYPESCRIPT / name).read_text())
    (place / "node_modules").symlink_to(TYPESCRIPT / "node_modules")
    programs = place / "node_modules" / ".bin"

    run(programs / "openapi-typescript", document, "--output", place / "schema.d.ts", cwd=place)
    run(programs / "tsc", cwd=place)
    printed = run(PROGRAMS / "node", place / "fold.ts", *arguments(stack), cwd=place)
    assert json.loads(printed) == FOLDED
