"""Uploads in chunks: staged beside their path until complete."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Entry, Root
from toolrunner.fileworker.changes.commit import (
    NEW_FILE_MODE,
    keep_attributes,
    put_in_place,
    staged_name,
)
from toolrunner.fileworker.changes.drafts import Draft, Drafts
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.changes.text_plans import check_expected
from toolrunner.fileworker.content.snapshot import NO_ETAG, identity_of
from toolrunner.fileworker.protocol import Planned, StartUpload
from toolrunner.fileworker.values import Change, ChangeKind, Image


@dataclass
class Upload:
    """A running upload; the staged file is open until it is renamed."""

    root: Root
    request: StartUpload
    path: str
    directory_fd: int
    fd: int
    made: list[str]
    size_bytes: int = 0
    sha256: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    draft: Draft | None = None

    @classmethod
    def start(cls, root: Root, request: StartUpload) -> "Upload":
        """Start an upload, if the file may be written.

        Raises:
            FileRefused: It may not be written, exists, or has another etag.
        """
        draft = _draft(root, request)
        above = draft.path.rpartition("/")[0]
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            made = root.make_directories(above) if above else []
            directory_fd = root.open(above, os.O_RDONLY | os.O_DIRECTORY, through_links=False)
            mode = request.mode or NEW_FILE_MODE
            fd = os.open(staged_name(request.token), flags, mode, dir_fd=directory_fd)
        except OSError as error:
            raise errors.refusal_of(error, request.path) from error
        return cls(root, request, draft.path, directory_fd, fd, made)

    def take(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            FileRefused: There are more than announced, or the disk is full.
        """
        self.size_bytes += len(data)
        if self.size_bytes > self.request.size_bytes:
            raise self._wrong_size()
        self.sha256.update(data)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.fd, view) :]
        except OSError as error:
            raise errors.refusal_of(error, self.request.path) from error

    def plan(self) -> Planned:
        """Return the planned change of the file.

        Raises:
            FileRefused: Bytes are missing, or the file has changed.
        """
        if self.size_bytes != self.request.size_bytes:
            raise self._wrong_size()
        draft = self.draft = _draft(self.root, self.request)
        after = self.sha256.hexdigest()
        before = draft.before
        kind = ChangeKind.CREATED if before is None else ChangeKind.MODIFIED
        change = Change(
            path=draft.shown,
            kind=ChangeKind.UNCHANGED if draft.before_etag == after else kind,
            etag=after,
            before_etag=draft.before_etag,
            size_bytes=self.size_bytes,
        )
        image = Image(
            path=draft.path,
            before=None if before is None else before.content,
            mode=None if before is None else before.mode,
            before_etag=draft.before_etag,
            after_etag=after,
            is_kept=before is None or before.content is not None,
        )
        return Planned((change,), images=(image,))

    def commit(self) -> None:
        """Rename the file to its path.

        Raises:
            FileRefused: The path has changed meanwhile.
        """
        assert self.draft is not None, "a commit follows its plan"
        before = self.draft.before
        name = self.path.rpartition("/")[2]
        entry = Entry(self.directory_fd, name, self.path)
        try:
            GitGuard(self.root, self.request.guards_git).check(entry, self.request.path)
            if before is not None:
                keep_attributes(self.fd, entry, before.mode)
            os.fsync(self.fd)
            now = entry.lstat()
            known = None if before is None else before.identity
            if (None if now is None else identity_of(now)) != known:
                raise errors.changed(self.request.path, NO_ETAG)
            put_in_place(entry, staged_name(self.request.token), before, self.request.path)
            os.fsync(self.directory_fd)
            self.made = []
        except OSError as error:
            raise errors.refusal_of(error, self.request.path) from error
        finally:
            self.drop()

    def drop(self) -> None:
        """Remove the staged file and the created directories."""
        with suppress(FileNotFoundError):
            os.unlink(staged_name(self.request.token), dir_fd=self.directory_fd)
        os.close(self.fd)
        os.close(self.directory_fd)
        for directory in reversed(self.made):
            with suppress(OSError), self.root.real_entry(directory) as entry:
                os.rmdir(entry.name, dir_fd=entry.directory_fd)

    def _wrong_size(self) -> errors.FileRefused:
        announced = self.request.size_bytes
        text = f"{self.size_bytes} bytes came and {announced} were announced; upload it again"
        invalid = errors.Reason.INVALID_REQUEST
        return errors.FileRefused(invalid, text, field="head.size_bytes")


def _draft(root: Root, request: StartUpload) -> Draft:
    draft = Drafts(root, request.guards_git).open(request.path)
    check_expected(
        draft, asked=request.path, if_etag=request.if_etag, create_only=request.create_only
    )
    return draft
