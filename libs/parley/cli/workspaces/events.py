"""Events of a workspace as lines for people."""

from collections.abc import Iterable, Iterator
from typing import Any


def told(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each change, setup log line and warning, until the workspace is deleted.

    A stream that broke and was reopened begins again; lines are not yielded twice.
    """
    said, epoch, line = "", 0, 0
    for event in events:
        match event.get("type"):
            case "workspace":
                workspace = event["workspace"]
                if workspace["epoch"] != epoch:
                    epoch, line = workspace["epoch"], 0
                if (says := _state(workspace)) != said:
                    said = says
                    yield says
                if workspace["state"] == "deleted":
                    return
            case "log_line" if event["log_line"]["sequence"] > line:
                line = event["log_line"]["sequence"]
                yield f"  {event['log_line']['text']}"
            case "autostop_warning":
                deadline = event["autostop_warning"]["deadline"]
                yield f"It stops by itself at {deadline} unless something is done in it."


def _state(workspace: dict[str, Any]) -> str:
    failure = workspace.get("failure")
    why = f": {failure['message']}" if failure else ""
    return f"{workspace['name']} is {workspace['state']}{why}"
