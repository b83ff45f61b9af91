"""Results of workspace servers: what cannot be kept becomes a part that says so."""

from typing import Any

from chatd.workspace_servers.clients.server_results import call_result


def nested() -> dict[str, Any]:
    """Return an object that is deeper than an encoder goes."""
    found: dict[str, Any] = {}
    for _ in range(100_000):
        found = {"a": found}
    return found


def test_structured_content_that_is_too_deep_is_left_out() -> None:
    (part,) = call_result({"structuredContent": nested()}).parts
    assert "was left out" in part.text.text
