"""Maps errors of schedules to gRPC problems."""

from chatd.schedules.domain.schedule import ScheduleEnded, TooManySchedules
from parley.rpc import ErrorTable, Problem


def _too_many_schedules(error: TooManySchedules) -> Problem:
    return Problem.of(
        "TOO_MANY_SCHEDULES",
        f"You have {error.schedules_max} schedules already; delete one first.",
        {"schedules_max": str(error.schedules_max)},
    )


def _schedule_ended(error: ScheduleEnded) -> Problem:
    return Problem.of(
        "SCHEDULE_ENDED",
        "The schedule has no more runs; make another one.",
        {"schedule_id": error.schedule_id},
    )


SCHEDULE_ERRORS: ErrorTable = {
    TooManySchedules: _too_many_schedules,
    ScheduleEnded: _schedule_ended,
}
