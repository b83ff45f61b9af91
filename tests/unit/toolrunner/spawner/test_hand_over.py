"""What a spawner sets back when a new service takes its processes over."""

import os
import selectors
import socket
from pathlib import Path

from toolrunner.spawner.adoption import AdoptionSocket
from toolrunner.spawner.children import ChildProcesses
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import FrameChannel
from toolrunner.spawner.process_index import ProcessIndex
from toolrunner.spawner.session import SpawnerSession


def test_a_workspace_that_gave_way_is_measured_anew_by_the_service_that_takes_over(
    tmp_path: Path,
) -> None:
    groups = ControlGroups(str(tmp_path))
    idle = {name: tmp_path / name / "cpu.idle" for name in ("busy", "calm")}
    for name, path in idle.items():
        groups.make(name, "process")
        path.write_text("0")
    own, peer = socket.socketpair()
    with own, peer, socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waits:
        service = FrameChannel(own)
        children = ChildProcesses(service, waits, groups, (64, 64), ProcessIndex(groups))
        adoption_socket = AdoptionSocket(listener, "secret", waits)
        session = SpawnerSession(service, children, waits, adoption_socket, 0.0)
        session.do({"op": "give_way", "workspace": "busy", "yields": True})
        before = {name: path.read_text() for name, path in idle.items()}
        session.do({"op": "adopt", "number": 1})
        told = os.read(peer.fileno(), 4096)
    after = {name: path.read_text() for name, path in idle.items()}
    assert (before, after) == ({"busy": "1", "calm": "0"}, {"busy": "0", "calm": "0"})
    assert b'"number":1' in told.replace(b" ", b"")
