"""Conversion of file values to protos."""

import base64
from collections.abc import Iterable
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api
from toolrunner.files.changes import ChangeResult
from toolrunner.fileworker import protocol, values
from toolrunner.fileworker.edits.match import Match

PATH_TYPE: Final = {
    "file": file_pb2.PATH_TYPE_FILE,
    "directory": file_pb2.PATH_TYPE_DIRECTORY,
    "symlink": file_pb2.PATH_TYPE_SYMLINK,
    "special": file_pb2.PATH_TYPE_SPECIAL,
}
KIND: Final = {
    kind: file_pb2.ContentKind.Value(f"CONTENT_KIND_{kind.upper()}")
    for kind in ("text", "image", "pdf", "binary", "empty")
}
CHANGE: Final = {
    kind: file_pb2.FileChangeKind.Value(f"FILE_CHANGE_KIND_{kind.name}")
    for kind in values.ChangeKind
}
PROBLEM: Final = {
    kind: file_pb2.EditProblemKind.Value(f"EDIT_PROBLEM_KIND_{kind.name}")
    for kind in values.ProblemKind
}
MATCH: Final = {match: file_pb2.EditMatch.Value(f"EDIT_MATCH_{match.name}") for match in Match}

#: The range of a Timestamp: the years 1 to 9999.
TIME_NS_MIN: Final = -62_135_596_800 * 10**9
TIME_NS_MAX: Final = 253_402_300_800 * 10**9 - 1


def text_to_proto(text: str) -> str:
    """Return a name as valid UTF-8; invalid bytes are replaced."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def info_to_proto(info: values.PathInfo) -> file_pb2.PathInfo:
    """Return the metadata of a path."""
    modified_at = Timestamp()
    modified_at.FromNanoseconds(max(TIME_NS_MIN, min(info.modified_ns, TIME_NS_MAX)))
    return file_pb2.PathInfo(
        path=text_to_proto(info.path),
        type=PATH_TYPE[info.type],
        size_bytes=info.size_bytes,
        mode=info.mode,
        modified_at=modified_at,
        link_target=text_to_proto(info.link_target),
    )


def page_to_proto(page: protocol.Page) -> api.ReadFileResponse:
    """Return a page of a file."""
    return api.ReadFileResponse(
        info=info_to_proto(page.info),
        kind=KIND[page.kind],
        text=page.text,
        start_line=page.start_line,
        end_line=page.end_line,
        total_lines=page.total_lines,
        has_more=page.has_more,
        next_offset_line=page.next_offset_line,
        clipped_lines=page.clipped_lines,
        etag=page.etag,
        encoding=page.encoding,
        media_type=page.media_type,
        image=page.image,
    )


def changes_to_proto(changed: ChangeResult) -> list[file_pb2.FileChange]:
    """Return the changes of files."""
    return [
        file_pb2.FileChange(
            path=text_to_proto(change.path),
            kind=CHANGE[change.kind],
            old_path=text_to_proto(change.old_path),
            etag=change.etag,
            diff=text_to_proto(change.diff),
            diff_truncated=change.diff_truncated,
            added_lines=change.added_lines,
            deleted_lines=change.deleted_lines,
            size_bytes=change.size_bytes,
            edits=[
                file_pb2.AppliedEdit(
                    index=edit.index, match=MATCH[edit.match], count=edit.count, line=edit.line
                )
                for edit in change.edits
            ],
            stale_read=change.path in changed.stale_paths,
        )
        for change in changed.changes
    ]


def problems_to_proto(changed: ChangeResult) -> list[file_pb2.EditProblem]:
    """Return all problems."""
    return [
        file_pb2.EditProblem(
            file_index=problem.file_index,
            edit_index=problem.edit_index,
            path=problem.path,
            kind=PROBLEM[problem.kind],
            message=text_to_proto(problem.message),
            count=problem.count,
            hints=[text_to_proto(hint) for hint in problem.hints],
            patch_line=problem.patch_line,
        )
        for problem in changed.planned.problems
    ]


def token_of(after: bytes) -> str:
    """Return a page position as a token."""
    return base64.urlsafe_b64encode(after).decode()


def listing_to_proto(listing: protocol.Listing) -> api.ListDirectoryResponse:
    """Return a page of a directory."""
    return api.ListDirectoryResponse(
        entries=[
            file_pb2.DirectoryEntry(
                info=info_to_proto(entry.info),
                depth=entry.depth,
                omitted_entries=entry.omitted_entries,
            )
            for entry in listing.entries
        ],
        next_page_token=token_of(listing.next),
        hidden_entries=listing.hidden_entries,
    )


def found_to_proto(found: protocol.FoundFiles) -> api.FindFilesResponse:
    """Return a page of files."""
    return api.FindFilesResponse(
        files=[
            file_pb2.FoundFile(info=info_to_proto(file.info), score=file.score)
            for file in found.files
        ],
        next_page_token=token_of(found.next),
        truncated=found.is_truncated,
    )


def matches_to_proto(matches: protocol.FileMatches) -> file_pb2.FileMatches:
    """Return the matches of a search in one file."""
    found = file_pb2.FileMatches()
    _fill(found, matches)
    return found


def batch_to_proto(files: Iterable[protocol.FileMatches]) -> api.SearchFilesResponse:
    """Return the matches of a search in several files."""
    answer = api.SearchFilesResponse()
    for matches in files:
        _fill(answer.files.files.add(), matches)
    return answer


def _fill(found: file_pb2.FileMatches, matches: protocol.FileMatches) -> None:
    """Fill a message in place: a line that is built first and then added is copied."""
    found.path, found.count = text_to_proto(matches.path), matches.count
    add = found.lines.add
    for line in matches.lines:
        add(
            line=line.line,
            text=line.text,
            is_match=line.is_match,
            column=line.column,
            clipped=line.clipped,
        )


def summary_to_proto(summary: protocol.Summary) -> api.SearchFilesResponse:
    """Return the summary of a search."""
    return api.SearchFilesResponse(
        summary=api.SearchSummary(
            files=summary.files,
            matches=summary.matches,
            searched_files=summary.searched_files,
            truncated=summary.truncated,
            timed_out=summary.timed_out,
            engine="ripgrep",
            duration_ms=round(summary.duration_s * 1000),
        )
    )


def stat_to_proto(stat: protocol.Stat) -> api.StatPathResponse:
    """Return the metadata of a path."""
    return api.StatPathResponse(
        exists=stat.info is not None,
        info=None if stat.info is None else info_to_proto(stat.info),
        resolved_path=text_to_proto(stat.resolved_path),
        etag=stat.etag,
        suggestions=[text_to_proto(each) for each in stat.suggestions],
    )
