"""Credentials of a node that fetches public repositories only."""

from collections.abc import Mapping

from toolrunner.primitives.domain import WorkspaceId


class NoCredentials:
    """Only public repositories can be fetched."""

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return no variables."""
        return {}
