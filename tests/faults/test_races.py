"""Every chatd dies while races are started or applied: row A36."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from parley.clock import SystemClock
from parley.testing.faultpoints import Action
from parley.testing.llm_mock import MockModels
from support.faults.lab import FaultLab
from support.faults.trials import RETRYABLE, Fault, faults

pytestmark = pytest.mark.slow

DEMO = "scripted"
OTHER = "mock:deltas=2"
TASK = "run: echo child > made"
HELD_S = 60.0
KNOWN_AFTER_S = 1.0  # Every process is notified of a new model.
RACES_PER_FAULT = 2
CANDIDATES = "SELECT chat_id::text FROM chat.race_candidates WHERE race_id = $1 ORDER BY position"
STARTED = "SELECT id::text FROM chat.chats WHERE parent_chat_id = $1::uuid ORDER BY id"
FORKS = "SELECT id::text FROM chat.workspaces WHERE parent_id = $1::uuid AND state <> 'deleted'"
READY = "SELECT count(*) FROM chat.workspaces WHERE state = 'ready' AND id = ANY($1::uuid[])"
#: A node holds the first fork of each race before its files are copied, or after.
STARTS = (
    pytest.param("prepare.placed", id="fork-begun", marks=pytest.mark.short),
    pytest.param("prepare.done", id="fork-made"),
)
#: A node holds a merge before it is decided, before it is carried out, and after.
APPLIES = (
    pytest.param("merge.staged", id="planned"),
    pytest.param("merge.decided", id="decided", marks=pytest.mark.short),
    pytest.param("merge.applied", id="applied", marks=pytest.mark.short),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that can be repeated with its key."""

    path: str
    body: dict[str, Any]
    key: str

    async def sent(self, lab: FaultLab) -> tuple[int, Any]:
        """Send it once; return the status, 0 without an answer, and the answer."""
        status, _, document = await lab.http("POST", self.path, self.body, self.key)
        return status, document

    async def answer(self, lab: FaultLab) -> Any:
        """Send it until it succeeds; a refusal that cannot be repeated is a failure."""

        async def answered() -> Any:
            status, document = await self.sent(lab)
            if status in (0, *RETRYABLE):
                return None
            assert 200 <= status < 300, document
            return document

        return await lab.until(answered, f"an answer of {self.path}")


def plain(word: str) -> str:
    """Return a word as names are written."""
    return "".join(filter(str.isalnum, word)).lower()


@asynccontextmanager
async def other_model(lab: FaultLab) -> AsyncIterator[None]:
    """Add a model that says something and changes nothing, until the end."""
    async with MockModels.serving(clock=SystemClock()) as mock:
        body = {"name": plain(lab.unique()), "type": "anthropic", "base_url": mock.url}
        made = await Request("/providers", body, lab.unique()).answer(lab)
        try:
            key = {"provider_id": made["id"], "key": "sk-of-a-test-0123456789"}
            await Request("/provider-keys", key, lab.unique()).answer(lab)
            model = {"provider_id": made["id"], "name": OTHER}
            await Request("/models", model, lab.unique()).answer(lab)
            await lab.sleep(KNOWN_AFTER_S)
            yield
        finally:
            await lab.http("DELETE", f"/providers/{made['id']}", None, lab.unique())


async def workspaces(fault: Fault) -> list[str]:
    """Return ready workspaces, one for each race, so that nodes prepare forks only."""
    lab = fault.lab
    template = {"name": plain(lab.unique()), "kind": "scratch"}
    made = await Request("/templates", template, lab.unique()).answer(lab)
    body = {"template_id": made["id"]}
    found = [
        str((await Request("/workspaces", body, lab.unique()).answer(lab))["id"])
        for _ in range(fault.size)
    ]

    async def are_ready() -> bool:
        ((count,),) = await lab.query(READY, found)
        return bool(count == len(found))

    await lab.until(are_ready, "workspaces")
    return found


def races_in(lab: FaultLab, workspace_ids: list[str]) -> list[Request]:
    body = {"prompt": TASK, "models": [DEMO, OTHER]}
    return [
        Request("/races", {**body, "workspace_id": each}, lab.unique()) for each in workspace_ids
    ]


async def kill_all_while_held(
    fault: Fault, point: str, requests: list[Request], subjects: list[str]
) -> None:
    """Send requests, and kill every chatd once a node holds as many of them at a point."""
    lab = fault.lab
    lab.points.arm(point, Action.HOLD, subjects=tuple(subjects))
    async with asyncio.TaskGroup() as tasks:
        sending = [tasks.create_task(request.answer(lab)) for request in requests]
        await fault.until_many_held(point, len(requests), HELD_S)
        for process in lab.processes():
            process.kill()
        for each in sending:
            each.cancel()
    fault.trial(len(requests))
    lab.points.disarm()
    await lab.until_whole()


async def until_ended(fault: Fault, race_id: str, workspace_id: str) -> list[str]:
    """Wait until the candidates of a race rest; note a problem unless each has one fork."""
    lab = fault.lab
    named = [row[0] for row in await lab.query(CANDIDATES, race_id)]
    started = [row[0] for row in await lab.query(STARTED, race_id)]
    forks = [row[0] for row in await lab.query(FORKS, workspace_id)]
    if len(named) != 2 or not sorted(named) == started == sorted(forks):
        fault.row.problems.append(f"{race_id}: candidates {named}, {started} in forks {forks}")
    await fault.until_all(lambda state: state.is_at_rest, "rest of candidates", chat_ids=named)
    return named


def files_of(lab: FaultLab, workspace_id: str) -> dict[str, str]:
    files = lab.workspace(workspace_id) / "files"
    return {path.name: path.read_text() for path in files.iterdir()}


@pytest.mark.row("A36")
@pytest.mark.parametrize("point", STARTS)
async def test_a36_a_race_whose_start_is_cut_by_a_kill_is_completed_by_its_repetition(
    lab: FaultLab, point: str
) -> None:
    async with other_model(lab):
        async for fault in faults(lab, chats=RACES_PER_FAULT):
            workspace_ids = await workspaces(fault)
            requests = races_in(lab, workspace_ids)
            await kill_all_while_held(fault, point, requests, [])
            for request, workspace_id in zip(requests, workspace_ids, strict=True):
                race = await request.answer(lab)
                assert (await request.answer(lab))["id"] == race["id"]
                first, second = await until_ended(fault, race["id"], workspace_id)
                for chat_id, expected in ((first, {"made": "child\n"}), (second, {})):
                    if files_of(lab, chat_id) != expected:
                        fault.row.problems.append(f"{chat_id}: {files_of(lab, chat_id)}")


@pytest.mark.row("A36")
@pytest.mark.parametrize("point", APPLIES)
async def test_a36_a_candidate_is_applied_once_though_all_processes_are_killed(
    lab: FaultLab, point: str
) -> None:
    async with other_model(lab):
        async for fault in faults(lab, chats=RACES_PER_FAULT):
            workspace_ids = await workspaces(fault)
            made = [await each.answer(lab) for each in races_in(lab, workspace_ids)]
            for race, workspace_id in zip(made, workspace_ids, strict=True):
                await until_ended(fault, race["id"], workspace_id)
            requests = [
                Request(f"/races/{race['id']}/apply", {"position": 1}, lab.unique())
                for race in made
            ]
            await kill_all_while_held(fault, point, requests, workspace_ids)
            for request, workspace_id in zip(requests, workspace_ids, strict=True):
                await require_applied(fault, request, workspace_id)


async def require_applied(fault: Fault, request: Request, workspace_id: str) -> None:
    """Repeat the application of a candidate; note a problem unless it was applied once."""
    for _ in range(2):
        told = await request.answer(fault.lab)
        applied = (told["report"]["applied"], told["report"]["merged_paths"])
        if applied != (True, ["made"]) or not told["race"]["applied_chat_id"]:
            fault.row.problems.append(f"{request.path}: {told}")
    if files_of(fault.lab, workspace_id) != {"made": "child\n"}:
        fault.row.problems.append(f"{workspace_id}: {files_of(fault.lab, workspace_id)}")
