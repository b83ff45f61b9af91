"""The bodies of requests about users and groups.

In a patch an absent field is not changed, and null removes its value.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from parley.identity import Role

Login = Annotated[
    str,
    msgspec.Meta(
        pattern="^[a-z0-9._-]{1,64}$", description="1 to 64 of a-z, 0-9, '.', '_' and '-'"
    ),
]
DisplayName = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Email = Annotated[str, msgspec.Meta(max_length=254)]
GroupName = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class NewUserInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /users."""

    login: Login
    role: Role
    display_name: DisplayName | None = None
    email: Email = ""


class UserPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /users/{user_id}."""

    login: Login | UnsetType = UNSET
    display_name: DisplayName | UnsetType = UNSET
    email: Email | UnsetType | None = UNSET
    role: Role | UnsetType = UNSET


class MePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /me."""

    display_name: DisplayName | UnsetType = UNSET
    email: Email | UnsetType | None = UNSET


class NewGroupInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /groups."""

    name: GroupName


class GroupPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /groups/{group_id}."""

    name: GroupName | UnsetType = UNSET
