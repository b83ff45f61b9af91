"""Compares protos/ with the last commit on main that is not the one checked out unchanged."""

import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run `buf breaking` against the earlier protos, if there are any."""
    against = earlier_commit()
    if against is None:
        print("no earlier protos to compare with")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        archive = git("archive", against, "protos")
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            # An archive that git made of our own commit leads nowhere else.
            tar.extractall(scratch)
        buf = Path(sys.executable).parent / "buf"
        command = [str(buf), "breaking", "protos", "--against", str(Path(scratch) / "protos")]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def earlier_commit() -> str | None:
    """Return main, or its parent when main is what is checked out without a change."""
    if subprocess.run(["git", "rev-parse", "--git-dir"], cwd=ROOT, capture_output=True).returncode:
        return None
    main = "main" if exists("main") else "HEAD"
    is_unchanged = not git("diff", "--name-only", main, "--", "protos").strip()
    for commit in (f"{main}~1",) if is_unchanged else (main, f"{main}~1"):
        if exists(f"{commit}:protos/buf.yaml"):
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
