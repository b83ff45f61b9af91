"""scripts/page and scripts/run where the packages of the page cannot be fetched."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
PAGE = Path("services/gateway/web/page")
COPIED: tuple[str | Path, ...] = (
    *("requirements.lock", "pyproject.toml", ".venv/parley-stamp"),
    *("scripts/setup", "scripts/page", "scripts/node_packages", "scripts/run"),
    *(PAGE / name for name in (".npmrc", "package.json", "package-lock.json", "vite.config.ts")),
    *(PAGE / name for name in ("index.html", "terminal.html", "src/main.tsx")),
)
RUN_S_MAX = 120
#: In place of Parley, which is not what is tested here.
PARLEY = '#!/bin/sh\necho "parley $*"\n'
SAID = "The web page could not be built; / says so, and the API is there without it."


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy what builds the page, with the Node of the environment and without its packages."""
    for name in COPIED:
        copy = tmp_path / "clone" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    programs = tmp_path / "clone" / ".venv" / "bin"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).symlink_to(ROOT / ".venv" / "bin" / name)
    (programs / "parley").write_text(PARLEY)
    (programs / "parley").chmod(0o755)
    return tmp_path / "clone"


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a clone whose registry of packages refuses connections."""
    with socket.socket() as silent:
        # Bound and not listening: no other process gets the port, and it refuses.
        silent.bind(("127.0.0.1", 0))
        return subprocess.run(
            command,
            cwd=clone,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(clone.parent),
                "npm_config_registry": f"http://127.0.0.1:{silent.getsockname()[1]}/",
                "npm_config_cache": str(clone.parent / "cache"),
                "npm_config_fetch_retries": "0",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_S_MAX,
        )


def test_without_packages_the_page_is_not_built_and_that_is_said(clone: Path) -> None:
    built = run(clone, "scripts/page")

    assert built.returncode == 1
    assert "ECONNREFUSED" in built.stderr
    assert built.stderr.splitlines()[-1] == SAID
    assert not (clone / PAGE.parent / "built").exists()


def test_without_packages_parley_starts_all_the_same(clone: Path) -> None:
    ran = run(clone, "scripts/run", "--ephemeral")

    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "parley up --ephemeral")
    assert SAID in ran.stderr
