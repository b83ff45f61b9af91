"""Planning of text changes: all problems are found before anything is written."""

from collections.abc import Iterable
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.changes.drafts import AliasedPath, Draft, Drafts
from toolrunner.fileworker.content.detection import text_of
from toolrunner.fileworker.content.snapshot import CONTENT_BYTES_MAX
from toolrunner.fileworker.edits.replacement import NO_FILE_EDIT, edited
from toolrunner.fileworker.protocol import PlanEdits, PlanRestore, PlanWrite
from toolrunner.fileworker.search.find import suggestions_for
from toolrunner.fileworker.values import FileEdit, Image, Problem, ProblemKind

MESSAGE_CHARACTERS_MAX: Final = 1000

_KIND: Final = {
    errors.Reason.PATH_NOT_FOUND: ProblemKind.NOT_FOUND,
    errors.Reason.WRONG_PATH_KIND: ProblemKind.NOT_A_FILE,
    errors.Reason.OUTSIDE_WORKSPACE: ProblemKind.FORBIDDEN,
    errors.Reason.PATH_FORBIDDEN: ProblemKind.FORBIDDEN,
    errors.Reason.INVALID_REQUEST: ProblemKind.MALFORMED,
}


def problem(
    index: int,
    path: str,
    kind: ProblemKind,
    message: str,
    *,
    edit_index: int = NO_FILE_EDIT,
    count: int = 0,
    hints: tuple[str, ...] = (),
    patch_line: int = 0,
) -> Problem:
    """Return one problem."""
    text = message[:MESSAGE_CHARACTERS_MAX]
    return Problem(index, edit_index, path, kind, text, count, hints, patch_line)


def problem_of(
    refused: errors.FileRefused | AliasedPath, index: int, path: str, patch_line: int = 0
) -> Problem:
    """Return a refusal of one file as a problem.

    Raises:
        FileRefused: It is an error of the node, not of the file.
    """
    if isinstance(refused, AliasedPath):
        kind = ProblemKind.ALIAS
    elif refused.reason in _KIND:
        kind = _KIND[refused.reason]
    else:
        raise refused
    return problem(index, path, kind, str(refused), patch_line=patch_line)


def missing(root: Root, index: int, path: str, patch_line: int = 0) -> Problem:
    """Return the problem for a missing file."""
    hints = suggestions_for(root, root.relative(path))
    message = f"there is no {path!r}; check the path, or write the file as a whole"
    kind = ProblemKind.NOT_FOUND
    return problem(index, path, kind, message, hints=hints, patch_line=patch_line)


def text_in(draft: Draft) -> str | None:
    """Return the current text of a draft, or None if it is not text.

    Raises:
        FileRefused: The file is too large.
    """
    if draft.before is not None and draft.before.content is None:
        raise errors.too_large(draft.shown, draft.before.identity[2], CONTENT_BYTES_MAX)
    text = text_of(draft.content or b"")
    return None if text is None else text.text


def put_text(draft: Draft, text: str) -> None:
    """Set the text of a draft, in the encoding of the previous one.

    Raises:
        UnicodeEncodeError: Its encoding lacks a character.
    """
    written = text_of(draft.content or b"")
    assert written is not None, "only a text is replaced by a text"
    draft.content = written.encoded(text)


def plan_write(root: Root, request: PlanWrite) -> Drafts:
    """Plan the write of a whole file.

    Raises:
        FileRefused: It may not be written, exists, or has another etag.
    """
    drafts = Drafts(root, request.guards_git)
    draft = drafts.open(request.path)
    check_expected(
        draft, asked=request.path, if_etag=request.if_etag, create_only=request.create_only
    )
    draft.content = request.content
    draft.mode = request.mode
    return drafts


def check_expected(draft: Draft, *, asked: str, if_etag: str, create_only: bool) -> None:
    """Refuse a file that is not as the caller expects it."""
    if create_only and draft.before is not None:
        raise errors.exists(asked)
    if if_etag and draft.before_etag != if_etag:
        raise errors.changed(asked, draft.before_etag)


def plan_edits(root: Root, request: PlanEdits) -> tuple[Drafts, list[Problem]]:
    """Plan replacements; return every one that cannot be made as a problem."""
    drafts = Drafts(root, request.guards_git)
    problems: list[Problem] = []
    for index, file in enumerate(request.files):
        try:
            draft = drafts.open(file.path)
        except (errors.FileRefused, AliasedPath) as refused:
            problems.append(problem_of(refused, index, file.path))
            continue
        problems += _edit(root, draft, index, file)
    return drafts, problems


def _edit(root: Root, draft: Draft, index: int, file: FileEdit) -> Iterable[Problem]:
    if draft.before is None:
        return [missing(root, index, file.path)]
    if file.if_etag and draft.before_etag != file.if_etag:
        message = "it has changed since it was read; read it again and repeat the edit"
        return [problem(index, file.path, ProblemKind.CHANGED, message)]
    text = text_in(draft)
    if text is None:
        message = "it is not text, so texts in it cannot be replaced; write it as a whole"
        return [problem(index, file.path, ProblemKind.BINARY, message)]
    result = edited(text, file.edits)
    try:
        put_text(draft, result.text)
    except UnicodeEncodeError as error:
        message = f"its encoding, {error.encoding}, lacks {error.object[error.start]!r}"
        return [problem(index, file.path, ProblemKind.MALFORMED, message)]
    draft.applied = (*draft.applied, *result.applied)
    return [
        problem(
            index,
            file.path,
            bad.kind,
            bad.message,
            edit_index=bad.index,
            count=bad.count,
            hints=bad.hints,
        )
        for bad in result.bad
    ]


def plan_restore(root: Root, request: PlanRestore) -> Drafts:
    """Plan the restore of files.

    Raises:
        FileRefused: One of them has changed since, or was too large to be stored.
    """
    drafts = Drafts(root, request.guards_git)
    for image in request.images:
        _restore(drafts, image)
    return drafts


def _restore(drafts: Drafts, image: Image) -> None:
    draft = drafts.open(image.path)
    if draft.before_etag != image.after_etag:
        raise errors.changed(image.path, draft.before_etag)
    if not image.is_kept:
        text = f"{image.path!r} was too large to be kept, so it cannot be put back"
        raise errors.FileRefused(errors.Reason.NOTHING_TO_UNDO, text, path=image.path)
    draft.content = image.before
    draft.mode = image.mode or 0
