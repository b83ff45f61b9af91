"""When schedules run and what a run changes, as values and rules."""
