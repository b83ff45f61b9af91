"""Names used by identity: services, roles, and ids of users."""

from enum import StrEnum
from typing import NewType

UserId = NewType("UserId", str)


class ServiceName(StrEnum):
    """A Parley service, as caller, issuer and audience."""

    GATEWAY = "gateway"
    CHATD = "chatd"
    TOOLRUNNER = "toolrunner"
    MCPGATEWAY = "mcpgateway"


class Role(StrEnum):
    """The role of a user in the installation."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    AUDITOR = "auditor"
