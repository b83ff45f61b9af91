"""Checkpoints: whatever there was comes back byte by byte, and nothing else is touched."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.toolrunner.git_repositories import Bench
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.git.checkpoints import CHECKPOINTS_MAX
from toolrunner.fileworker.git.protocol import FileState, RestoreCheckpoint, Restored
from toolrunner.fileworker.jobs import pieces

ATTRIBUTES = "*.crlf text eol=crlf\n*.id ident\n*.wide working-tree-encoding=UTF-16LE\n"
NAMES = ("a", "b.crlf", "c.id", "d.wide", "dir/e", "dir/f", "dir/deep/g", "x", "x/y", "\udcff\n")
CONTENTS = (b"", b"1\r\n2\n", b"$Id$\n", b"$Id: 0 $\n\0", b"\xff\xfe1\0", b"long\n" * 50)
change = st.tuples(
    st.sampled_from(NAMES),
    st.one_of(
        st.sampled_from(CONTENTS), st.sampled_from(["delete", "link", "program", "commit", "add"])
    ),
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench.at(tmp_path)
    bench.init()
    return bench


def apply(bench: Bench, name: str, what: bytes | str) -> None:
    """Do something that may happen in a work tree; what cannot be is left."""
    path = bench.root / name
    try:
        match what:
            case "delete" | "link":
                path.unlink()
                if what == "link":
                    path.symlink_to("a/way\n")
            case "program":
                path.chmod(0o755)
            case "commit" | "add":
                # What is not encoded as the attributes say cannot be added, only kept.
                bench.git("add", "--all", fails=True)
                if what == "commit":
                    bench.git("commit", "--quiet", "--message=x", fails=True)
            case bytes():
                if path.is_symlink():
                    path.unlink()
                bench.put(name, what)
    except OSError:
        pass


@settings(max_examples=15)
@given(
    before=st.lists(change, max_size=8),
    after=st.lists(change, max_size=8),
    has_attributes=st.booleans(),
)
def test_what_is_restored_is_what_was_kept_and_back_again(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, bytes | str]],
    after: list[tuple[str, bytes | str]],
    has_attributes: bool,
) -> None:
    bench = Bench.at(tmp_path_factory.mktemp("git") / "w")
    bench.init()
    if has_attributes:
        bench.put(".gitattributes", ATTRIBUTES)
    for name, what in before:
        apply(bench, name, what)
    first = bench.tree()
    kept = bench.keep("one").checkpoint
    for name, what in after:
        apply(bench, name, what)
    second = bench.tree()
    index = _index(bench)
    head = bench.git("rev-parse", "HEAD", fails=True)

    restored = bench.restore(kept.ref)
    assert bench.tree() == first
    bench.restore(restored.previous.ref, previous="before-2")
    assert bench.tree() == second
    assert (_index(bench), bench.git("rev-parse", "HEAD", fails=True)) == (index, head)


def test_later_files_stay_unless_they_are_to_go(bench: Bench) -> None:
    bench.put("a", "1\n")
    kept = bench.keep("one").checkpoint
    bench.put("a", "2\n")
    bench.put("later/x", "1\n")

    restored = bench.restore(kept.ref, removes_later=False)

    assert bench.tree() == {b"a": ("file", b"1\n"), b"later/x": ("file", b"1\n")}
    assert [(file.path, file.state) for file in restored.files] == [("a", FileState.MODIFIED)]
    bench.restore(kept.ref, previous="again")
    assert bench.tree() == {b"a": ("file", b"1\n")}
    assert not (bench.root / "later").exists()


def test_only_the_paths_that_are_named_come_back(bench: Bench) -> None:
    for name in ("d/a", "d/b", "da", "e"):
        bench.put(name, "1\n")
    kept = bench.keep("one").checkpoint
    for name in ("d/a", "d/b", "da", "e"):
        bench.put(name, "2\n")

    bench.restore(kept.ref, paths=("d", "e"))

    assert {name: content for name, (_, content) in bench.tree().items()} == {
        b"d/a": b"1\n",
        b"d/b": b"1\n",
        b"da": b"2\n",
        b"e": b"1\n",
    }


def test_ignored_files_are_neither_kept_nor_removed(bench: Bench) -> None:
    bench.put(".gitignore", "*.log\nforced\n")
    bench.put("x.log", "1\n")
    bench.put("forced", "1\n")
    bench.git("add", "--force", "forced")
    kept = bench.keep("one")
    assert [file.path for file in kept.files] == [".gitignore", "forced"]
    bench.put("x.log", "2\n")
    bench.put("y.log", "1\n")
    bench.put("forced", "2\n")

    bench.restore(kept.checkpoint.ref)

    assert (bench.root / "forced").read_text() == "1\n"
    assert (bench.root / "x.log").read_text() == "2\n"
    assert (bench.root / "y.log").exists()


def test_what_was_kept_and_is_ignored_since_is_kept_no_more(bench: Bench) -> None:
    bench.put("out/x", "1\n")
    bench.keep("one")
    bench.put(".gitignore", "out/\n")

    assert [file.path for file in bench.keep("two").files] == [".gitignore"]


def test_a_restore_that_would_lose_an_ignored_file_is_refused_and_changes_nothing(
    bench: Bench,
) -> None:
    bench.put("x", "1\n")
    bench.put("d/y", "1\n")
    kept = bench.keep("one").checkpoint
    (bench.root / "x").unlink()
    (bench.root / "d/y").unlink()
    (bench.root / "d").rmdir()
    bench.put(".gitignore", "secret\nd\n")
    bench.put("x/secret", "precious\n")
    before = bench.tree()
    with pytest.raises(FileRefused) as refused:
        bench.restore(kept.ref)
    assert (refused.value.reason, refused.value.metadata["path"]) == (
        Reason.WRONG_PATH_KIND,
        "x/secret",
    )
    assert bench.tree() == before

    (bench.root / "x/secret").unlink()
    bench.put("d", "precious\n")
    with pytest.raises(FileRefused) as refused:
        bench.restore(kept.ref)
    assert refused.value.metadata["path"] == "d"


def test_a_restore_is_refused_if_files_are_not_as_they_were(bench: Bench) -> None:
    bench.put("a", "1\n")
    one = bench.keep("one").checkpoint
    bench.put("a", "2\n")
    two = bench.keep("two").checkpoint
    bench.put("b", "1\n")

    with pytest.raises(FileRefused) as refused:
        bench.restore(one.ref, since=two.ref)
    assert refused.value.reason is Reason.FILE_CHANGED
    assert (bench.root / "a").read_text() == "2\n"
    (bench.root / "b").unlink()
    bench.restore(one.ref, since=two.ref)
    assert (bench.root / "a").read_text() == "1\n"


def test_a_restore_that_was_cut_off_goes_on_and_still_knows_what_there_was(bench: Bench) -> None:
    for number in range(20):
        bench.put(f"f{number}", "1\n")
    kept = bench.keep("one").checkpoint
    for number in range(20):
        bench.put(f"f{number}", "2\n")
        bench.put(f"later{number}", "1\n")
    second = bench.tree()
    request = RestoreCheckpoint("", "chat", "before", kept.ref, (), "", True, 30)
    for steps in (1, 5, 12, 20):
        job = bench.work.work(request)
        for _ in range(steps):
            next(job, None)
        job.close()

    *_, restored = pieces(bench.work.work(request))

    assert isinstance(restored, Restored)
    assert set(bench.tree()) == {f"f{number}".encode() for number in range(20)}
    bench.restore(restored.previous.ref, previous="back")
    assert bench.tree() == second


def test_a_repository_inside_is_left_to_itself(bench: Bench) -> None:
    bench.init("empty")
    bench.put("empty/x", "1\n")
    bench.init("full")
    bench.put("full/x", "1\n")
    bench.commit(at="full")
    bench.put("a", "1\n")
    kept = bench.keep("one")
    bench.put("full/x", "2\n")
    bench.commit(at="full")
    bench.put("a", "2\n")

    bench.restore(kept.checkpoint.ref)

    assert (bench.root / "a").read_text() == "1\n"
    assert (bench.root / "full/x").read_text() == "2\n"
    assert (bench.root / "empty/x").read_text() == "1\n"


def test_a_link_that_leads_out_is_kept_as_a_link(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("theirs\n")
    bench.put("d/x", "1\n")
    kept = bench.keep("one").checkpoint
    (bench.root / "d/x").unlink()
    (bench.root / "d").rmdir()
    (bench.root / "d").symlink_to(outside)

    bench.restore(kept.ref)

    assert (outside / "x").read_text() == "theirs\n"
    assert (bench.root / "d/x").read_text() == "1\n"


def test_checkpoints_are_listed_by_whose_they_are(bench: Bench) -> None:
    bench.put("a", "1\n")
    refs = {bench.keep(f"l{number}", "chat-1").checkpoint.ref for number in range(3)}
    mine = bench.keep("mine", "chat-2").checkpoint

    assert bench.kept("chat-2").checkpoints == (mine,)
    assert {each.ref for each in bench.kept().checkpoints} == {*refs, mine.ref}
    pages = [bench.kept("chat-1", start, 2) for start in (0, 2)]
    assert [len(page.checkpoints) for page in pages] == [2, 1]
    assert [page.has_more for page in pages] == [True, False]
    assert {each.ref for page in pages for each in page.checkpoints} == refs


def test_the_oldest_of_too_many_checkpoints_go_but_not_the_one_that_is_restored(
    bench: Bench,
) -> None:
    bench.put("a", "1\n")
    first = bench.keep("a-first").checkpoint
    bench.keep("other", "another-chat")
    # All of one age, so that the names decide; what is made later than these is newer.
    old = bench.git("commit-tree", "-m", "old", f"{first.commit}^{{tree}}").strip()
    refs = bench.root / ".git" / "refs" / "agent" / "chat"
    for number in range(CHECKPOINTS_MAX):
        (refs / f"old-{number:03}").write_text(f"{old}\n")
    bench.git("update-ref", first.ref, old)

    bench.put("a", "2\n")
    newest = bench.keep("newest").checkpoint
    left = {each.ref for each in bench.kept("chat", limit=CHECKPOINTS_MAX + 50).checkpoints}
    assert len(left) == CHECKPOINTS_MAX
    assert newest.ref in left
    assert len(bench.kept("another-chat").checkpoints) == 1

    oldest = f"refs/agent/chat/old-{CHECKPOINTS_MAX - 3:03}"
    previous = bench.restore(oldest).previous
    left = {each.ref for each in bench.kept("chat", limit=CHECKPOINTS_MAX + 50).checkpoints}
    assert {oldest, previous.ref, newest.ref} <= left
    assert (bench.root / "a").read_text() == "1\n"


def test_the_same_label_replaces_and_other_references_are_no_checkpoints(bench: Bench) -> None:
    bench.put("a", "1\n")
    bench.keep("one")
    bench.put("a", "2\n")
    kept = bench.keep("one").checkpoint
    bench.commit()

    assert bench.kept().checkpoints == (kept,)
    for ref in ("refs/heads/main", "HEAD", kept.commit, "refs/agent/chat/none", "../../x"):
        with pytest.raises(FileRefused) as refused:
            bench.restore(ref)
        assert refused.value.reason is Reason.CHECKPOINT_NOT_FOUND


def _index(bench: Bench) -> bytes:
    path = os.path.join(bench.root, ".git/index")
    return Path(path).read_bytes() if os.path.exists(path) else b""
