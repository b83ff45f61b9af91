"""The bodies of requests about secrets for workspaces."""

from enum import StrEnum
from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Words = Annotated[str, msgspec.Meta(max_length=500)]
Short = Annotated[str, msgspec.Meta(max_length=255)]
Value = Annotated[str, msgspec.Meta(max_length=64 * 1024)]
Hosts = Annotated[tuple[Short, ...], msgspec.Meta(max_length=32)]
GrantedNames = Annotated[tuple[Name, ...], msgspec.Meta(max_length=32)]


class SecretDelivery(StrEnum):
    """How a secret gets to where it is used."""

    PROXY = "proxy"
    GIT = "git"
    ENVIRONMENT = "environment"


class NewSecret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret to store; an empty value keeps the stored one."""

    name: Name
    value: Value = ""
    hosts: Hosts = ()
    delivery: SecretDelivery = SecretDelivery.PROXY
    description: Words = ""
    username: Short = ""
    header: Annotated[str, msgspec.Meta(max_length=100)] = ""
    shared: bool = False


class GrantsInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All secrets that a workspace may use, by name."""

    secret_names: GrantedNames
