"""Tools that change files: each change is made at most once, and completely or not at all."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from chatd.content.domain.tools import Outcome
from chatd.content.domain.truncation import truncated
from chatd.tools.workspace.arguments import BadArguments, Input
from chatd.tools.workspace.call import ANSWER_S, Call, without_empty
from chatd.tools.workspace.paths import Etag, FilePath, checked
from chatd.tools.workspace.results import failed, succeeded
from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api

DIFF_BYTES_MIN: Final = 512
TEXT_BYTES_MAX: Final = 1024 * 1024
PATCH_BEGINS: Final = "*** Begin Patch"

WRITE_DESCRIPTION: Final = (
    "Write a whole file, replacing what was there in one step and making the directories above it. "
    "Returns what changed as a diff. For a change inside a file that exists use an editing tool "
    "instead. Set create_only for a file that must be new, if_etag for one that must not have "
    "changed since it was read."
)
EDIT_DESCRIPTION: Final = (
    "Replace texts in one or several files, all or nothing, and return the diffs. Copy old_text "
    "from the file exactly, without line numbers, and with enough lines around it to be unique, or "
    "set replace_all. Edits of one file are made in order, each on the result of the one before. "
    "If anything does not fit, nothing is written and every problem is told."
)
PATCH_DESCRIPTION: Final = (
    "Apply a patch that adds, changes, moves and deletes files, all or nothing. It goes from "
    "`*** Begin Patch` to `*** End Patch`; sections begin with `*** Add File: path`, `*** Update "
    "File: path` (then optionally `*** Move to: path`) or `*** Delete File: path`; changes are "
    "lines with a space, - or + before them, after `@@` with an anchor where context is not unique."
)

UNDO_DESCRIPTION: Final = (
    "Take back this chat's last change of a file or directory that a tool made, also a move or a "
    "deletion. It is refused, and nothing is changed, if the file has changed since."
)

CHANGES: Final = {
    file_pb2.FILE_CHANGE_KIND_UNCHANGED: "unchanged",
    file_pb2.FILE_CHANGE_KIND_CREATED: "created",
    file_pb2.FILE_CHANGE_KIND_MODIFIED: "modified",
    file_pb2.FILE_CHANGE_KIND_DELETED: "deleted",
    file_pb2.FILE_CHANGE_KIND_MOVED: "moved",
}
LOOSE_MATCHES: Final = {
    file_pb2.EDIT_MATCH_TRAILING_BLANKS: "blanks at the ends of lines aside",
    file_pb2.EDIT_MATCH_INDENTATION: "indentation aside",
    file_pb2.EDIT_MATCH_FOLDED: "look-alike punctuation aside",
}

DryRun = Annotated[bool, Meta(description="Only tell what would change; write nothing.")]


class WriteFileInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `write_file`."""

    path: FilePath
    content: Annotated[str, Meta(description="The whole new content.")]
    if_etag: Etag = ""
    create_only: Annotated[bool, Meta(description="Refuse if the file exists.")] = False


class OneEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement."""

    old_text: Annotated[
        str, Meta(min_length=1, description="Text that is in the file, to be replaced.")
    ]
    new_text: Annotated[str, Meta(description="Text to put there; empty to delete.")]
    replace_all: Annotated[
        bool, Meta(description="Replace it wherever it is, instead of in its one place.")
    ] = False


class EditedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The replacements in one file."""

    path: FilePath
    edits: Annotated[
        list[OneEdit], Meta(min_length=1, max_length=100, description="Replacements, in order.")
    ]
    if_etag: Etag = ""


class EditFilesInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `edit_files`."""

    files: Annotated[
        list[EditedFile], Meta(min_length=1, max_length=100, description="The files to edit.")
    ]
    dry_run: DryRun = False


class ApplyPatchInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `apply_patch`."""

    patch: Annotated[
        str, Meta(min_length=1, description="The patch, from its first line to its last.")
    ]
    dry_run: DryRun = False


class UndoEditInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `undo_edit`."""

    path: FilePath


async def write_file(call: Call, given: WriteFileInput) -> Outcome:
    """Write a file once and return the change."""
    answer = call.noted(
        await call.files.WriteFile(
            api.WriteFileRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                path=checked(given.path),
                content=given.content.encode(),
                if_etag=given.if_etag,
                create_only=given.create_only,
            ),
            timeout=ANSWER_S,
        )
    )
    lines = given.content.count("\n") + (not given.content.endswith("\n") and given.content != "")
    (change,), is_cut = _changes((answer.change,), call.budget_bytes)
    return succeeded({**change, "lines": lines}, truncation=is_cut, notes=_notes((answer.change,)))


async def edit_files(call: Call, given: EditFilesInput) -> Outcome:
    """Make all edits once, or none."""
    answer = call.noted(
        await call.files.EditFiles(
            api.EditFilesRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                files=[_file_edit(place, each) for place, each in enumerate(given.files)],
                dry_run=given.dry_run,
            ),
            timeout=ANSWER_S,
        )
    )
    return _edited(answer, call.budget_bytes, is_dry_run=given.dry_run)


async def apply_patch(call: Call, given: ApplyPatchInput) -> Outcome:
    """Apply a patch once, completely or not at all."""
    if not given.patch.lstrip().startswith(PATCH_BEGINS):
        problem = f"patch: it does not begin with {PATCH_BEGINS}"
        raise BadArguments(problem, "send the whole patch without quotes or fences around it")
    answer = call.noted(
        await call.files.ApplyPatch(
            api.ApplyPatchRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                patch=given.patch,
                dry_run=given.dry_run,
            ),
            timeout=ANSWER_S,
        )
    )
    return _edited(answer, call.budget_bytes, is_dry_run=given.dry_run)


async def undo_edit(call: Call, given: UndoEditInput) -> Outcome:
    """Take back the last change of a path once."""
    answer = call.noted(
        await call.files.UndoEdit(
            api.UndoEditRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                path=checked(given.path),
            ),
            timeout=ANSWER_S,
        )
    )
    changes, is_cut = _changes(answer.changes, call.budget_bytes)
    return succeeded({"files": changes}, truncation=is_cut, notes=_notes(answer.changes))


def _file_edit(place: int, edited: EditedFile) -> file_pb2.FileEdit:
    for number, edit in enumerate(edited.edits):
        if max(len(edit.old_text.encode()), len(edit.new_text.encode())) > TEXT_BYTES_MAX:
            problem = f"files[{place}].edits[{number}]: a text has more than 1 MiB"
            raise BadArguments(problem, "write the file anew with write_file")
    return file_pb2.FileEdit(
        path=checked(edited.path, f"files[{place}].path"),
        edits=[
            file_pb2.TextEdit(
                old_text=edit.old_text, new_text=edit.new_text, replace_all=edit.replace_all
            )
            for edit in edited.edits
        ],
        if_etag=edited.if_etag,
    )


def _edited(
    answer: api.EditFilesResponse | api.ApplyPatchResponse, budget_bytes: int, *, is_dry_run: bool
) -> Outcome:
    if answer.problems:
        return _not_edited(answer.problems)
    changes, truncation = _changes(answer.changes, budget_bytes)
    notes = _notes(answer.changes)
    if is_dry_run:
        notes = (*notes, "Nothing was written: this was a dry run.")
    return succeeded(
        {"applied": answer.applied, "files": changes}, truncation=truncation, notes=notes
    )


def _not_edited(problems: Sequence[file_pb2.EditProblem]) -> Outcome:
    kinds = {file_pb2.EditProblemKind.Name(each.kind) for each in problems}
    names = sorted(kind.removeprefix("EDIT_PROBLEM_KIND_") for kind in kinds)
    count = len(problems)
    return failed(
        f"Nothing was changed: {problems[0].message}"
        if count == 1
        else f"Nothing was changed, because {count} things do not fit; see problems.",
        names[0] if len(names) == 1 else "EDITS_DO_NOT_FIT",
        "Read the places in question with read_file, correct every problem, and send all again.",
        fields={"applied": False, "problems": [_problem(each) for each in problems]},
    )


def _problem(problem: file_pb2.EditProblem) -> dict[str, object]:
    kind = file_pb2.EditProblemKind.Name(problem.kind).removeprefix("EDIT_PROBLEM_KIND_")
    return {
        "path": problem.path,
        "reason": kind,
        "error": problem.message,
        **({"edit": problem.edit_index} if problem.edit_index >= 0 else {}),
        **without_empty(
            {
                "count": problem.count,
                "hints": list(problem.hints),
                "patch_line": problem.patch_line,
            }
        ),
    }


def _changes(
    changes: Sequence[file_pb2.FileChange], budget_bytes: int
) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Return the changes of files, with diffs truncated to the size of a result."""
    diff_bytes = max(DIFF_BYTES_MIN, budget_bytes // 2 // max(1, len(changes)))
    told = [_change(change, diff_bytes) for change in changes]
    cut = sum(change.diff_truncated or len(change.diff.encode()) > diff_bytes for change in changes)
    return told, without_empty({"shortened_diffs": cut})


def _change(change: file_pb2.FileChange, diff_bytes: int) -> dict[str, object]:
    return {
        "path": change.path,
        "change": CHANGES.get(change.kind, "changed"),
        **without_empty({"old_path": change.old_path}),
        "added_lines": change.added_lines,
        "deleted_lines": change.deleted_lines,
        **without_empty(
            {
                "size_bytes": change.size_bytes,
                "etag": change.etag,
                "diff": truncated(change.diff, diff_bytes),
            }
        ),
    }


def _notes(changes: Sequence[file_pb2.FileChange]) -> tuple[str, ...]:
    """Return notes for the model about how its changes were applied."""
    notes = [
        f"{change.path} had changed since you last read it; check that your change still fits."
        for change in changes
        if change.stale_read
    ]
    for change in changes:
        for edit in change.edits:
            if edit.match in LOOSE_MATCHES:
                how = LOOSE_MATCHES[edit.match]
                notes.append(f"{change.path}: edit {edit.index} was found only with {how}.")
    return tuple(notes)
