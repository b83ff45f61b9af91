"""Passwords that are known from breaches are found in a file of hashes."""

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.identity.engine.breached_passwords import BreachedPasswords

KNOWN = [f"password {number}" for number in range(300)]
OTHERS = [f"another {number}" for number in range(300)]


def digest(password: str) -> str:
    return hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest()


def counted(digests: Iterable[str]) -> str:
    """Return lines as they are published, each of another length."""
    return "".join(f"{each.upper()}:{10 ** (place % 7)}\r\n" for place, each in enumerate(digests))


def plain(digests: Iterable[str]) -> str:
    return "\n".join(digests)


@pytest.mark.parametrize("written", [counted, plain])
@pytest.mark.parametrize("count", [1, 2, 3, 300])
def test_every_password_of_the_file_is_found_and_no_other(
    tmp_path: Path, written: Callable[[Iterable[str]], str], count: int
) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(written(sorted(map(digest, KNOWN[:count]))), newline="")
    breached = BreachedPasswords(file)

    assert [each for each in KNOWN[:count] if not breached.contain(each)] == []
    assert [each for each in (*OTHERS, *KNOWN[count:]) if breached.contain(each)] == []
    breached.close()


def test_several_threads_search_at_once(tmp_path: Path) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(counted(sorted(map(digest, KNOWN))), newline="")
    breached = BreachedPasswords(file)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(breached.contain, (*KNOWN, *OTHERS) * 5))

    assert found == [*[True] * len(KNOWN), *[False] * len(OTHERS)] * 5
    breached.close()


def test_a_file_that_was_cut_and_written_again_is_searched_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "hashes.txt"
    digests = sorted(map(digest, KNOWN))
    file.write_text(counted(digests), newline="")
    breached = BreachedPasswords(file)

    file.write_text(counted(digests[:2]), newline="")
    assert sum(map(breached.contain, KNOWN)) == 2
    file.write_text("")
    assert not any(map(breached.contain, KNOWN))
    file.write_text(counted(digests), newline="")
    assert all(map(breached.contain, KNOWN))
    breached.close()


def halves_exchanged(digests: list[str]) -> list[str]:
    middle = len(digests) // 2
    return [*digests[middle:], *digests[:middle]]


def shuffled(digests: list[str]) -> list[str]:
    return sorted(digests, key=digest)


@pytest.mark.parametrize(
    ("other_order", "count"),
    [(halves_exchanged, 2), (halves_exchanged, 3000), (shuffled, 300), (shuffled, 3000)],
)
def test_a_file_in_another_order_is_refused(
    tmp_path: Path, other_order: Callable[[list[str]], list[str]], count: int
) -> None:
    file = tmp_path / "hashes.txt"
    digests = sorted(digest(f"password {number}") for number in range(count))
    file.write_text(counted(other_order(digests)), newline="")

    with pytest.raises(ValueError, match="not ordered by hash"):
        BreachedPasswords(file)


def test_a_search_reports_that_the_order_was_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "hashes.txt"
    digests = sorted(map(digest, KNOWN))
    file.write_text(counted(digests), newline="")
    breached = BreachedPasswords(file)
    file.write_text(counted(shuffled(digests)), newline="")

    assert not all(map(breached.contain, KNOWN))
    assert "is not ordered" in caplog.text
    breached.close()


def test_an_empty_line_at_the_end_hides_no_password(tmp_path: Path) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(counted(sorted(map(digest, KNOWN))) + "\r\n", newline="")
    breached = BreachedPasswords(file)

    assert all(map(breached.contain, KNOWN))
    breached.close()


@pytest.mark.parametrize("content", ["", "password\n", "<html>", "0" * 39, "0" * 64 + "\n"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "hashes.txt"
    file.write_text(content)

    with pytest.raises(ValueError, match="no SHA-1 hash"):
        BreachedPasswords(file)
