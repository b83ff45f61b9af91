"""Workspaces of a real stack held in every state of their lives, and what must become of them."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import psutil

from parley.testing.faultpoints import Action
from support.faults.points import FaultPoints
from support.stack.faulty_stack import FaultyStack

SETTLED_S = 90.0
STATES = "SELECT id::text, state, is_removing FROM chat.workspaces WHERE id = ANY ($1::uuid[])"
DRIVEN = """
    SELECT count(*) FROM chat.workspaces WHERE state IN ('pending', 'preparing', 'stopping')
"""
KEPT = "SELECT id::text FROM chat.workspaces WHERE state <> 'deleted'"

#: Each state, and what a workspace is some time after everybody who died in it is back.
ENDS: Final[Mapping[str, str]] = {
    "pending": "failed",  # No node confines as strongly as it asks for.
    "preparing": "ready",
    "ready": "ready",
    "busy": "busy",
    "stopping": "stopped",
    "stopped": "stopped",
    "removing": "deleted",
    "deleted": "deleted",
    "failed": "failed",
}
MARK = "written before the crash"
SPAWNER = "import sys; sys.path.append(sys.argv.pop(1)); import toolrunner.spawner as s; s.main()"


@dataclass
class Lives:
    """Some workspaces in each state, held there until the crash.

    Attributes:
        watched: The stack.
        points: Where its node can be held.
        number: Workspaces in each state.
        ids: Their ids by state.
    """

    watched: FaultyStack
    points: FaultPoints
    number: int
    ids: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def node_directory(self) -> Path:
        """Where the node keeps everything."""
        (placements,) = self.watched.stack.home.root.rglob("placements.sqlite")
        return placements.parent

    async def lead(self) -> None:
        """Bring workspaces into every state; the last ones are held on their ways."""
        plain, strict, broken = (
            self._template(),
            self._template(sandbox_minimum="vm"),
            self._template(setup_script="exit 1"),
        )
        for state in ("ready", "busy", "stopping", "stopped", "removing", "deleted"):
            self.ids[state] = [self._create(plain) for _ in range(self.number)]
        self.ids["failed"] = [self._create(broken) for _ in range(self.number)]
        made = {each: "ready" for ids in self.ids.values() for each in ids}
        await self.until(made | dict.fromkeys(self.ids["failed"], "failed"))
        for state in ("ready", "busy", "stopping", "stopped"):
            for each in self.ids[state]:
                self._run(each, f"echo {MARK} > mark")
        for each in self.ids["busy"]:
            self._run(each, "exec sleep 600", is_background=True)
        for each in self.ids["stopped"]:
            self._ask("POST", f"/workspaces/{each}/stop", {})
        for each in self.ids["deleted"]:
            self._ask("DELETE", f"/workspaces/{each}")
        await self.until(
            {
                **dict.fromkeys(self.ids["stopped"], "stopped"),
                **dict.fromkeys(self.ids["deleted"], "deleted"),
                **dict.fromkeys(self.ids["busy"], "busy"),
            }
        )
        self._arm("stop.begun", "stopping")
        for each in self.ids["stopping"]:
            self._ask("POST", f"/workspaces/{each}/stop", {})
        self._arm("remove.begun", "removing")
        for each in self.ids["removing"]:
            self._ask("DELETE", f"/workspaces/{each}")
        await self._until_held("stop.begun", self.ids["stopping"])
        await self._until_held("remove.begun", self.ids["removing"])
        self.points.arm("prepare.placed", Action.HOLD)
        self.ids["preparing"] = [self._create(plain) for _ in range(self.number)]
        await self._until_held("prepare.placed", self.ids["preparing"])
        self.ids["pending"] = [self._create(strict) for _ in range(self.number)]

    async def seen(self) -> dict[str, set[str]]:
        """Return in which states the workspaces of each state are."""
        rows = await self._rows([each for ids in self.ids.values() for each in ids])
        return {state: {rows[each] for each in ids} for state, ids in self.ids.items()}

    async def until(self, wanted: Mapping[str, str]) -> None:
        """Wait until workspaces are where they should be."""
        deadline = time.monotonic() + SETTLED_S
        while (rows := await self._rows(list(wanted))) != wanted:
            late = {each: state for each, state in rows.items() if state != wanted[each]}
            assert time.monotonic() < deadline, f"still {late}, not {wanted}"
            await self.watched.pause(0.1)

    async def until_converged(self, *, survives: bool) -> None:
        """Wait until everything is where it was going.

        Args:
            survives: Whether processes in workspaces outlived the crash.
        """
        ends = {**ENDS, "busy": "busy" if survives else "ready"}
        await self.until({each: ends[state] for state, ids in self.ids.items() for each in ids})

    async def leaks(self) -> list[str]:
        """Return what was left behind, as sentences; nothing is the right answer."""
        found = []
        connection = self.watched.connection
        if await connection.fetchval(DRIVEN):
            found.append("somebody still has something to do")
        kept = {row[0] for row in await connection.fetch(KEPT)}
        there = {each.name for each in (self.node_directory / "workspaces").iterdir()}
        found += [f"{each} is left on the node" for each in there - kept]
        found += [f"{each} runs on the node" for each in self._running_on_node() - kept]
        trash = self.node_directory / "trash"
        if trash.exists() and any(trash.iterdir()):
            found.append("something is left in the trash of the node")
        return found

    def losses(self) -> list[str]:
        """Return workspaces whose files should be there and are not."""
        marked = ("ready", "busy", "stopping", "stopped")
        ids = [each for state in marked for each in self.ids[state]]
        return [each for each in ids if not self._has_mark(each)]

    async def usable(self) -> None:
        """Require that what should run does, and that what was stopped starts with its files."""
        for each in self.ids["stopped"] + self.ids["stopping"]:
            self._ask("POST", f"/workspaces/{each}/start", {})
        again = self.ids["stopped"] + self.ids["stopping"]
        await self.until(dict.fromkeys(again, "ready"))
        for each in (*again, *self.ids["ready"], *self.ids["preparing"]):
            self._run(each, "test -e mark || touch mark")

    async def remove(self) -> None:
        """Remove everything."""
        self.points.disarm()
        ids = [each for state in self.ids.values() for each in state]
        for each in ids:
            self._ask("DELETE", f"/workspaces/{each}")
        await self.until(dict.fromkeys(ids, "deleted"))

    def _arm(self, point: str, state: str) -> None:
        self.points.arm(point, Action.HOLD, subjects=tuple(self.ids[state]))

    async def _until_held(self, point: str, ids: list[str]) -> None:
        deadline = time.monotonic() + SETTLED_S
        while not set(ids) <= self.points.at(point):
            assert time.monotonic() < deadline, f"nobody came to {point}"
            await self.watched.pause(0.1)

    async def _rows(self, ids: list[str]) -> dict[str, str]:
        rows = await self.watched.connection.fetch(STATES, ids)
        return {row["id"]: "removing" if row["is_removing"] else row["state"] for row in rows}

    def _template(self, **fields: object) -> str:
        body = {"name": f"t{time.monotonic_ns()}", "kind": "scratch", **fields}
        return str(self._ask("POST", "/templates", body)["id"])

    def _create(self, template_id: str) -> str:
        return str(self._ask("POST", "/workspaces", {"template_id": template_id})["id"])

    def _run(self, workspace_id: str, command: str, *, is_background: bool = False) -> None:
        path = f"/chats/{workspace_id}/processes"
        started = self._ask("POST", path, {"command": command, "background": is_background})
        if not is_background:
            ended = self._ask("GET", f"{path}/{started['id']}/output?wait=20")
            assert ended["process"]["exit"]["exit_code"] == 0, ended

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self.watched.request(method, path, body)

    def _has_mark(self, workspace_id: str) -> bool:
        mark = self.node_directory / "workspaces" / workspace_id / "files" / "mark"
        return mark.exists() and mark.read_text() == f"{MARK}\n"

    def on_node(self) -> list[psutil.Process]:
        """Return every process that has to do with the directory of the node."""
        mark = str(self.node_directory)
        found = []
        for process in self.watched.stack.strangers():
            with suppress(psutil.Error):
                words = [*process.cmdline(), process.cwd(), process.environ().get("HOME", "")]
                if any(mark in word for word in words):
                    # Whoever started it knows no directory, and is of the node as well.
                    above = [each for each in process.parents() if SPAWNER in each.cmdline()]
                    found += [process, *process.children(recursive=True), *above]
        return list(dict.fromkeys(found))

    def _running_on_node(self) -> set[str]:
        """Return the ids of workspaces in which something runs, by the directory it runs in."""
        found = set()
        for process in psutil.process_iter():
            try:
                parts = Path(process.cwd()).parts
            except (psutil.Error, OSError):
                continue
            if "workspaces" in parts and str(self.node_directory) in process.cwd():
                found.add(parts[parts.index("workspaces") + 1])
        return found
