"""What services record in the audit log: who did what to whom.

An event names ids, kinds and numbers. It never holds content of chats, secrets, or names of people:
details stay in the chain for ever, and people are named by the fields that can be erased.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

DETAILS_MAX: Final = 16
DETAIL_CHARACTERS_MAX: Final = 500


class AuditAction(StrEnum):
    """What was done, as the type of the object and a verb."""

    SESSION_CREATED = "session.created"
    SESSION_REFUSED = "session.refused"
    SESSION_ENDED = "session.ended"
    PASSWORD_CHANGED = "password.changed"
    SIGN_IN_LINK_CREATED = "sign_in_link.created"
    SIGN_IN_LINK_USED = "sign_in_link.used"
    SIGN_IN_LINK_REVOKED = "sign_in_link.revoked"
    API_KEY_CREATED = "api_key.created"
    API_KEY_REVOKED = "api_key.revoked"
    SERVICE_TOKEN_ISSUED = "service_token.issued"
    SERVICE_TOKEN_REVOKED = "service_token.revoked"
    TOTP_ENABLED = "totp.enabled"
    TOTP_REMOVED = "totp.removed"
    RECOVERY_CODES_REPLACED = "recovery_codes.replaced"
    RECOVERY_CODE_USED = "recovery_codes.used"
    PASSKEY_ADDED = "passkey.added"
    PASSKEY_REMOVED = "passkey.removed"
    SECOND_FACTORS_RESET = "second_factors.reset"
    USER_CREATED = "user.created"
    USER_UPDATED = "user.updated"
    USER_DEACTIVATED = "user.deactivated"
    USER_DELETED = "user.deleted"
    USER_IDENTITY_LINKED = "user.identity_linked"
    USER_IDENTITY_UNLINKED = "user.identity_unlinked"
    OIDC_ISSUER_PUT = "oidc_issuer.put"
    OIDC_ISSUER_DELETED = "oidc_issuer.deleted"
    GROUP_CREATED = "group.created"
    GROUP_RENAMED = "group.renamed"
    GROUP_DELETED = "group.deleted"
    GROUP_MEMBER_ADDED = "group.member_added"
    GROUP_MEMBER_REMOVED = "group.member_removed"
    ACCOUNT_EXPORT_REQUESTED = "account_export.requested"
    AUDIT_LOG_EXPORTED = "audit_log.exported"
    AUDIT_LOG_PRUNED = "audit_log.pruned"
    SETTINGS_UPDATED = "settings.updated"
    PROVIDER_CREATED = "provider.created"
    PROVIDER_UPDATED = "provider.updated"
    PROVIDER_DELETED = "provider.deleted"
    PROVIDER_KEYS_ORDERED = "provider.keys_ordered"
    PROVIDER_KEY_ADDED = "provider_key.added"
    PROVIDER_KEY_DELETED = "provider_key.deleted"
    MODEL_CREATED = "model.created"
    MODEL_UPDATED = "model.updated"
    MODEL_DELETED = "model.deleted"
    MODEL_OVERRIDE_SET = "model_override.set"
    HOOK_CREATED = "hook.created"
    HOOK_UPDATED = "hook.updated"
    HOOK_DELETED = "hook.deleted"
    HOOK_TESTED = "hook.tested"
    HOOK_SECRET_ROTATED = "hook.secret_rotated"
    APPROVAL_RULE_CREATED = "approval_rule.created"
    APPROVAL_RULE_UPDATED = "approval_rule.updated"
    APPROVAL_RULE_DELETED = "approval_rule.deleted"
    SPEND_LIMIT_SET = "spend_limit.set"
    TEMPLATE_CREATED = "template.created"
    TEMPLATE_UPDATED = "template.updated"
    TEMPLATE_DELETED = "template.deleted"
    WORKSPACE_POLICY_SET = "workspace.policy_set"
    WORKSPACE_SECRETS_GRANTED = "workspace.secrets_granted"
    WORKSPACE_SERVER_TRUSTED = "workspace.server_trusted"
    WORKSPACE_SERVER_UNTRUSTED = "workspace.server_untrusted"
    NODE_DRAINED = "node.drained"
    SECRET_PUT = "secret.put"
    SECRET_DELETED = "secret.deleted"
    PUSH_SUBSCRIPTION_PUT = "push_subscription.put"
    PUSH_SUBSCRIPTION_DELETED = "push_subscription.deleted"
    CHAT_SHARED = "chat.shared"
    CHAT_UNSHARED = "chat.unshared"
    BREAK_GLASS_OPENED = "break_glass.opened"
    BREAK_GLASS_READ = "break_glass.read"
    BREAK_GLASS_ENDED = "break_glass.ended"
    MCP_SERVER_CREATED = "mcp_server.created"
    MCP_SERVER_UPDATED = "mcp_server.updated"
    MCP_SERVER_DELETED = "mcp_server.deleted"
    MCP_SERVER_TOOLS_APPROVED = "mcp_server.tools_approved"

    @property
    def object_type(self) -> str:
        """The type of what it was done to."""
        return self.value.partition(".")[0]


class AuditOutcome(StrEnum):
    """Whether it was done."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One event; the store adds its id, its time, and from the call who did it and from where.

    Attributes:
        action: What was done: an `AuditAction`, or one of a newer version of another service.
        object_id: The id of what it was done to, of the action's type; empty if that has none.
        subject_user_id: The user whom it concerns.
        actor_user_id: The user who did it, where the call does not say so, as in a sign-in.
        details: Further facts: ids, kinds and numbers as text.
        outcome: Whether it was done.
    """

    action: str
    object_id: str = ""
    subject_user_id: str | None = None
    actor_user_id: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    outcome: AuditOutcome = AuditOutcome.DONE

    def __post_init__(self) -> None:
        if len(self.details) > DETAILS_MAX:
            raise ValueError(f"an audit event has at most {DETAILS_MAX} details")
        for name, value in self.details.items():
            if len(name) > DETAIL_CHARACTERS_MAX or len(value) > DETAIL_CHARACTERS_MAX:
                raise ValueError(f"the detail {name} exceeds {DETAIL_CHARACTERS_MAX} characters")
