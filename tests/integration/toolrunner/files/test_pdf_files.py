"""PDF documents: their text page by page, and a clear word where there is none."""

import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pypdf
import pytest

from support.host.memory_peak import memory_peak
from support.toolrunner.file_workers import FileWorkerProcess, program
from support.toolrunner.pdf_files import pdf
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol

MIB = 1024 * 1024


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


@pytest.fixture
def worker(directory: Path) -> Iterator[FileWorkerProcess]:
    with program(directory) as worker:
        worker.ask(protocol.StatPath(""))
        yield worker


def page(worker: FileWorkerProcess, **fields: int) -> protocol.Page:
    limits = {"offset_line": 1, "limit_lines": 2000, "max_bytes": 65536, "line_bytes": 4096}
    given: dict[str, Any] = {**limits, **fields}
    [answer] = worker.ask(protocol.ReadPage("f.pdf", **given))
    assert isinstance(answer, protocol.Page)
    return answer


def test_the_text_of_a_document_is_read_page_by_page(
    worker: FileWorkerProcess, directory: Path
) -> None:
    (directory / "f.pdf").write_bytes(pdf("Hello\nthere", "And\nbye"))
    whole = page(worker)
    lines = ["[page 1 of 2]", "Hello", "there", "[page 2 of 2]", "And", "bye"]
    assert (whole.kind, whole.media_type, whole.text.splitlines()) == (
        "pdf",
        "application/pdf",
        lines,
    )
    assert (whole.total_lines, whole.has_more, len(whole.etag)) == (6, False, 64)
    part = page(worker, offset_line=3, limit_lines=2)
    assert (part.text.splitlines(), part.end_line, part.next_offset_line) == (lines[2:4], 4, 5)
    with pytest.raises(FileRefused) as refused:
        page(worker, offset_line=7)
    assert refused.value.reason is Reason.PAST_END


def test_pictures_are_told_from_text(worker: FileWorkerProcess, directory: Path) -> None:
    (directory / "f.pdf").write_bytes(pdf("", "", "", picture=True))
    assert page(worker).text == (
        "[no text: the 3 pages may be pictures; turn them into text with a command]\n"
    )


def locked() -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def bomb() -> bytes:
    """Return a document whose one page is tiny, and 200 MiB once it is unpacked."""
    packing = zlib.compressobj()
    zeros = b"\0" * MIB
    packed = b"".join([*(packing.compress(zeros) for _ in range(200)), packing.flush()])
    packed = zlib.compress(packed)
    plain = pdf("x")
    start = plain.index(b"<< /Length")
    end = plain.index(b"endstream")
    head = f"<< /Filter [/FlateDecode /FlateDecode] /Length {len(packed)} >>\nstream\n".encode()
    return plain[:start] + head + packed + b"\n" + plain[end:]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (locked, "[no text: the document is locked with a password]\n"),
        (
            lambda: b"%PDF-1.7\nnothing of the kind",
            "[no text: the document cannot be read",
        ),
        (lambda: pdf("x")[:300], "[no text: the document cannot be read"),
        (bomb, "["),
    ],
    ids=["locked", "broken", "cut", "bomb"],
)
def test_what_cannot_be_read_is_told_and_costs_little(
    worker: FileWorkerProcess, directory: Path, content: Callable[[], bytes], told: str
) -> None:
    (directory / "f.pdf").write_bytes(content())
    with memory_peak(worker.pid) as peak:
        found = page(worker)
    assert (found.kind, found.text[: len(told)]) == ("pdf", told)
    assert peak.added_bytes < 8 * MIB


def test_a_document_of_many_bytes_or_pages_ends(worker: FileWorkerProcess, directory: Path) -> None:
    (directory / "f.pdf").write_bytes(pdf(*("one",) * 600))
    assert page(worker, limit_lines=10_000).text.endswith("[100 more pages were not read]\n")
    os.truncate(directory / "f.pdf", 10**12)
    assert page(worker).text == "[no text: the document is too large to be read; use a command]\n"
