from parley.cli.chats.monitor import row_of

MONITOR = {
    "id": "m",
    "state": "waiting",
    "pattern": None,
    "command": "npm run dev",
    "cause": None,
    "detail": None,
    "reason": None,
}


def test_a_monitor_is_a_row_with_what_happened() -> None:
    assert row_of(MONITOR) == ("m", "waiting", "its end", "npm run dev", "-")
    woken = {
        **MONITOR,
        "state": "woken",
        "pattern": "ready",
        "cause": "matched",
        "detail": "ready\x1b",
    }
    assert row_of(woken)[2:] == ("ready", "npm run dev", "matched ready")
