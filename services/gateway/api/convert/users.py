"""Converts users, groups and service tokens to the JSON of the API."""

from datetime import UTC, datetime

from gateway.api.convert.parts import Json
from gateway.identity.domain import GroupRecord, ServiceTokenRecord, UserRecord


def token_to_json(record: ServiceTokenRecord) -> Json:
    """Convert a service token, without its text."""
    return {
        "id": record.id,
        "name": record.name,
        "user_id": record.user_id,
        "scopes": list(record.scopes),
        "issued_by_user_id": record.issued_by_user_id,
        "issued_at": rfc3339(record.issued_at),
        "expires_at": rfc3339(record.expires_at),
        "revoked_at": None if record.revoked_at is None else rfc3339(record.revoked_at),
    }


def user_to_json(user: UserRecord) -> Json:
    """Convert a user for themselves."""
    return {
        "id": user.id,
        "login": user.login,
        "display_name": user.display_name,
        "email": user.email or None,
        "role": user.role,
        "created_at": rfc3339(user.created_at),
    }


def managed_user_to_json(user: UserRecord) -> Json:
    """Convert a user for administrators of users."""
    gone_at = user.deactivated_at
    return user_to_json(user) | {
        "state": user.state,
        "version": user.version,
        "updated_at": rfc3339(user.updated_at),
        "deactivated_at": None if gone_at is None else rfc3339(gone_at),
    }


def group_to_json(group: GroupRecord) -> Json:
    """Convert a group."""
    return {
        "id": group.id,
        "name": group.name,
        "member_count": group.member_count,
        "version": group.version,
        "created_at": rfc3339(group.created_at),
        "updated_at": rfc3339(group.updated_at),
    }


def rfc3339(moment: datetime) -> str:
    """Format a time as RFC 3339."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
