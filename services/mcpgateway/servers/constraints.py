"""Names in the schema `mcp`, written by scripts/constraints.py."""

from enum import StrEnum


class Constraint(StrEnum):
    """Every constraint and unique index of the schema, by its name there."""

    AUDIT_OUTBOX_PKEY = "audit_outbox_pkey"
    CALLS_ACKNOWLEDGED_AFTER_END = "calls_acknowledged_after_end"
    CALLS_END_IS_WHOLE = "calls_end_is_whole"
    CALLS_OUTCOME_KNOWN = "calls_outcome_known"
    CALLS_PKEY = "calls_pkey"
    CALLS_RUNNING_SOMEWHERE = "calls_running_somewhere"
    CHAT_OWNERS_PKEY = "chat_owners_pkey"
    GATEWAYS_PKEY = "gateways_pkey"
    JOURNAL_HAS_ONE_ROW = "journal_has_one_row"
    JOURNAL_PKEY = "journal_pkey"
    KEYS_PKEY = "keys_pkey"
    REQUESTS_PKEY = "requests_pkey"
    SERVERS_APPROVAL_POLICY_KNOWN = "servers_approval_policy_known"
    SERVERS_AUTH_KIND_KNOWN = "servers_auth_kind_known"
    SERVERS_AVAILABILITY_KNOWN = "servers_availability_known"
    SERVERS_CREDENTIALS_WHOLE = "servers_credentials_whole"
    SERVERS_PKEY = "servers_pkey"
    SERVERS_SLUG_FORM = "servers_slug_form"
    SERVERS_SLUG_UNIQUE = "servers_slug_unique"
    SERVERS_TRANSPORT_KNOWN = "servers_transport_known"
    TOMBSTONES_PKEY = "tombstones_pkey"
