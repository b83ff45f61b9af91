"""Conversion of schedules and runs between rows and values."""

import asyncpg

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.schedules.domain.schedule import (
    MissedRuns,
    Run,
    RunOutcome,
    Schedule,
    ScheduleState,
    Task,
    Timing,
)

COLUMNS = """s.id, s.owner_id, s.owner_role, s.name, s.text, s.chat_id, s.model_id,
    s.reasoning_effort, s.mode, s.workspace_id, s.is_unattended, s.at, s.cron, s.time_zone,
    s.missed_runs, s.ends_at, s.runs_max, s.state, s.pause_reason, s.next_run_at, s.runs_count,
    s.failures_count, s.request_hash, s.created_at, s.version"""


def schedule_of(row: asyncpg.Record, last_run: Run | None = None) -> Schedule:
    """Return the schedule of a row with `COLUMNS`."""
    return Schedule(
        id=str(row["id"]),
        owner=Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
        name=row["name"],
        timing=Timing(row["at"], row["cron"], row["time_zone"]),
        task=Task(
            row["text"],
            str(row["chat_id"] or ""),
            row["model_id"],
            ReasoningEffort(row["reasoning_effort"]),
            ChatMode(row["mode"]),
            str(row["workspace_id"] or ""),
            row["is_unattended"],
        ),
        missed_runs=MissedRuns(row["missed_runs"]),
        ends_at=row["ends_at"],
        runs_max=row["runs_max"],
        state=ScheduleState(row["state"]),
        next_run_at=row["next_run_at"],
        created_at=row["created_at"],
        pause_reason=row["pause_reason"],
        runs_count=row["runs_count"],
        failures_count=row["failures_count"],
        last_run=last_run,
        version=row["version"],
    )


def run_of(row: asyncpg.Record) -> Run:
    """Return the run of a row."""
    return Run(
        row["planned_at"],
        row["begun_at"],
        RunOutcome(row["outcome"]),
        str(row["run_chat_id"] or ""),
        row["error"],
    )


def edited_values(schedule: Schedule) -> tuple[object, ...]:
    """Return the values of an edited row, after its owner and id."""
    task, timing = schedule.task, schedule.timing
    return (
        schedule.name,
        task.text,
        task.chat_id or None,
        task.model_id,
        task.reasoning_effort,
        task.mode,
        task.workspace_id or None,
        task.is_unattended,
        timing.at,
        timing.cron,
        timing.time_zone,
        schedule.missed_runs,
        schedule.ends_at,
        schedule.runs_max,
        schedule.state,
        schedule.next_run_at,
    )


def inserted(schedule: Schedule, request_hash: bytes) -> tuple[object, ...]:
    """Return the values of a new row."""
    task, timing = schedule.task, schedule.timing
    return (
        schedule.id,
        schedule.owner.id,
        schedule.owner.role,
        schedule.name,
        task.text,
        task.chat_id or None,
        task.model_id,
        task.reasoning_effort,
        task.mode,
        task.workspace_id or None,
        task.is_unattended,
        timing.at,
        timing.cron,
        timing.time_zone,
        schedule.missed_runs,
        schedule.ends_at,
        schedule.runs_max,
        schedule.next_run_at,
        request_hash,
    )
