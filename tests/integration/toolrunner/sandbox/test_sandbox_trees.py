"""Building the tree of a workspace while the workspace puts links in the place of names."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolrunner.sandbox import mounts

#: Builds a tree; while a part of the host is taken, `.git` is a link that leads out.
BUILD = """
import os, sys
from contextlib import suppress
sys.path[:0] = sys.argv[2].split(":")
from toolrunner.sandbox import Confinement, Level, Network, Profile, mounts

base = sys.argv[1]
git = f"{base}/files/.git"
files = os.open(f"{base}/files", os.O_PATH)
real = mounts.call

def exchange():
    for old, new in ((".git", "away"), ("other", ".git"), ("away", "other")):
        os.rename(old, new, src_dir_fd=files, dst_dir_fd=files)

def call(name, *arguments):
    is_swapped = False
    if name == "open_tree":
        # What is mounted here already cannot be moved from here.
        with suppress(OSError):
            exchange()
            is_swapped = True
    try:
        return real(name, *arguments)
    finally:
        if is_swapped:
            exchange()

mounts.call = call
mounts.build_tree(
    Confinement(
        level=Level.NS,
        layers=(),
        profile=Profile.WORKSPACE_WRITE,
        network=Network.NONE,
        root=f"{base}/files",
        home=f"{base}/home",
        temporary=f"{base}/tmp",
        has_own_proc=False,
    )
)
print(sorted(os.listdir(git)))
for name in ("new", "hooks/new", "config"):
    try:
        open(f"{git}/{name}", "w").close()
        print(name, "written")
    except OSError as error:
        print(name, error.strerror)
"""


@pytest.fixture
def base() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-tree-"))
    for name in ("files/.git/hooks", "home", "tmp", "outside/hooks"):
        (path / name).mkdir(parents=True)
    (path / "files/.git/config").touch()
    (path / "outside/config").touch()
    (path / "outside/secret").touch()
    (path / "files/other").symlink_to(path / "outside")
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts without a namespace of users")
def test_a_link_that_is_swapped_in_for_git_leads_nowhere(base: Path) -> None:
    places = str(Path(mounts.__file__).parents[2])
    words = [sys.executable, "-I", "-c", BUILD, str(base), places]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout.splitlines(), ended.stderr) == (
        [
            "['config', 'hooks']",
            "new written",
            "hooks/new Read-only file system",
            "config Read-only file system",
        ],
        "",
    )
    assert sorted(os.listdir(base / "outside")) == ["config", "hooks", "secret"]
