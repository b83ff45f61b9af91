from parley.cli.chats.goal import lines_of

GOAL = {
    "state": "active",
    "reason": None,
    "turns_count": 2,
    "turns_max": 20,
    "cost_micros": 1_230_000,
    "check_command": "make test",
    "check_output": "",
    "judge_model_id": None,
    "verdict": None,
}


def test_a_goal_is_told_with_its_budget_and_its_last_check() -> None:
    expected = ["active", "2 of 20 turns, 1.23 US dollars", "check: make test"]
    assert lines_of(GOAL) == expected
    halted = {**GOAL, "state": "paused", "reason": "No key.", "check_output": "1 failed"}
    assert lines_of(halted) == ["paused: No key.", *expected[1:], "1 failed"]
    judged = {**GOAL, "check_command": "", "judge_model_id": "m", "verdict": "No tests."}
    assert lines_of(judged)[2:] == ["judge: m", "No tests."]
