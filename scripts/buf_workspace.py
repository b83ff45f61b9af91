"""Runs buf over `protos/`, together with the protos of googleapis-common-protos that they import.

buf resolves imports inside one workspace or from a registry. So the workspace is put together in a
scratch directory: our protos, and google/api of the installed package.

Usage:
    buf_workspace.py lint
    buf_workspace.py breaking
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.resources import files
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMPORTED = ("annotations", "http", "field_behavior")
CONFIGURATION = """\
version: v2
modules:
  - path: protos
  - path: googleapis
lint:
  use: [STANDARD, COMMENTS]
  ignore: [googleapis, protos/buf]
  disallow_comment_ignores: true
breaking:
  use: [FILE]
  ignore: [googleapis, protos/buf]
"""


def main() -> int:
    """Lint the protos, or compare them with an earlier commit."""
    with tempfile.TemporaryDirectory() as scratch:
        now = assembled(Path(scratch) / "now", ROOT / "protos")
        if sys.argv[1:] == ["lint"]:
            return run("lint", now)
        commit = earlier_commit()
        if commit is None:
            print("no earlier protos to compare with")
            return 0
        archive = git("archive", commit, "protos")
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            # An archive that git made of our own commit contains no foreign paths.
            tar.extractall(Path(scratch) / "archive")
        earlier = assembled(Path(scratch) / "earlier", Path(scratch) / "archive" / "protos")
        return run("breaking", now, "--against", str(earlier))


def assembled(workspace: Path, protos: Path) -> Path:
    """Return a workspace with `protos` and the protos that they import."""
    shutil.copytree(protos, workspace / "protos", ignore=shutil.ignore_patterns("buf.yaml"))
    target = workspace / "googleapis" / "google" / "api"
    target.mkdir(parents=True)
    for name in IMPORTED:
        source = files("google.api") / f"{name}.proto"
        (target / f"{name}.proto").write_text(source.read_text())
    (workspace / "buf.yaml").write_text(CONFIGURATION)
    return workspace


def run(command: str, workspace: Path, *arguments: str) -> int:
    """Run buf in a workspace and return its exit status."""
    buf = Path(sys.executable).parent / "buf"
    return subprocess.run([buf, command, *arguments], cwd=workspace, check=False).returncode


def earlier_commit() -> str | None:
    """Return main, or its parent when main is what is checked out without a change."""
    if subprocess.run(["git", "rev-parse", "--git-dir"], cwd=ROOT, capture_output=True).returncode:
        return None
    main = "main" if exists("main") else "HEAD"
    is_unchanged = not git("diff", "--name-only", main, "--", "protos").strip()
    for commit in (f"{main}~1",) if is_unchanged else (main, f"{main}~1"):
        if exists(f"{commit}:protos/parley"):
            return commit
    return None


def exists(name: str) -> bool:
    """Return whether git knows `name`."""
    command = ["git", "cat-file", "-e", name]
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def git(*arguments: str) -> bytes:
    """Run git and return what it prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


if __name__ == "__main__":
    raise SystemExit(main())
