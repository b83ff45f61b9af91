"""The message for git and its user when a host asks for a password."""

from toolrunner.egress.domain.grants import Delivery, grant_for
from toolrunner.egress.domain.hosts import Place
from toolrunner.egress.domain.rules import Rules

A_REPOSITORY = "/repository/info/refs?service=git-upload-pack"


def explained(rules: Rules, place: Place) -> str:
    """Return why a host asks for a password, and what to do."""
    grant = grant_for(rules.grants, place, A_REPOSITORY)
    if grant is None:
        return (
            f"No secret for {place} is granted to this workspace. Its owner can store one with "
            f"`parley secret put NAME --host {place} --delivery {Delivery.GIT}` and grant it with "
            f"`parley secret grant {rules.workspace_id} NAME`."
        )
    return (
        f"The secret {grant.name!r} was added for {place} and the host did not accept it. It "
        "may have expired, or lack the right; its owner can store a new value."
    )
