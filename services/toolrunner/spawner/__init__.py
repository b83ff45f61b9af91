"""The process spawner: a single-threaded program that uses only the standard library and itself."""

from toolrunner.spawner.child import set_size
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import CHUNK_BYTES, Frames, frame
from toolrunner.spawner.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PROCESS_MARK,
    Seen,
    children_of,
    descendants,
    end_descendants,
    end_marked,
    mark_of_workspace,
    mark_on,
    open_directory_beneath,
    prctl,
    running_below,
    running_processes,
    send,
    words_of,
)
from toolrunner.spawner.program import SOCKET_NAME, group_name, kept_secret, main, socket_path
from toolrunner.spawner.session import VERSION

__all__ = [
    "CHUNK_BYTES",
    "PROCESS_MARK",
    "PR_SET_CHILD_SUBREAPER",
    "SOCKET_NAME",
    "VERSION",
    "ControlGroups",
    "Frames",
    "Seen",
    "children_of",
    "descendants",
    "end_descendants",
    "end_marked",
    "frame",
    "group_name",
    "kept_secret",
    "main",
    "mark_of_workspace",
    "mark_on",
    "open_directory_beneath",
    "prctl",
    "running_below",
    "running_processes",
    "send",
    "set_size",
    "socket_path",
    "words_of",
]
