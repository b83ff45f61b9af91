"""Users take turns with the starts of the spawner, and other requests keep their order."""

import os
import selectors
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolrunner.spawner.children import ChildProcesses
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import FrameChannel, frame
from toolrunner.spawner.process_index import ProcessIndex
from toolrunner.spawner.session import SpawnerSession

QUIT = {"op": "quit"}


@dataclass
class RecordedChildProcesses(ChildProcesses):
    """Starts nothing, and records what is requested; during a start another request may arrive."""

    requests: list[str] = field(default_factory=list)
    peer: socket.socket = field(kw_only=True)
    arriving: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def start(self, message: dict[str, Any]) -> None:
        self.requests.append(message["id"])
        if message["id"] in self.arriving:
            self.peer.sendall(frame(self.arriving[message["id"]]))

    def end_workspace(self, message: dict[str, Any]) -> None:
        self.requests.append(f"end {message['workspace']}")

    def forget(self, process_id: str) -> None:
        self.requests.append(f"forget {process_id}")


def start(process_id: str, workspace: str, user: str = "") -> dict[str, Any]:
    return {"op": "start", "number": 1, "id": process_id, "workspace": workspace, "user": user}


def handled(*requests: dict[str, Any], **arriving: dict[str, Any]) -> list[str]:
    """Return what a spawner did, in order; some requests arrive during starts, by their ids."""
    own, peer = socket.socketpair()
    wakeup_fd, wakeup_end = os.pipe()
    with own, peer, selectors.DefaultSelector() as waits:
        groups, service = ControlGroups(""), FrameChannel(own)
        index = ProcessIndex(groups)
        children = RecordedChildProcesses(service, waits, groups, (64, 64), index, peer=peer)
        children.arriving = arriving
        peer.sendall(b"".join(map(frame, requests)))
        if not arriving:
            peer.shutdown(socket.SHUT_WR)
        SpawnerSession(service, children, waits, None, 0.0).run(wakeup_fd)
        os.close(wakeup_fd)
        os.close(wakeup_end)
        return children.requests


def test_a_start_waits_for_one_start_of_each_other_user() -> None:
    many = [start(f"a{number}", f"w{number}", "ann") for number in range(4)]
    later = {"a0": start("b1", "v", "bob"), "a1": start("b2", "v", "bob"), "a3": QUIT}
    assert handled(*many, **later) == ["a0", "a1", "b1", "a2", "b2", "a3"]


def test_starts_without_a_user_take_turns_with_those_of_other_workspaces() -> None:
    many = [start(f"a{number}", "w") for number in range(4)]
    assert handled(*many, a0=start("b", "v"), a3=QUIT) == ["a0", "a1", "b", "a2", "a3"]


def test_a_request_finds_what_was_started_before_it() -> None:
    starts = [start(f"a{number}", f"w{number}", "ann") for number in range(4)]
    end = {"op": "end_workspace", "workspace": "w2", "number": 2}
    forget = {"op": "forget", "id": "a1"}
    done = handled(*starts, end, forget, a3=QUIT)
    assert done == ["a2", "end w2", "a1", "forget a1", "a0", "a3"]


def test_what_a_killed_service_asked_for_is_started_before_another_one_takes_over() -> None:
    starts = [start(f"a{number}", f"w{number}", "ann") for number in range(3)]
    assert handled(*starts) == ["a0", "a1", "a2"]
