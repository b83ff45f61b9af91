"""What `parley workspace watch` says of a workspace."""

from typing import Any

from parley.cli.commands.workspace import event_lines


def state(name: str, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"type": "workspace", "workspace": {"name": "w", "state": name, "epoch": epoch, **more}}


def line(sequence: int, text: str) -> dict[str, Any]:
    return {"type": "log_line", "log_line": {"sequence": sequence, "text": text}}


def test_states_lines_and_warnings_are_told_each_once_until_it_is_gone() -> None:
    warning = {"type": "autostop_warning", "autostop_warning": {"deadline": "2026-01-01T02:00:00Z"}}
    events = [
        state("preparing"),
        line(1, "cloning"),
        # The stream broke, and began anew.
        state("preparing"),
        line(1, "cloning"),
        line(2, "done"),
        state("ready"),
        state("ready"),
        warning,
        state("stopped"),
        # The lines of another start are others.
        state("preparing", 2),
        line(1, "starting"),
        state("failed", 2, failure={"kind": "setup", "message": "exit code 1"}),
        {"type": "unknown"},
        state("deleted", 2),
        state("never told"),
    ]
    assert list(event_lines(events)) == [
        "w is preparing",
        "  cloning",
        "  done",
        "w is ready",
        "It stops by itself at 2026-01-01T02:00:00Z unless something is done in it.",
        "w is stopped",
        "w is preparing",
        "  starting",
        "w is failed: exit code 1",
        "w is deleted",
    ]
