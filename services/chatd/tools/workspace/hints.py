"""Hints for a model after toolrunner refused a request."""

from collections.abc import Mapping
from typing import Final

from parley.rpc import Problem

OTHER_HINT: Final = "Change the call, or go on without it and say so."

HINTS: Final[Mapping[str, str]] = {
    "PROCESS_NOT_FOUND": "process_list shows the processes of this chat with their ids; what ended "
    "over an hour ago, or before the last 200 of the workspace, has expired with its output.",
    "PROCESS_NOT_RUNNING": "It ended already; process_output with this process_id shows how.",
    "NOT_ATTACHABLE": "Start it again by execute with keep_stdin_open, or with tty for keys.",
    "TOO_MANY_PROCESSES": "End some first: process_list, then process_signal.",
    "OUTPUT_GONE": "Read on without since; what is older cannot be read any more.",
    "INVALID_PATTERN": "Correct the pattern; search_files takes plain text with literal.",
    "WORKDIR_NOT_FOUND": "list_files shows what there is; leave workdir out for the root.",
    "OUTSIDE_WORKSPACE": "Use a path inside the workspace, best relative to its root.",
    "PATH_FORBIDDEN": "Choose another path; this one may not be touched.",
    "READ_ONLY": "Nothing may be written in this mode; say what you would change instead.",
    "WRONG_PATH_KIND": "list_files shows what a path is: a file, a directory, a link or neither.",
    "FILE_CHANGED": "Read the file again with read_file, then decide anew with its new etag.",
    "NOTHING_TO_UNDO": "No tool of this chat changed it lately; edit the file instead.",
    "PATH_EXISTS": "Leave create_only out to replace the file, or choose another path.",
    "FILE_TOO_LARGE": "Work on a part of it, or with a command by execute.",
    "SANDBOX_TOO_WEAK": "This cannot be run safely here; tell the user.",
    "WORKSPACE_NOT_READY": "The workspace does not run; tell the user.",
    "WORKSPACE_NOT_FOUND": "This chat has no workspace; tell the user.",
    "NODE_FULL": "Delete what is not needed in the workspace, or tell the user.",
    "UNIMPLEMENTED": "This workspace does not offer it; execute may do the same.",
    "STALE_OWNER": "Another process took over this chat; nothing is to be done.",
    "INVALID_REQUEST": "Correct the arguments.",
}


def hint_for(problem: Problem) -> str:
    """Return the hint for the next step after a refusal."""
    match problem.reason:
        case "PATH_NOT_FOUND":
            near = problem.metadata.get("suggestions", "").splitlines()
            if not near:
                return "list_files or find_files shows what is."
            return f"Did you mean {' or '.join(near)}?"
        case "PAST_END":
            lines = problem.metadata.get("lines", "")
            return f"The file has {lines} lines; use a smaller offset." if lines else OTHER_HINT
        case "INVALID_REQUEST" if "process_id" in problem.message:
            return HINTS["PROCESS_NOT_FOUND"]
        case reason:
            return HINTS.get(reason, OTHER_HINT)
