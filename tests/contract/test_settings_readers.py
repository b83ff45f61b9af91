"""Every setting that is accepted is honoured: each has a reader, and each accepted field is one."""

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

from google.protobuf.descriptor import Descriptor

import chatd.settings
import gateway.settings
import mcpgateway.settings
import toolrunner.settings
from chatd.models.domain.preferences import AdvisorSettings, InstallationSettings, UserSettings
from parley.api.chat.v1 import settings_pb2
from support.source.modules import modules_below, nodes_of

SERVICES = Path("services")
#: Field -> the module that acts on it; reading it only to show it does not count.
READERS = {
    "system_prompt": "chatd/chats/rpc/defaults.py",
    "include_default_system_prompt": "chatd/models/domain/preferences.py",
    "plan_mode_instructions": "chatd/turns/engine/setups.py",
    "compact_on_final_step": "chatd/turns/engine/setups.py",
    "workspace_ttl_ms": "chatd/workspaces/wiring.py",
    "auto_archive_days": "chatd/retention/domain/retention.py",
    "retention_days": "chatd/retention/domain/retention.py",
    "retention_notice_days": "chatd/retention/domain/retention.py",
    "running_chats_per_user_max": "chatd/app.py",
    "untrusted_repositories": "chatd/workspaces/engine/reach.py",
    "advisor": "chatd/turns/engine/setups.py",
    "fallback_model_id": "chatd/turns/engine/setups.py",
    "custom_prompt": "chatd/turns/engine/setups.py",
    "compaction_threshold_percents": "chatd/models/domain/preferences.py",
    "own_model_overrides_allowed": "chatd/models/domain/own_model_choice.py",
    "root_model": "chatd/models/domain/own_model_choice.py",
    "general_model": "chatd/models/domain/own_model_choice.py",
    "explore_model": "chatd/models/domain/own_model_choice.py",
    "favourite_model_ids": "chatd/models/rpc/models.py",
    "hidden_model_ids": "chatd/models/rpc/convert.py",
}
#: Methods of the settings themselves -> the module that calls them.
DERIVED = {
    "has_default_prompt": "chatd/turns/domain/system_prompt.py",
    "threshold_percent": "chatd/turns/engine/setups.py",
}
PROCESS_SETTINGS = {
    "chatd": chatd.settings.Settings,
    "gateway": gateway.settings.GatewaySettings,
    "mcpgateway": mcpgateway.settings.Settings,
    "toolrunner": toolrunner.settings.Settings,
}


@cache
def attributes_read(path: Path) -> set[str]:
    """Return the names of all attributes that a module reads."""
    return {
        node.attr
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def names_of(descriptor: Descriptor) -> set[str]:
    return {field.name for field in descriptor.fields}


def test_every_setting_of_the_installation_and_of_users_has_a_reader() -> None:
    stored = {field.name for kind in (InstallationSettings, UserSettings) for field in fields(kind)}
    assert stored == READERS.keys()
    unread = {
        name
        for name, module in (READERS | DERIVED).items()
        if name not in attributes_read(SERVICES / module)
    }
    assert unread == set()


def test_the_fields_of_the_contract_are_the_stored_ones() -> None:
    installation = {field.name for field in fields(InstallationSettings)}
    # The advisor has methods of its own, because they set its model as well.
    assert names_of(settings_pb2.InstallationSettings.DESCRIPTOR) | {"advisor"} == installation
    advisor = {field.name.removeprefix("is_") for field in fields(AdvisorSettings)}
    model = {"model_id", "reasoning_effort"}
    assert names_of(settings_pb2.AdvisorSettings.DESCRIPTOR) == advisor | model
    user = {field.name for field in fields(UserSettings)}
    # So have the own models of a user.
    own_models = {"root_model", "general_model", "explore_model"}
    assert names_of(settings_pb2.UserSettings.DESCRIPTOR) | own_models == user


def test_every_setting_of_a_process_has_a_reader() -> None:
    unread = set()
    for service, settings in PROCESS_SETTINGS.items():
        read = set[str]()
        for module in modules_below(f"services/{service}", "libs/parley/process"):
            read |= attributes_read(module)
        unread |= {f"{service}: {each.name}" for each in fields(settings) if each.name not in read}
    assert unread == set()
