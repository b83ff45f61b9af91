"""Repositories that want programs of their own run: none ever is."""

import subprocess
import threading
from pathlib import Path

import pytest

from support.toolrunner.git_repositories import PERSON, Bench
from toolrunner.fileworker.git.protocol import Repositories, WatchGit

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout"),
    *("post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-auto-gc"),
    *("pre-commit", "pre-push", "prepare-commit-msg", "reference-transaction", "update"),
)
SETTINGS = """
[core]
    fsmonitor = {trap}
    hooksPath = {hooks}
    pager = {trap}
    editor = {trap}
    sshCommand = {trap}
    askPass = {trap}
    gitProxy = {trap}
    alternateRefsCommand = {trap}
    attributesFile = {attributes}
    excludesFile = {attributes}
    worktree = /
[include]
    path = {more}
[includeIf "gitdir:/"]
    path = {more}
[extensions]
    worktreeConfig = true
    partialClone = far
[remote "far"]
    url = "ext::{trap}"
    promisor = true
    uploadpack = {trap}
[filter "evil"]
    clean = {trap}
    smudge = {trap}
    process = {trap}
    required = true
[diff]
    external = {trap}
[diff "evil"]
    command = {trap}
    textconv = {trap}
[merge "evil"]
    driver = {trap}
[interactive]
    diffFilter = {trap}
[gpg]
    program = {trap}
[commit]
    gpgSign = true
[log]
    showSignature = true
[credential]
    helper = {trap}
[alias]
    status = !{trap}
    diff = !{trap}
[status]
    submoduleSummary = true
[diff]
    submodule = diff
    ignoreSubmodules = none
[submodule]
    recurse = true
"""


class Trap:
    """A repository full of programs, and how many of them ran."""

    def __init__(self, bench: Bench, directory: Path) -> None:
        self.bench = bench
        self.sprung = directory / "sprung"
        self.sprung.mkdir()
        self.program = directory / "trap"
        self.program.write_text(f"#!/bin/sh\nmktemp {self.sprung}/XXXXXX >/dev/null\ncat\n")
        self.program.chmod(0o755)
        self.hooks = directory / "hooks"
        self.hooks.mkdir()
        self.attributes = directory / "attributes"
        self.attributes.write_text("* filter=evil diff=evil merge=evil\n")
        self.more = directory / "more"
        self.more.write_text(f"[core]\n\tfsmonitor = {self.program}\n")

    def settings(self) -> str:
        return SETTINGS.format(
            trap=self.program, hooks=self.hooks, attributes=self.attributes, more=self.more
        )

    def set_in(self, git: Path) -> None:
        """Put everything into a repository's own data."""
        for hook in HOOKS:
            for directory in (self.hooks, git / "hooks"):
                directory.mkdir(exist_ok=True)
                (directory / hook).write_bytes(self.program.read_bytes())
                (directory / hook).chmod(0o755)
        (git / "info").mkdir(exist_ok=True)
        (git / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
        with (git / "config").open("a") as config:
            config.write(self.settings())
        (git / "config.worktree").write_text(self.settings())

    def count(self) -> int:
        return len(list(self.sprung.iterdir()))


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    bench = Bench.at(tmp_path)
    other = Bench.at(tmp_path / "other")
    other.init()
    other.put("inside", "1\n")
    other.commit()
    bench.init()
    bench.git("submodule", "--quiet", "add", str(other.root), "module")
    for name in ("a", "b", "c"):
        bench.put(name, f"{name}\n" * 30)
    bench.commit()
    trap = Trap(bench, tmp_path)
    trap.set_in(bench.root / ".git")
    trap.set_in(bench.root / ".git/modules/module")
    bench.put(".gitattributes", "* filter=evil diff=evil merge=evil ident\n")
    bench.put("a", "changed\n")
    (bench.root / "b").rename(bench.root / "moved")
    bench.put("new", "1\n")
    bench.put("module/inside", "2\n")
    return trap


def everything(bench: Bench) -> None:
    """Ask all that can be asked."""
    assert {each.directory: each.problem for each in bench.statuses()} == {"": "", "module": ""}
    assert "changed" in bench.diff().patch
    assert "+2" in bench.diff("module").patch
    kept = bench.keep("one").checkpoint
    bench.put("a", "lost\n")
    bench.restore(kept.ref)
    assert (bench.root / "a").read_text() == "changed\n"
    assert "changed" in bench.diff(base="HEAD", target=kept.ref).patch
    bench.kept()
    watch = bench.work.work(WatchGit(0.1, 0.1, 60, 60, 30))
    while not isinstance(next(watch), Repositories):
        pass
    watch.close()


def test_the_trap_springs_for_a_git_that_is_not_careful(trap: Trap) -> None:
    for words in (("diff", "--stat"), ("add", "a"), ("update-ref", "refs/heads/x", "HEAD")):
        before = trap.count()
        command = ["git", "-c", "core.worktree=", "-c", "extensions.worktreeConfig=false", *words]
        directory = trap.bench.root
        env = {**PERSON, "GIT_WORK_TREE": ".", "GIT_DIR": ".git"}
        subprocess.run(command, cwd=directory, env=env, capture_output=True, check=False)
        assert trap.count() > before, words


def test_no_program_of_a_repository_runs(trap: Trap) -> None:
    everything(trap.bench)

    assert trap.count() == 0


def test_no_program_runs_though_the_configuration_is_swapped_all_the_time(trap: Trap) -> None:
    config = trap.bench.root / ".git/config"
    plain = "[core]\n\trepositoryformatversion = 0\n"
    evil = plain + trap.settings()
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for text in (plain, evil):
                (config.with_name("config.new")).write_text(text)
                (config.with_name("config.new")).rename(config)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        everything(trap.bench)
    finally:
        done.set()
        swapping.join()

    assert trap.count() == 0


def test_a_configuration_that_never_ends_is_a_problem_and_not_read(trap: Trap) -> None:
    config = trap.bench.root / ".git/config"
    config.write_bytes(b"#" * 2_000_000)

    assert {each.directory: each.problem for each in trap.bench.statuses()} == {
        "": "its configuration is too large",
        "module": "",
    }


def test_nothing_of_ours_is_left_beside_the_repository(trap: Trap, tmp_path: Path) -> None:
    everything(trap.bench)
    trap.bench.work.close()

    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in (trap.bench.root / ".git/parley").iterdir()) == [
        "checkpoints.index"
    ]
