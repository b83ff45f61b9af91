"""Listing, finding and searching: what is shown, what is ignored, and what ripgrep is given."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from parley.settings import ConfigurationError
from support.toolrunner.file_workers import FileWorker, here
from toolrunner.files.worker_pool import find_ripgrep
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol
from toolrunner.fileworker.jobs import pieces
from toolrunner.fileworker.protocol import FileMatches, Matches, SearchLine, Summary
from toolrunner.fileworker.search.find import likeness
from toolrunner.fileworker.search.globs import name_pattern
from toolrunner.fileworker.search.grep import search_files
from toolrunner.fileworker.search.walk import Walk, WalkOptions
from toolrunner.fileworker.values import PathInfo

TREE = {
    ".gitignore": "*.log\n/build/\n!keep.log\n",
    "README.md": "Alpha\nneedle here\nOmega\n",
    "src/app.py": "import os\n\ndef needle():\n    return 'Needle'\n",
    "src/.gitignore": "generated*\n",
    "src/generated.py": "needle = 1\n",
    "src/deep/er/x.py": "no\nno\nneedle one\nno\nneedle two\n",
    "build/out.txt": "needle\n",
    "debug.log": "needle\n",
    "keep.log": "needle kept\n",
    ".hidden/f": "needle hidden\n",
    ".git/config": "needle of git\n",
    "data.bin": "needle\0binary\n",
    "crlf.txt": "one\r\nneedle two\r\n",
}

SEARCH = protocol.SearchFiles(
    pattern="needle",
    literal=False,
    paths=(),
    globs=(),
    types=(),
    case="smart",
    context_lines=0,
    multiline=False,
    mode="matches",
    limit=100,
    include_ignored=False,
    timeout_s=10.0,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return tmp_path


@pytest.fixture
def worker(directory: Path) -> Iterator[FileWorker]:
    with here(directory) as worker:
        yield worker


def search(worker: FileWorker, **fields: object) -> tuple[dict[str, FileMatches], Summary]:
    *found, summary = worker.ask(msgspec.structs.replace(SEARCH, **fields))
    assert isinstance(summary, Summary)
    files = [file for each in found if isinstance(each, Matches) for file in each.files]
    return {file.path: file for file in files}, summary


def listed(worker: FileWorker, **fields: object) -> protocol.Listing:
    request = protocol.ListDirectory("", 1, b"", 200, False, False)
    [listing] = worker.ask(msgspec.structs.replace(request, **fields))
    assert isinstance(listing, protocol.Listing)
    return listing


def test_a_directory_is_listed_without_what_is_hidden_or_ignored(worker: FileWorker) -> None:
    listing = listed(worker)
    assert [(entry.info.path, entry.omitted_entries) for entry in listing.entries] == [
        ("src", 2),
        ("README.md", 0),
        ("crlf.txt", 0),
        ("data.bin", 0),
        ("keep.log", 0),
    ]
    assert listing.hidden_entries == 5


def test_a_directory_is_listed_some_levels_deep_and_page_by_page(worker: FileWorker) -> None:
    every = [entry.info.path for entry in listed(worker, depth=8).entries]
    assert every[:5] == ["src", "src/deep", "src/deep/er", "src/deep/er/x.py", "src/app.py"]
    pages = [listed(worker, depth=8, limit=4)]
    while pages[-1].next:
        pages.append(listed(worker, depth=8, after=pages[-1].next, limit=4))
    assert [entry.info.path for page in pages for entry in page.entries] == every
    assert [len(page.entries) for page in pages] == [4, 4, 1]


def test_everything_is_listed_if_that_is_asked_for(worker: FileWorker) -> None:
    listing = listed(worker, include_hidden=True, include_ignored=True)
    assert (len(listing.entries), listing.hidden_entries) == (10, 0)


def find(worker: FileWorker, query: str, **fields: object) -> list[str]:
    request = protocol.FindFiles(query, False, "", b"", 100, False)
    [found] = worker.ask(msgspec.structs.replace(request, **fields))
    assert isinstance(found, protocol.FoundFiles)
    return [file.info.path for file in found.files]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("*.py", {"src/app.py", "src/deep/er/x.py"}),
        ("src/*.py", {"src/app.py"}),
        ("src/**/*.py", {"src/app.py", "src/deep/er/x.py"}),
        ("**/{app,x}.py", {"src/app.py", "src/deep/er/x.py"}),
        ("[ck]*.*", {"crlf.txt", "keep.log"}),
        ("*.none", set()),
    ],
)
def test_files_are_found_by_a_pattern(worker: FileWorker, query: str, names: set[str]) -> None:
    assert set(find(worker, query)) == names


def test_files_are_found_newest_first_and_below_a_directory(
    worker: FileWorker, directory: Path
) -> None:
    now = time.monotonic_ns()
    for age, name in enumerate(("src/app.py", "src/deep/er/x.py")):
        os.utime(directory / name, ns=(now - age * 10**9, now - age * 10**9))
    assert find(worker, "*.py") == ["src/app.py", "src/deep/er/x.py"]
    assert find(worker, "*.py", path="src/deep") == ["src/deep/er/x.py"]
    assert "src/generated.py" in find(worker, "*.py", include_ignored=True)


def test_files_are_found_by_letters_best_first(worker: FileWorker) -> None:
    assert find(worker, "app", is_fuzzy=True)[0] == "src/app.py"
    assert find(worker, "sdx", is_fuzzy=True) == ["src/deep/er/x.py"]


def test_letters_at_the_beginning_of_words_count_more() -> None:
    scores = [likeness("fr", path) for path in ("file_room.py", "offer.py", "none.md")]
    assert scores[0] is not None
    assert scores[1] is not None
    assert scores[0] > scores[1]
    assert scores[2] is None


def test_a_walk_without_time_ends_with_what_it_has(tmp_path: Path) -> None:
    for name in ("a/b", "a/c/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    root = Root.open_directory(str(tmp_path))
    walk = Walk(root, WalkOptions(hidden=False, ignored=False), until_s=0.0)
    seen = [info.path for info in walk.files("a") if isinstance(info, PathInfo)]
    assert (seen, walk.is_truncated) == (["a/b"], True)
    root.close()


def test_a_pattern_that_cannot_be_read_is_refused(worker: FileWorker) -> None:
    with pytest.raises(FileRefused) as refused:
        search(worker, pattern="(unclosed")
    assert refused.value.reason is Reason.INVALID_PATTERN


def test_matching_lines_are_found_with_their_context(worker: FileWorker) -> None:
    found, summary = search(worker, context_lines=1)
    assert found == {
        "README.md": FileMatches(
            "README.md",
            (
                SearchLine(1, "Alpha", False),
                SearchLine(2, "needle here", True),
                SearchLine(3, "Omega", False),
            ),
            1,
        ),
        "src/app.py": FileMatches(
            "src/app.py",
            (
                SearchLine(2, "", False),
                SearchLine(3, "def needle():", True, 4),
                SearchLine(4, "    return 'Needle'", True, 12),
            ),
            2,
        ),
        "src/deep/er/x.py": FileMatches(
            "src/deep/er/x.py",
            (
                SearchLine(2, "no", False),
                SearchLine(3, "needle one", True),
                SearchLine(4, "no", False),
                SearchLine(5, "needle two", True),
            ),
            2,
        ),
        "keep.log": FileMatches("keep.log", (SearchLine(1, "needle kept", True),), 1),
        "crlf.txt": FileMatches(
            "crlf.txt", (SearchLine(1, "one", False), SearchLine(2, "needle two", True)), 1
        ),
    }
    assert (summary.files, summary.matches, summary.truncated) == (5, 7, False)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"pattern": "Needle"}, {"src/app.py"}),
        ({"case": "sensitive", "globs": ("*.py",)}, {"src/app.py", "src/deep/er/x.py"}),
        ({"globs": ("!*.py", "!*.md")}, {"keep.log", "crlf.txt"}),
        ({"types": ("py",)}, {"src/app.py", "src/deep/er/x.py"}),
        ({"paths": ("src/deep", "README.md")}, {"src/deep/er/x.py", "README.md"}),
        ({"paths": ("build",)}, {"build/out.txt"}),
        ({"paths": ("src",)}, {"src/app.py", "src/deep/er/x.py"}),
        ({"pattern": "n(", "literal": True}, set()),
        ({"pattern": "one\nno\nneedle", "multiline": True}, {"src/deep/er/x.py"}),
        (
            {"include_ignored": True, "globs": ("*.log", "f", "*.txt")},
            {"debug.log", "keep.log", ".hidden/f", "build/out.txt", "crlf.txt"},
        ),
    ],
    ids=lambda value: str(value if isinstance(value, dict) else sorted(value))[:40],
)
def test_the_options_of_a_search_choose_its_files(
    worker: FileWorker, fields: dict[str, object], names: set[str]
) -> None:
    for mode in ("matches", "files", "count"):
        assert set(search(worker, mode=mode, **fields)[0]) == names, mode


def test_a_node_without_ripgrep_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no ripgrep"):
        find_ripgrep(str(tmp_path))


def test_a_search_stops_at_its_limit_and_says_so(worker: FileWorker) -> None:
    found, summary = search(worker, limit=3)
    assert sum(each.count for each in found.values()) == 3
    assert (summary.matches, summary.truncated) == (3, True)
    found, summary = search(worker, limit=2, mode="files")
    assert (len(found), summary.truncated) == (2, True)


def test_what_is_found_in_many_files_comes_in_few_pieces(
    worker: FileWorker, directory: Path
) -> None:
    for number in range(400):
        (directory / f"many-{number}").write_text("a needle\n")
    *found, summary = worker.ask(msgspec.structs.replace(SEARCH, globs=("many-*",), limit=1000))
    assert isinstance(summary, Summary)
    assert (summary.files, summary.truncated) == (400, False)
    # One for each twentieth of a second; ripgrep tells of each file by itself.
    assert len(found) < 100


def test_long_lines_are_cut_around_the_match(worker: FileWorker, directory: Path) -> None:
    (directory / "min.js").write_text("x" * 5000 + "needle" + "y" * 5000 + "\n")
    found, _ = search(worker, globs=("*.js",))
    [line] = found["min.js"].lines
    assert (len(line.text), line.clipped, line.column) == (500, True, 5000)
    assert "needle" in line.text


def test_a_search_never_leaves_the_directory(
    worker: FileWorker, directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "d"
    outside.mkdir()
    (outside / "f").write_text("needle outside\n")
    (directory / "link").symlink_to(outside)
    (directory / "file").symlink_to(outside / "f")
    found, _ = search(worker, include_ignored=True)
    assert {path for path in found if path.startswith(("link", "file"))} == set()
    for path in ("link", "file", ".."):
        with pytest.raises(FileRefused) as refused:
            search(worker, paths=(path,))
        assert refused.value.reason is Reason.OUTSIDE_WORKSPACE


@pytest.mark.parametrize("mode", ["matches", "count"])
def test_a_named_file_that_becomes_a_link_at_the_last_moment_leads_nowhere(
    directory: Path, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("needle outside\nneedle again\n")
    swapping = outside / "rg"
    named = directory / "src" / "app.py"
    swap = f"ln -sfn {outside / 'secret'} {named}"
    swapping.write_text(f'#!/bin/sh\n{swap}\nexec {find_ripgrep()} "$@"\n')
    swapping.chmod(0o755)
    request = msgspec.structs.replace(SEARCH, paths=("src/app.py",), case="sensitive", mode=mode)
    root = Root.open_directory(str(directory))
    try:
        *found, summary = pieces(search_files(root, str(swapping), request))
    finally:
        root.close()
    assert named.is_symlink()
    lines = (SearchLine(3, "def needle():", True, 4),) if mode == "matches" else ()
    (matches,) = found
    assert isinstance(matches, Matches)
    assert [(file.path, file.lines) for file in matches.files] == [("src/app.py", lines)]
    assert isinstance(summary, Summary)
    assert (summary.files, summary.matches) == (1, 1)


def test_a_search_that_takes_too_long_ends_with_what_it_has(worker: FileWorker) -> None:
    _, summary = search(worker, timeout_s=0.0)
    assert (summary.timed_out, summary.truncated) == (True, True)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**", "a/b/c", True),
        ("**/c", "c", True),
        ("?.md", "ab.md", False),
        ("[!a].md", "b.md", True),
        ("{a,b*}.md", "bcd.md", True),
        ("a\\*b", "a*b", True),
        ("a\\*b", "axb", False),
    ],
)
def test_a_glob_fits_as_in_a_shell(pattern: str, path: str, fits: bool) -> None:
    assert (name_pattern(pattern).fullmatch(path) is not None) is fits


def test_a_name_may_hold_a_line_end(worker: FileWorker, directory: Path) -> None:
    (directory / "two\n7 lines").write_text("needle\nneedle\n")
    found, summary = search(worker, mode="count", globs=("two*",))
    assert found == {"two\n7 lines": FileMatches("two\n7 lines", (), 2)}
    assert (summary.files, summary.matches) == (1, 2)
    assert set(search(worker, mode="files", globs=("two*",))[0]) == {"two\n7 lines"}
    assert set(search(worker, globs=("two*",))[0]) == {"two\n7 lines"}


def test_more_matches_in_one_file_than_are_wanted_are_told(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "many.py").write_text("needle\n" * 500)
    found, summary = search(worker, limit=100, paths=("many.py",))
    assert (len(found), summary.matches, summary.truncated) == (1, 100, True)
    found, summary = search(worker, limit=500, paths=("many.py",))
    assert (len(found), summary.matches, summary.truncated) == (1, 500, False)
    assert search(worker, mode="count", limit=1, paths=("many.py",))[1].matches == 500


def test_pages_of_what_is_found_have_everything_once(worker: FileWorker, directory: Path) -> None:
    for number in range(25):
        (directory / f"page{number}.py").touch()
    request = protocol.FindFiles("page*.py", False, "", b"", 10, False)
    pages = []
    while True:
        [found] = worker.ask(request)
        assert isinstance(found, protocol.FoundFiles)
        pages.append([file.info.path for file in found.files])
        if not found.next:
            break
        request = msgspec.structs.replace(request, after=found.next)
    assert [len(page) for page in pages] == [10, 10, 5]
    assert len({path for page in pages for path in page}) == 25


def test_a_token_of_no_page_is_refused(worker: FileWorker) -> None:
    with pytest.raises(FileRefused) as refused:
        worker.ask(protocol.FindFiles("*", False, "", b"nonsense", 10, False))
    assert (refused.value.reason, refused.value.metadata) == (
        Reason.INVALID_REQUEST,
        {"field": "page_token"},
    )
