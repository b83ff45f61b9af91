"""Conversion of git values to protos."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.workspace.v1 import git_pb2
from toolrunner.files.rpc.convert import text_to_proto
from toolrunner.fileworker.git.protocol import Checkpoint, FileState, GitFile, Repository
from toolrunner.git.watches import Looked

STATE: Final = {
    state: git_pb2.GitFileState.Value(f"GIT_FILE_STATE_{state.name}") for state in FileState
}
PROBLEM_CHARACTERS_MAX: Final = 500


def files_to_proto(files: Iterable[GitFile]) -> list[git_pb2.GitFile]:
    """Return changed files."""
    return [
        git_pb2.GitFile(
            path=text_to_proto(file.path),
            old_path=text_to_proto(file.old_path),
            state=STATE[file.state],
            added_lines=file.added_lines,
            deleted_lines=file.deleted_lines,
            binary=file.is_binary,
            staged=file.is_staged,
        )
        for file in files
    ]


def repository_to_proto(repository: Repository, scanned_at: datetime) -> git_pb2.GitRepository:
    """Return a repository with the time of its scan."""
    time = Timestamp()
    time.FromDatetime(scanned_at)
    return git_pb2.GitRepository(
        repository=text_to_proto(repository.directory),
        branch=text_to_proto(repository.branch),
        commit=repository.commit,
        upstream=text_to_proto(repository.upstream),
        ahead=repository.ahead,
        behind=repository.behind,
        origin_url=text_to_proto(repository.origin_url),
        files=files_to_proto(repository.files),
        omitted_files=repository.omitted_files,
        added_lines=repository.added_lines,
        deleted_lines=repository.deleted_lines,
        scanned_at=time,
        problem=text_to_proto(repository.problem)[:PROBLEM_CHARACTERS_MAX],
    )


def looked_to_proto(looked: Looked) -> git_pb2.GitRepository:
    """Return a watched repository."""
    return repository_to_proto(looked.repository, looked.scanned_at)


def checkpoint_to_proto(checkpoint: Checkpoint) -> git_pb2.GitCheckpoint:
    """Return a checkpoint."""
    return git_pb2.GitCheckpoint(
        ref=checkpoint.ref,
        repository=text_to_proto(checkpoint.directory),
        commit=checkpoint.commit,
        parent_commit=checkpoint.parent_commit,
        label=checkpoint.label,
        created_at=Timestamp(seconds=checkpoint.created_s),
    )
