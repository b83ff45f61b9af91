"""The base of a fork: its state at creation, to detect later changes on both sides.

Every entry is stored with the identity of its original and its copy, which detects an unchanged one
without reading it. Of files of limited size there is a digest too, and of texts the content,
because a three-way merge of a text needs the common version.
"""

import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import Copied, copy_tree
from toolrunner.filesystem.tree import Found, Kind

#: Larger files are compared by identity only: reading them would take longer than copying.
DIGEST_BYTES_MAX: Final = 64 * 1024 * 1024
TEXT_BYTES_MAX: Final = 1024 * 1024
CHUNK_BYTES: Final = 1024 * 1024
_PROBE_BYTES: Final = 8192
#: Shorter texts are kept as they are: compressing them takes longer than copying the file, and
#: the file itself takes as much of the disk.
PLAIN_BYTES_MAX: Final = 4096

Identity = tuple[int, int, int, int]


class BaseEntry(msgspec.Struct, frozen=True, array_like=True):
    """The state of a path.

    Attributes:
        kind: Its type.
        original: The identity of the original.
        copy: The identity of the copy.
        content: Digest of a file, or of the target of a link; empty for none.
        is_executable: Whether a file was executable.
        offset: The offset of its text in the pack; -1 for no text.
        packed_bytes: Its size there.
        is_plain: Whether it is not compressed there.
    """

    kind: Kind
    original: Identity
    copy: Identity
    content: str = ""
    is_executable: bool = False
    offset: int = -1
    packed_bytes: int = 0
    is_plain: bool = False


@dataclass(frozen=True)
class Base:
    """A base on disk: its index in memory, and the texts in a file."""

    entries: dict[str, BaseEntry]
    pack: Path

    @classmethod
    def load(cls, directory: Path) -> "Base":
        """Read a base."""
        index = (directory / "index").read_bytes()
        entries = msgspec.msgpack.decode(index, type=dict[bytes, BaseEntry])
        named = {os.fsdecode(path): entry for path, entry in entries.items()}
        return cls(named, directory / "pack")

    def text(self, path: str) -> bytes | None:
        """Return the content of a text; None if it was no text."""
        entry = self.entries.get(path)
        if entry is None or entry.offset < 0:
            return None
        with self.pack.open("rb") as pack:
            pack.seek(entry.offset)
            packed = pack.read(entry.packed_bytes)
        return packed if entry.is_plain else zlib.decompress(packed)


@dataclass
class _Recording:
    """Records every entry that is copied."""

    source: Root
    target: Root
    pack_fd: int
    entries: dict[str, BaseEntry] = field(default_factory=dict)
    offset: int = 0

    def note(self, found: Found, copy: int, small: bytes | None) -> None:
        """Record one entry, with the identity of its copy."""
        content, offset, packed_bytes, is_plain = "", -1, 0, False
        if found.kind is Kind.LINK:
            content = link_digest(self.target, found.path)
        elif found.kind is Kind.FILE and found.seen.st_size <= DIGEST_BYTES_MAX:
            content, text = digest_and_text(copy) if small is None else _told_of(small)
            if text is not None:
                is_plain = len(text) <= PLAIN_BYTES_MAX
                packed = text if is_plain else zlib.compress(text, 1)
                os.write(self.pack_fd, packed)
                offset, packed_bytes = self.offset, len(packed)
                self.offset += packed_bytes
        identity = (0, 0, 0, 0)
        if copy >= 0:
            identity = Found(found.path, found.kind, os.fstat(copy)).identity
        self.entries[found.path] = BaseEntry(
            found.kind,
            found.identity,
            identity,
            content,
            found.is_executable,
            offset,
            packed_bytes,
            is_plain,
        )


def copy_with_base(
    source: Root,
    target: Root,
    directory: Path,
    check: Callable[[Copied], None] = lambda copied: None,
    owner: int | None = None,
) -> Copied:
    """Copy a tree, and store its base in a directory; `check` raises to stop the copy.

    With an owner the copy is given away as it is made: a later change of owner would change the
    identity of every file, and a merge would have to read them all.

    Raises:
        OSError: The disk is full.
    """
    directory.mkdir(mode=0o700)
    pack_fd = os.open(directory / "pack", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
    try:
        recording = _Recording(source, target, pack_fd)
        copied = copy_tree(source, target, owner=owner, on_entry=recording.note, check=check)
    finally:
        os.close(pack_fd)
    # As bytes: file names need not be UTF-8.
    named = {os.fsencode(path): entry for path, entry in recording.entries.items()}
    (directory / "index").write_bytes(msgspec.msgpack.encode(named))
    return copied


def link_target(root: Root, path: str) -> str:
    """Return the target of a link."""
    above, _, name = path.rpartition("/")
    with root.opened(above, os.O_PATH | os.O_DIRECTORY) as fd:
        return os.readlink(name, dir_fd=fd)


def link_digest(root: Root, path: str) -> str:
    """Return a digest of the target of a link."""
    return hashlib.sha256(os.fsencode(link_target(root, path))).hexdigest()


def digest_and_text(fd: int) -> tuple[str, bytes | None]:
    """Return the digest of a file, and its content if that is a text of limited size."""
    digest = hashlib.sha256()
    pieces: list[bytes] = []
    at = 0
    while data := os.pread(fd, CHUNK_BYTES, at):
        digest.update(data)
        at += len(data)
        if at <= TEXT_BYTES_MAX:
            pieces.append(data)
    text = b"".join(pieces) if at <= TEXT_BYTES_MAX else None
    return digest.hexdigest(), text if text is not None and is_text(text) else None


def _told_of(content: bytes) -> tuple[str, bytes | None]:
    return hashlib.sha256(content).hexdigest(), content if is_text(content) else None


def is_text(content: bytes) -> bool:
    """Return whether a content looks like text (no NUL byte)."""
    return b"\0" not in content[:_PROBE_BYTES]
