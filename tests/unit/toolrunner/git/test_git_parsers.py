"""What git prints, read whatever comes in whatever pieces."""

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.fileworker.git import configuration
from toolrunner.fileworker.git.diff_output import DiffReader, path_of_piece, unquoted
from toolrunner.fileworker.git.protocol import FileState, GitFile
from toolrunner.fileworker.git.status import without_credentials
from toolrunner.fileworker.git.status_output import Entry, Status, parse_status

ZERO = "0" * 40
names = st.binary(min_size=1, max_size=12).filter(
    lambda name: b"\0" not in name and not name.endswith(b"/")
)


def test_a_status_is_read_with_its_branch() -> None:
    output = (
        b"# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0"
        b"# branch.ab +2 -3\0# stash 1\0"
        b"1 M. N... 100644 100644 100644 1 2 staged file\0"
        b"2 R. N... 100644 100644 100644 1 2 R100 new\0old\0"
        b"u UU N... 1 2 3 4 5 6 7 both\0? new one\0? nested/\0! ignored\0"
    )
    assert parse_status(output) == Status(
        commit="abc",
        branch="main",
        upstream="origin/main",
        ahead=2,
        behind=3,
        entries=[
            Entry("staged file", FileState.MODIFIED, "", True),
            Entry("new", FileState.RENAMED, "old", True),
            Entry("both", FileState.CONFLICTED),
            Entry("new one", FileState.UNTRACKED),
        ],
    )


@given(st.lists(names))
def test_every_name_of_a_new_file_is_read(given_names: list[bytes]) -> None:
    output = b"".join(b"? " + name + b"\0" for name in given_names)
    assert [os.fsencode(entry.path) for entry in parse_status(output).entries] == given_names


@given(st.binary(max_size=200))
def test_no_output_breaks_the_readers(output: bytes) -> None:
    try:
        parse_status(output)
    except ValueError:
        assert output.startswith((b"1 ", b"2 ")) or b"\0" in output or b"branch.ab" in output
    reader = DiffReader(50)
    reader.feed(output)
    reader.finish()
    reader.files()


@given(st.data())
def test_a_difference_is_the_same_in_whatever_pieces_it_comes(data: st.DataObject) -> None:
    paths = data.draw(st.lists(names, unique=True, max_size=5))
    texts = [data.draw(st.binary(max_size=30)).replace(b"\n", b"") for _ in paths]
    raw = b"".join(f":100644 100644 {ZERO} {ZERO} M\0".encode() + path + b"\0" for path in paths)
    counts = b"".join(b"1\t0\t" + path + b"\0" for path in paths)
    patch = b"".join(
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+" + text + b"\n" for text in texts
    )
    whole = raw + counts + (b"\0" + patch if patch else b"")
    max_bytes = data.draw(st.integers(0, 300))
    expected = DiffReader(max_bytes)
    expected.feed(whole)
    expected.finish()
    reader = DiffReader(max_bytes)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=20)) | {0, len(whole)})
    for start, end in pairwise(cuts):
        reader.feed(whole[start:end])
    reader.finish()

    assert (reader.files(), reader.patch) == (expected.files(), expected.patch)
    assert reader.omitted == expected.omitted
    assert [os.fsencode(file.path) for file in reader.files()] == paths
    assert {file.added_lines for file in reader.files()} <= {1}


def test_a_rename_and_a_binary_file_have_their_lines() -> None:
    reader = DiffReader(0)
    reader.feed(
        f":100644 100644 {ZERO} {ZERO} R096\0old\0new\0".encode()
        + f":000000 100644 {ZERO} {ZERO} A\0bin\0".encode()
        + b"3\t1\t\0old\0new\0-\t-\tbin\0"
    )
    reader.finish()
    assert reader.files() == [
        GitFile("new", FileState.RENAMED, "old", 3, 1),
        GitFile("bin", FileState.ADDED, is_binary=True),
    ]


@pytest.mark.parametrize(
    ("head", "path"),
    [
        (b"diff --git a/x b/x\n", "x"),
        (b"diff --git a/x b/y b/x b/y\n--- a\n", "x b/y"),
        (b'diff --git "a/x\\ny\\303\\274" "b/x\\ny\\303\\274"\n', "x\nyü"),
        (b"diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n", "y"),
        (b'diff --git a/x b/y\ncopy from x\ncopy to "y\\""\n', 'y"'),
        (b"diff --cc both\nindex 1,2..3\n", "both"),
    ],
)
def test_a_piece_of_a_patch_tells_its_path(head: bytes, path: str) -> None:
    assert path_of_piece(head) == path


@given(st.binary())
def test_a_name_in_quotes_is_read_whatever_it_is(name: bytes) -> None:
    quoted = b'"' + b"".join(f"\\{byte:03o}".encode() for byte in name) + b'"'
    assert unquoted(quoted) == name


def test_only_settings_that_name_no_program_are_kept() -> None:
    listed = configuration.parse_list(
        b"core.autocrlf\ninput\0core.fsmonitor\nevil\0core.hookspath\nevil\0core.bare\0"
        b"filter.x.clean\nevil\0filter.x.process\nevil\0diff.x.textconv\nevil\0"
        b"diff.external\nevil\0core.pager\nevil\0core.sshcommand\nevil\0credential.helper\nevil\0"
        b"include.path\n/etc/x\0core.attributesfile\nx\0core.worktree\n/\0alias.diff\n!evil\0"
        b"core.alternaterefscommand\nevil\0remote.origin.url\next::evil\0"
        b"remote.origin.uploadpack\nevil\0remote.origin.fetch\n+refs/*:refs/remotes/origin/*\0"
        b'branch.a "b\\.merge\nrefs/heads/x\0extensions.worktreeconfig\ntrue\0'
    )
    assert ("core.bare", "true") in listed
    kept = configuration.kept(listed)
    assert kept == [
        ("core.autocrlf", "input"),
        ("remote.origin.fetch", "+refs/*:refs/remotes/origin/*"),
        ('branch.a "b\\.merge', "refs/heads/x"),
    ]
    assert configuration.written(kept).decode() == (
        '[core]\n\tautocrlf = "input"\n'
        '[remote "origin"]\n\tfetch = "+refs/*:refs/remotes/origin/*"\n'
        '[branch "a \\"b\\\\"]\n\tmerge = "refs/heads/x"\n'
    )
    assert configuration.last_value(listed, "remote.origin.url") == "ext::evil"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@example.org/x.git", "https://example.org/x.git"),
        ("https://token@example.org:8443/x", "https://example.org:8443/x"),
        ("https://example.org/x?access_token=1#y", "https://example.org/x"),
        ("ssh://git:secret@example.org/x", "ssh://git@example.org/x"),
        ("git@example.org:x/y.git", "git@example.org:x/y.git"),
        ("../elsewhere", "../elsewhere"),
        ("https://[broken", ""),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_secrets(address: str, shown: str) -> None:
    assert without_credentials(address) == shown
