"""Every action of the audit log is documented, and recorded somewhere."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.api.contract import bindings
from parley.api.contract.v1 import options_pb2
from parley.audit_log import AuditAction as Action
from support.source.modules import ROOT, modules_below, source_of, tracked_modules

DOCUMENT = ROOT / "docs" / "audit-log.md"
ROW = re.compile(r"^\| (`[a-z_]+\.[a-z_]+`.*?) \|", re.MULTILINE)

#: Methods by which administrators change something -> what is recorded of it.
RECORDED: Final[Mapping[str, Action]] = {
    "AccountExportService.CreateAccountExport": Action.ACCOUNT_EXPORT_REQUESTED,
    "ApiKeyService.CreateApiKey": Action.API_KEY_CREATED,
    "ApiKeyService.RevokeApiKey": Action.API_KEY_REVOKED,
    "ApprovalService.CreateApprovalRule": Action.APPROVAL_RULE_CREATED,
    "ApprovalService.DeleteApprovalRule": Action.APPROVAL_RULE_DELETED,
    "ApprovalService.UpdateApprovalRule": Action.APPROVAL_RULE_UPDATED,
    "BreakGlassService.EndBreakGlass": Action.BREAK_GLASS_ENDED,
    "BreakGlassService.OpenBreakGlass": Action.BREAK_GLASS_OPENED,
    "GroupService.AddGroupMember": Action.GROUP_MEMBER_ADDED,
    "GroupService.CreateGroup": Action.GROUP_CREATED,
    "GroupService.DeleteGroup": Action.GROUP_DELETED,
    "GroupService.RemoveGroupMember": Action.GROUP_MEMBER_REMOVED,
    "GroupService.RenameGroup": Action.GROUP_RENAMED,
    "HookService.CreateHook": Action.HOOK_CREATED,
    "HookService.DeleteHook": Action.HOOK_DELETED,
    "HookService.RotateHookSecret": Action.HOOK_SECRET_ROTATED,
    "HookService.TestHook": Action.HOOK_TESTED,
    "HookService.UpdateHook": Action.HOOK_UPDATED,
    "McpServerService.ApproveTools": Action.MCP_SERVER_TOOLS_APPROVED,
    "McpServerService.CreateServer": Action.MCP_SERVER_CREATED,
    "McpServerService.DeleteServer": Action.MCP_SERVER_DELETED,
    "McpServerService.UpdateServer": Action.MCP_SERVER_UPDATED,
    "ModelService.AddProviderKey": Action.PROVIDER_KEY_ADDED,
    "ModelService.CreateModel": Action.MODEL_CREATED,
    "ModelService.CreateProvider": Action.PROVIDER_CREATED,
    "ModelService.DeleteModel": Action.MODEL_DELETED,
    "ModelService.DeleteProvider": Action.PROVIDER_DELETED,
    "ModelService.DeleteProviderKey": Action.PROVIDER_KEY_DELETED,
    "ModelService.SetModelOverride": Action.MODEL_OVERRIDE_SET,
    "ModelService.SetProviderKeyOrder": Action.PROVIDER_KEYS_ORDERED,
    "ModelService.UpdateModel": Action.MODEL_UPDATED,
    "ModelService.UpdateProvider": Action.PROVIDER_UPDATED,
    "OidcIssuerService.DeleteOidcIssuer": Action.OIDC_ISSUER_DELETED,
    "OidcIssuerService.PutOidcIssuer": Action.OIDC_ISSUER_PUT,
    "SecondFactorService.ResetSecondFactors": Action.SECOND_FACTORS_RESET,
    "ServiceTokenService.IssueServiceToken": Action.SERVICE_TOKEN_ISSUED,
    "ServiceTokenService.RevokeServiceToken": Action.SERVICE_TOKEN_REVOKED,
    "SettingsService.SetAdvisorSettings": Action.SETTINGS_UPDATED,
    "SettingsService.UpdateInstallationSettings": Action.SETTINGS_UPDATED,
    "SignInLinkService.CreateSignInLink": Action.SIGN_IN_LINK_CREATED,
    "SignInLinkService.RevokeSignInLink": Action.SIGN_IN_LINK_REVOKED,
    "UsageService.SetSpendLimit": Action.SPEND_LIMIT_SET,
    "UserService.CreateUser": Action.USER_CREATED,
    "UserService.DeactivateUser": Action.USER_DEACTIVATED,
    "UserService.DeleteUser": Action.USER_DELETED,
    "UserService.UpdateUser": Action.USER_UPDATED,
    "WorkspaceService.CreateTemplate": Action.TEMPLATE_CREATED,
    "WorkspaceService.DeleteTemplate": Action.TEMPLATE_DELETED,
    "WorkspaceService.SetWorkspacePolicy": Action.WORKSPACE_POLICY_SET,
    "WorkspaceService.UpdateTemplate": Action.TEMPLATE_UPDATED,
}
#: Methods of administrators that ask another server something, and change nothing.
NOT_CHANGING: Final = frozenset({"McpServerService.ProbeServer", "ModelService.CheckProvider"})


def test_everything_that_administrators_change_is_recorded() -> None:
    administrative = {
        f"{each.method.containing_service.name}.{each.method.name}"
        for each in bindings()
        if each.verb != "GET" and each.options.audience == options_pb2.AUDIENCE_ADMINISTRATORS
    }

    assert administrative == RECORDED.keys() | NOT_CHANGING


def test_the_document_lists_all_actions() -> None:
    rows = ROW.findall(DOCUMENT.read_text())
    listed = [name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row)]

    assert sorted(listed) == sorted(Action)


def test_every_action_is_recorded_by_a_service() -> None:
    sources = "".join(map(source_of, modules_below("services")))

    assert [action.name for action in Action if f"AuditAction.{action.name}" not in sources] == []


def test_every_action_is_expected_by_a_test() -> None:
    expected = "".join(
        source_of(path)
        for path in tracked_modules()
        if path.parts[0] == "tests" and path.parts[1] in ("integration", "e2e")
    )

    unseen = {action for action in Action if f'"{action}"' not in expected}
    # Of these the events are counted, by integration/mcpgateway/servers/test_change_records.py.
    assert {action for action in unseen if action.object_type != "mcp_server"} == set()
