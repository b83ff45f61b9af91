"""The handlers of all file requests of one workspace."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

import msgspec

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker import protocol
from toolrunner.fileworker.changes.checkpoint_restore import restore_entries
from toolrunner.fileworker.changes.commit import clear_staged, commit, roll_back
from toolrunner.fileworker.changes.drafts import Draft, change_of
from toolrunner.fileworker.changes.patch_plans import plan_patch
from toolrunner.fileworker.changes.paths import make_directory, stat_path
from toolrunner.fileworker.changes.text_plans import plan_edits, plan_restore, plan_write
from toolrunner.fileworker.changes.tree_plans import Deletion, MovePlan, RestorePlan, are_files
from toolrunner.fileworker.changes.uploads import Upload
from toolrunner.fileworker.content.page import read_bytes, read_page
from toolrunner.fileworker.git.handlers import GitHandlers
from toolrunner.fileworker.git.protocol import GitRequest
from toolrunner.fileworker.jobs import Job, Pause, Readable
from toolrunner.fileworker.protocol import Done, Planned
from toolrunner.fileworker.search.find import find_files, suggestions_for
from toolrunner.fileworker.search.grep import search_files
from toolrunner.fileworker.search.listing import list_directory
from toolrunner.fileworker.values import Change, Problem

DIFFS_BYTES_MAX: Final = 1024 * 1024
HINTS_CHARACTERS_MAX: Final = 100_000


@dataclass
class FileHandlers:
    """The files beneath one root; for one thread, and one change at a time.

    Attributes:
        root: The root.
        ripgrep: Path of the program that searches.
        git: The handlers of git requests; None for none.
        home: The path of the home of the workspace's processes; empty for none.
    """

    root: Root
    ripgrep: str
    git: GitHandlers | None = None
    home: str = ""
    _planned: dict[str, tuple[Draft, ...]] = field(default_factory=dict)
    _trees: dict[str, Deletion | MovePlan | RestorePlan] = field(default_factory=dict)
    _uploads: dict[str, Upload] = field(default_factory=dict)

    def work(self, request: protocol.Request) -> Job:
        """Execute a request; yields parts of streams, and pauses.

        Raises:
            FileRefused: It is refused.
        """
        if isinstance(request, GitRequest):
            assert self.git is not None, "only workers with repositories are asked"
            return (yield from self.git.work(request))
        match request:
            case protocol.ReadPage():
                return (yield from self._read_page(request))
            case protocol.ReadBytes():
                yield from read_bytes(self.root, request)
                return Done()
            case protocol.FindFiles():
                return (yield from find_files(self.root, request))
            case protocol.SearchFiles():
                return (yield from search_files(self.root, self.ripgrep, request))
            case protocol.StatPath():
                return stat_path(self.root, request)
            case protocol.ListDirectory():
                return (yield from list_directory(self.root, request))
            case protocol.MakeDirectory():
                return make_directory(self.root, request)
            case protocol.RestoreEntries():
                return (yield from restore_entries(self.root, request))
            case protocol.Commit(token) if token in self._trees:
                return (yield from self._commit_tree(self._trees.pop(token)))
            case _:
                return self._change(request)

    def close(self) -> None:
        """Drop uploads and close the root."""
        for upload in self._uploads.values():
            upload.drop()
        if self.git is not None:
            self.git.close()
        self.root.close()

    def _read_page(
        self, request: protocol.ReadPage
    ) -> Generator[Pause | Readable, None, protocol.Page]:
        if request.in_home:
            return (yield from self._read_home(request))
        try:
            return (yield from read_page(self.root, request))
        except errors.FileRefused as refused:
            if refused.reason is not errors.Reason.PATH_NOT_FOUND:
                raise
            near = suggestions_for(self.root, self.root.relative(request.path))
            raise errors.not_found(request.path, near) from refused

    def _read_home(
        self, request: protocol.ReadPage
    ) -> Generator[Pause | Readable, None, protocol.Page]:
        try:
            home = Root.open_directory(self.home)
        except OSError as absent:
            raise errors.not_found(request.path) from absent
        try:
            return (yield from read_page(home, request))
        finally:
            home.close()

    def _change(
        self,
        request: protocol.PlanWrite
        | protocol.PlanEdits
        | protocol.PlanPatch
        | protocol.PlanRestore
        | protocol.PlanMove
        | protocol.PlanDelete
        | protocol.StartUpload
        | protocol.UploadChunk
        | protocol.PlanUpload
        | protocol.DropUpload
        | protocol.Commit
        | protocol.RollBack,
    ) -> Planned | Done:
        match request:
            case protocol.PlanWrite():
                drafts = plan_write(self.root, request)
                return self._keep(request.token, tuple(drafts.by_path.values()), drafts.changed())
            case protocol.PlanEdits():
                drafts, problems = plan_edits(self.root, request)
                shown = tuple(drafts.by_path.values())
                return self._keep(request.token, shown, drafts.changed(), problems)
            case protocol.PlanPatch():
                plan = plan_patch(self.root, request)
                return self._keep(request.token, plan.shown, plan.drafts.changed(), plan.problems)
            case protocol.PlanMove():
                return self._keep_tree(MovePlan.of(self.root, request))
            case protocol.PlanDelete():
                return self._keep_tree(Deletion.of(self.root, request))
            case protocol.PlanRestore() if not are_files(request.images):
                return self._keep_tree(RestorePlan.of(self.root, request))
            case protocol.PlanRestore():
                drafts = plan_restore(self.root, request)
                return self._keep(request.token, tuple(drafts.by_path.values()), drafts.changed())
            case protocol.Commit(token):
                self._commit(token)
                return Done()
            case protocol.RollBack(token, images):
                kept = [roll_back(self.root, image, token) for image in reversed(images)]
                return Done(is_whole=all(kept))
            case _:
                return self._upload(request)

    def _keep(
        self,
        token: str,
        shown: Sequence[Draft],
        changed: tuple[Draft, ...],
        problems: Sequence[Problem] = (),
    ) -> Planned:
        changes = _bounded([change_of(draft) for draft in shown])
        if problems:
            return Planned(changes, _brief(problems))
        # Only the last plan is kept, so one that is never committed takes no memory.
        self._planned, self._trees = {token: changed}, {}
        return Planned(changes, images=tuple(draft.image() for draft in changed))

    def _keep_tree(self, plan: Deletion | MovePlan | RestorePlan) -> Planned:
        self._planned, self._trees = {}, {plan.token: plan}
        return plan.planned()

    def _commit_tree(self, plan: Deletion | MovePlan | RestorePlan) -> Generator[Pause, None, Done]:
        try:
            return (yield from plan.commit())
        except BaseException:
            plan.take_back()
            raise

    def _commit(self, token: str) -> None:
        upload = self._uploads.pop(token, None)
        if upload is not None:
            upload.commit()
        elif (drafts := self._planned.pop(token, None)) is not None:
            commit(self.root, drafts, token)
        else:
            raise errors.PlanUnknown

    def _arriving(self, token: str) -> Upload:
        try:
            return self._uploads[token]
        except KeyError as error:
            raise errors.PlanUnknown from error

    def _upload(
        self,
        request: protocol.StartUpload
        | protocol.UploadChunk
        | protocol.PlanUpload
        | protocol.DropUpload,
    ) -> Planned | Done:
        match request:
            case protocol.StartUpload(token):
                self._uploads[token] = Upload.start(self.root, request)
            case protocol.UploadChunk(token, data):
                self._arriving(token).take(data)
            case protocol.PlanUpload(token):
                return self._arriving(token).plan()
            case protocol.DropUpload(token, path):
                upload = self._uploads.pop(token, None)
                if upload is not None:
                    upload.drop()
                clear_staged(self.root, path, token)
            case _:
                assert_never(request)
        return Done()


def _brief(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Drop hints once their total is too long."""
    size, kept = 0, []
    for problem in problems:
        size += sum(len(hint) for hint in problem.hints)
        if size > HINTS_CHARACTERS_MAX:
            problem = msgspec.structs.replace(problem, hints=())
        kept.append(problem)
    return tuple(kept)


def _bounded(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Drop diffs once their total is too long."""
    size, kept = 0, []
    for change in changes:
        size += len(change.diff.encode())
        if size > DIFFS_BYTES_MAX:
            change = msgspec.structs.replace(change, diff="", diff_truncated=True)
        kept.append(change)
    return tuple(kept)
