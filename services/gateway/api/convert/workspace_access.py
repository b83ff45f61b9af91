"""Converts processes, files and repositories of workspaces to JSON, and requests to protos."""

from gateway.api.convert.parts import Json, enum_names, time_of
from gateway.api.inputs.workspace_access import NewProcess, StdinInput, StdinMode
from gateway.http.request_body import invalid_field
from parley.api.workspace.v1 import (
    file_pb2,
    git_pb2,
    process_pb2,
    sandbox_pb2,
)
from parley.api.workspace.v1 import workspace_access_service_pb2 as api

PROCESS_STATE = enum_names(process_pb2.ProcessState, "PROCESS_STATE_")
LOST_REASON = enum_names(process_pb2.ProcessLostReason, "PROCESS_LOST_REASON_")
STDIN_MODE = enum_names(process_pb2.StdinMode, "STDIN_MODE_")
WAIT_REASON = enum_names(process_pb2.WaitReason, "WAIT_REASON_")
SANDBOX_LEVEL = enum_names(sandbox_pb2.SandboxLevel, "SANDBOX_LEVEL_")
PATH_TYPE = enum_names(file_pb2.PathType, "PATH_TYPE_")
GIT_FILE_STATE = enum_names(git_pb2.GitFileState, "GIT_FILE_STATE_")


def process_to_json(process: process_pb2.Process) -> Json:
    """Convert a process."""
    return {
        "id": process.process_id,
        "chat_id": process.chat_id or None,
        "command": process.command,
        "workdir": process.workdir,
        "background": process.background,
        "stdin_mode": STDIN_MODE.get(process.stdin_mode) or StdinMode.CLOSED,
        "state": PROCESS_STATE.get(process.state),
        "exit": _exit_to_json(process.exit) if process.HasField("exit") else None,
        "start_error": process.start_error or None,
        "lost_reason": LOST_REASON.get(process.lost_reason),
        "pid": process.pid or None,
        "running_members": process.running_members,
        "output_bytes": process.output_bytes,
        "log_path": process.log_path or None,
        "log_start_bytes": process.log_start_bytes,
        "sandbox_level": SANDBOX_LEVEL.get(process.sandbox.level),
        "started_at": time_of(process, "started_at"),
        "ended_at": time_of(process, "ended_at"),
        "wall_duration_ms": process.wall_duration_ms,
    }


def waited_to_json(waited: api.WaitWorkspaceOutputResponse) -> Json:
    """Convert the result of a wait."""
    output = waited.output
    left_out = output.truncation
    return {
        "process": process_to_json(waited.process),
        "text": output.text,
        "next_cursor": output.next_cursor,
        "matched_line": output.matched_line or None,
        "truncation": {
            "original_bytes": left_out.original_bytes,
            "retained_bytes": left_out.retained_bytes,
            "omitted_bytes": left_out.omitted_bytes,
            "omitted_lines": left_out.omitted_lines,
            "clipped_lines": left_out.clipped_lines,
            "expired_bytes": left_out.expired_bytes,
        }
        if output.HasField("truncation")
        else None,
        "reason": WAIT_REASON.get(waited.reason),
    }


def entry_to_json(entry: file_pb2.DirectoryEntry) -> Json:
    """Convert an entry of a directory."""
    return {
        **path_to_json(entry.info),
        "depth": entry.depth,
        "omitted_entries": entry.omitted_entries,
    }


def path_to_json(info: file_pb2.PathInfo) -> Json:
    """Convert the metadata of a path."""
    return {
        "path": info.path,
        "type": PATH_TYPE.get(info.type),
        "size_bytes": info.size_bytes,
        "mode": f"{info.mode:04o}",
        "modified_at": time_of(info, "modified_at"),
        "link_target": info.link_target or None,
    }


def repository_to_json(repository: git_pb2.GitRepository) -> Json:
    """Convert a repository with its differences from the last commit."""
    return {
        "repository": repository.repository,
        "branch": repository.branch or None,
        "commit": repository.commit or None,
        "upstream": repository.upstream or None,
        "ahead": repository.ahead,
        "behind": repository.behind,
        "origin_url": repository.origin_url or None,
        "files": [git_file_to_json(file) for file in repository.files],
        "omitted_files": repository.omitted_files,
        "added_lines": repository.added_lines,
        "deleted_lines": repository.deleted_lines,
        "scanned_at": time_of(repository, "scanned_at"),
        "problem": repository.problem or None,
    }


#: The types of events that the stream of a chat's repositories sends.
GIT_EVENTS = ("git_snapshot", "git_changed", "git_removed")


def git_event(told: api.WatchWorkspaceGitResponse) -> tuple[str, Json] | None:
    """Return the type and the JSON of an event about repositories."""
    match told.WhichOneof("kind"):
        case "snapshot":
            repositories = [*map(repository_to_json, told.snapshot.repositories)]
            return "git_snapshot", {"repositories": repositories}
        case "changed":
            return "git_changed", repository_to_json(told.changed)
        case "removed":
            return "git_removed", {"repository": told.removed}
        case _:
            return None


def git_file_to_json(file: git_pb2.GitFile) -> Json:
    """Convert a changed file."""
    return {
        "path": file.path,
        "old_path": file.old_path or None,
        "state": GIT_FILE_STATE.get(file.state),
        "added_lines": file.added_lines,
        "deleted_lines": file.deleted_lines,
        "binary": file.binary,
        "staged": file.staged,
    }


def checkpoint_to_json(checkpoint: git_pb2.GitCheckpoint) -> Json:
    """Convert a checkpoint of a repository."""
    return {
        "ref": checkpoint.ref,
        "repository": checkpoint.repository,
        "commit": checkpoint.commit,
        "parent_commit": checkpoint.parent_commit or None,
        "label": checkpoint.label,
        "created_at": time_of(checkpoint, "created_at"),
    }


def spec_to_proto(body: NewProcess) -> process_pb2.ProcessSpec:
    """Convert the spec of a process.

    Raises:
        HttpProblem: Both alternatives are given, or none (422).
    """
    spec = process_pb2.ProcessSpec(
        workdir=body.workdir,
        environment=body.environment,
        stdin_mode=_stdin_mode(body),
        stdin=body.stdin.encode(),
        background=body.background,
        timeout_ms=body.timeout_ms,
    )
    if body.terminal is not None:
        spec.terminal.rows, spec.terminal.columns = body.terminal.rows, body.terminal.columns
    if isinstance(body.command, str) and not isinstance(body.argv, tuple):
        spec.command = body.command
    elif isinstance(body.argv, tuple) and not isinstance(body.command, str):
        spec.argv.arguments.extend(body.argv)
    else:
        raise invalid_field("/command", "Give either command or argv.")
    return spec


def stdin_bytes(body: StdinInput) -> bytes:
    """Return the bytes to write.

    Raises:
        HttpProblem: Both alternatives are given, or there is nothing to do (422).
    """
    if isinstance(body.text, str) and isinstance(body.data, bytes):
        raise invalid_field("/data", "Give either text or data.")
    data = body.text.encode() if isinstance(body.text, str) else body.data or b""
    if not data and not body.end_of_input:
        raise invalid_field("/text", "Give text or data to write, or end_of_input.")
    return data


def _stdin_mode(body: NewProcess) -> "process_pb2.StdinMode.ValueType":
    usual = StdinMode.CLOSED if body.terminal is None else StdinMode.TERMINAL
    mode = body.stdin_mode or usual
    return process_pb2.StdinMode.Value(f"STDIN_MODE_{mode.name}")


def _exit_to_json(exit: process_pb2.ProcessExit) -> Json:
    return {
        "exit_code": exit.exit_code if exit.HasField("exit_code") else None,
        "signal": exit.signal or None,
        "shell_exit_code": exit.shell_exit_code,
        "oom_killed": exit.oom_killed,
        "timed_out": exit.timed_out,
        "pipes_open": exit.pipes_open,
        "exceeded": exit.exceeded or None,
    }
