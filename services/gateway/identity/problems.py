"""The mapping of errors about users, credentials and tokens to gRPC problems."""

from collections.abc import Callable
from typing import Any

from gateway.audit_log.errors import AuditFilterInvalid
from gateway.identity.errors import (
    ApiKeyNotFound,
    ExportNotFound,
    FeedStopped,
    GroupNameTaken,
    GroupNotFound,
    IdentityNotKnown,
    IdentityNotLinked,
    InvalidRequest,
    IsServiceAccount,
    IssuerNotFound,
    IssuerReadOnly,
    IssuerRefused,
    IssuerSecretsUnavailable,
    IssuerUnavailable,
    LastOwner,
    LastWayToSignIn,
    LinkedIdentityNotFound,
    LinkInvalid,
    LinkNotFound,
    LoginTaken,
    NotAServiceAccount,
    PasskeyNotAdded,
    PasskeyNotFound,
    PasskeyRefused,
    RequestIdReused,
    RoleExceedsCaller,
    SecondFactorRefused,
    SecretAlreadyShown,
    SessionNotFound,
    SignInBusy,
    SignInNotBegun,
    SignInRefused,
    TokenAlreadyIssued,
    TokenForAnotherUser,
    TokenNotFound,
    TooManyApiKeys,
    TooManyAttempts,
    TooManyGroups,
    TooManyIssuers,
    TooManyTokens,
    TotpEnabled,
    TotpNotEnabled,
    TotpUnavailable,
    UnknownScopes,
    UserDeactivated,
    UserDeleted,
    UserNotFound,
    UserStillActive,
    VersionConflict,
)
from parley.postgres import DatabaseUnavailable
from parley.rpc import ErrorTable, Problem

DOMAIN = "identity.parley"
STORE_RETRY_AFTER_S = 1.0


def _telling(
    reason: str,
    metadata: Callable[[Any], dict[str, str]] = lambda error: {},
) -> Callable[[Any], Problem]:
    return lambda error: Problem.of(reason, str(error), metadata(error))


def _invalid(error: InvalidRequest | AuditFilterInvalid) -> Problem:
    return Problem.of("INVALID_REQUEST", str(error), violations=error.violations)


def _store_unavailable(_: DatabaseUnavailable) -> Problem:
    return Problem.of(
        "STORE_UNAVAILABLE",
        "the database cannot be reached; try again",
        retry_after_s=STORE_RETRY_AFTER_S,
    )


ERRORS: ErrorTable = {
    InvalidRequest: _invalid,
    AuditFilterInvalid: _invalid,
    RequestIdReused: _telling("REQUEST_ID_REUSED", lambda _: {}),
    UserNotFound: _telling("USER_NOT_FOUND", lambda error: {"user_id": error.user_id}),
    UserDeleted: _telling("USER_DELETED", lambda error: {"user_id": error.user_id}),
    UserStillActive: _telling("USER_STILL_ACTIVE", lambda error: {"user_id": error.user_id}),
    LastOwner: _telling("LAST_OWNER", lambda error: {"user_id": error.user_id}),
    LoginTaken: _telling("LOGIN_TAKEN", lambda error: {"login": error.login}),
    VersionConflict: _telling("VERSION_CONFLICT", lambda error: {"version": str(error.version)}),
    GroupNotFound: _telling("GROUP_NOT_FOUND", lambda error: {"group_id": error.group_id}),
    GroupNameTaken: _telling("NAME_TAKEN", lambda error: {"resource": "group", "name": error.name}),
    TooManyGroups: _telling("TOO_MANY_GROUPS", lambda error: {"groups_max": str(error.groups_max)}),
    UserDeactivated: _telling("USER_DEACTIVATED", lambda error: {"user_id": error.user_id}),
    RoleExceedsCaller: _telling("ROLE_EXCEEDS_CALLER", lambda error: {"role": error.role}),
    UnknownScopes: _telling("UNKNOWN_SCOPE", lambda error: {"scope": error.scopes[0]}),
    TokenForAnotherUser: _telling(
        "TOKEN_FOR_ANOTHER_USER", lambda error: {"user_id": error.user_id}
    ),
    TokenNotFound: _telling("TOKEN_NOT_FOUND", lambda error: {"token_id": error.token_id}),
    TokenAlreadyIssued: _telling(
        "TOKEN_ALREADY_ISSUED", lambda error: {"token_id": error.token_id}
    ),
    TooManyTokens: _telling("TOO_MANY_TOKENS", lambda error: {"tokens_max": str(error.tokens_max)}),
    SignInRefused: _telling("SIGN_IN_REFUSED"),
    TooManyAttempts: lambda error: Problem.of(
        "TOO_MANY_ATTEMPTS", str(error), retry_after_s=error.retry_after_s
    ),
    SignInBusy: lambda error: Problem.of("SIGN_IN_BUSY", str(error), retry_after_s=1.0),
    LinkInvalid: _telling("SIGN_IN_LINK_INVALID", lambda error: {"state": error.state}),
    LinkNotFound: _telling("SIGN_IN_LINK_NOT_FOUND", lambda error: {"link_id": error.link_id}),
    SessionNotFound: _telling("SESSION_NOT_FOUND", lambda error: {"session_id": error.session_id}),
    ExportNotFound: _telling(
        "ACCOUNT_EXPORT_NOT_FOUND", lambda error: {"export_id": error.export_id}
    ),
    ApiKeyNotFound: _telling("API_KEY_NOT_FOUND", lambda error: {"api_key_id": error.key_id}),
    SecretAlreadyShown: _telling("SECRET_ALREADY_SHOWN", lambda error: {"id": error.made_id}),
    TooManyApiKeys: _telling(
        "TOO_MANY_API_KEYS", lambda error: {"api_keys_max": str(error.keys_max)}
    ),
    IsServiceAccount: _telling("SERVICE_ACCOUNT", lambda error: {"user_id": error.user_id}),
    NotAServiceAccount: _telling("NOT_A_SERVICE_ACCOUNT", lambda error: {"user_id": error.user_id}),
    SecondFactorRefused: _telling("SECOND_FACTOR_REFUSED"),
    SignInNotBegun: _telling("SIGN_IN_NOT_BEGUN"),
    TotpEnabled: _telling("TOTP_ENABLED"),
    TotpNotEnabled: _telling("TOTP_NOT_ENABLED"),
    TotpUnavailable: _telling("TOTP_UNAVAILABLE"),
    PasskeyRefused: _telling("PASSKEY_REFUSED"),
    PasskeyNotFound: _telling("PASSKEY_NOT_FOUND", lambda error: {"passkey_id": error.passkey_id}),
    PasskeyNotAdded: _telling(
        "PASSKEY_NOT_ADDED", lambda error: {"passkeys_max": str(error.passkeys_max)}
    ),
    IssuerNotFound: _telling("ISSUER_NOT_FOUND", lambda error: {"issuer": error.name}),
    IssuerUnavailable: lambda error: Problem.of(
        "ISSUER_UNAVAILABLE", str(error), retry_after_s=STORE_RETRY_AFTER_S
    ),
    IssuerRefused: _telling("ISSUER_REFUSED"),
    IdentityNotKnown: _telling("IDENTITY_NOT_KNOWN"),
    IssuerReadOnly: _telling("ISSUER_READ_ONLY", lambda error: {"issuer": error.name}),
    IssuerSecretsUnavailable: _telling("ISSUER_SECRETS_UNAVAILABLE"),
    TooManyIssuers: _telling(
        "TOO_MANY_ISSUERS", lambda error: {"issuers_max": str(error.issuers_max)}
    ),
    LinkedIdentityNotFound: _telling(
        "LINKED_IDENTITY_NOT_FOUND",
        lambda error: {"linked_identity_id": error.linked_identity_id},
    ),
    LastWayToSignIn: _telling("LAST_WAY_TO_SIGN_IN"),
    IdentityNotLinked: _telling(
        "IDENTITY_NOT_LINKED", lambda error: {"identities_max": str(error.identities_max)}
    ),
    FeedStopped: lambda error: Problem.of("DRAINING", str(error), retry_after_s=1.0),
    DatabaseUnavailable: _store_unavailable,
}
