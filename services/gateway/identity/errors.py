"""Errors about users, credentials and tokens.

IdentityError
├── InvalidRequest           fields outside their limits, all of them at once
├── UserNotFound
├── UserDeleted              a deleted user, reported to services only
├── UserDeactivated          the user is deactivated
├── UserStillActive          a user who must be deactivated first
├── LastOwner                no active owner would be left
├── LoginTaken
├── VersionConflict          the user or the group changed since it was read
├── GroupNotFound
├── GroupNameTaken
├── TooManyGroups            the user has reached the limit of groups
├── RoleExceedsCaller
├── UnknownScopes
├── TokenForAnotherUser      a token for another person
├── TokenNotFound
├── TokenAlreadyIssued       a repeated request, whose token cannot be returned again
├── TooManyTokens
├── SignInRefused            login or password wrong, or a user who may not sign in by password
├── TooManyAttempts          attempts to sign in that have to wait
├── SignInBusy               more passwords wait to be checked than may, or none can be
├── LinkInvalid              a one-time link that is unknown, spent, expired or taken back
├── LinkNotFound
├── SessionNotFound
├── ApiKeyNotFound
├── SecretAlreadyShown       a repeated request, whose key or link cannot be shown again
├── TooManyApiKeys
├── IsServiceAccount         a sign-in for a service account
├── NotAServiceAccount       an API key for another person
├── SecondFactorRefused      a code that is wrong or was used before
├── SignInNotBegun           the second request of a sign-in without the first
├── TotpEnabled              an authenticator app where there is one
├── TotpNotEnabled
├── TotpUnavailable          no master key to store the secrets of apps with
├── PasskeyRefused           an answer of an authenticator that is not valid here
├── PasskeyNotFound
├── PasskeyNotAdded          a passkey that is known, or one too many
├── IssuerNotFound           no such identity provider
├── IssuerUnavailable        an identity provider that does not answer
├── IssuerRefused            an identity provider whose answer is not valid
├── IdentityNotKnown         a user of an identity provider who is nobody here
└── FeedStopped              this process stops and publishes no more revocations
"""

from enum import StrEnum

from parley.identity import Role
from parley.rpc import Violation


class IdentityError(Exception):
    """Base class of errors about users and tokens."""


class InvalidRequest(IdentityError):
    """Fields that are invalid.

    Attributes:
        violations: The fields and the expected values.
    """

    def __init__(self, *violations: Violation) -> None:
        said = "; ".join(f"{each.field}: {each.description}" for each in violations)
        super().__init__(f"correct these fields: {said}")
        self.violations = violations


class UserNotFound(IdentityError):
    """No such user, or none that this caller may see."""

    def __init__(self, user_id: str) -> None:
        super().__init__("there is no such user, or you may not see them")
        self.user_id = user_id


class UserDeleted(IdentityError):
    """The user was deleted permanently."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the user was deleted; delete what is held of them")
        self.user_id = user_id


class UserStillActive(IdentityError):
    """An active user cannot be deleted."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the user is active; deactivate them first")
        self.user_id = user_id


class LastOwner(IdentityError):
    """A change that would leave the installation without an active owner."""

    def __init__(self, user_id: str) -> None:
        super().__init__("no active owner would be left; make somebody else an owner first")
        self.user_id = user_id


class RequestIdReused(IdentityError):
    """The request id was used before, with another request."""

    def __init__(self) -> None:
        super().__init__("the request id was used before with another request; choose a new one")


class LoginTaken(IdentityError):
    """Another user has the login."""

    def __init__(self, login: str) -> None:
        super().__init__(f"another user has the login {login}; choose another one")
        self.login = login


class VersionConflict(IdentityError):
    """The change was based on an older version."""

    def __init__(self, version: int) -> None:
        super().__init__(f"it changed meanwhile and is at version {version}; read it again")
        self.version = version


class GroupNotFound(IdentityError):
    """No such group, or none that this caller may see."""

    def __init__(self, group_id: str) -> None:
        super().__init__("there is no such group, or you may not see it")
        self.group_id = group_id


class GroupNameTaken(IdentityError):
    """Another group has the name, compared without case."""

    def __init__(self, name: str) -> None:
        super().__init__(f"another group has the name {name}; choose another one")
        self.name = name


class TooManyGroups(IdentityError):
    """The user would exceed the limit of groups."""

    def __init__(self, groups_max: int) -> None:
        super().__init__(
            f"the user belongs to {groups_max} groups already; let them leave one first"
        )
        self.groups_max = groups_max


class UserDeactivated(IdentityError):
    """The user is deactivated."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the user is deactivated; reactivate them first")
        self.user_id = user_id


class RoleExceedsCaller(IdentityError):
    """The requested role or token exceeds the role of the caller."""

    def __init__(self, role: Role) -> None:
        super().__init__(f"only a user with the role {role} or a higher one may do this")
        self.role = role


class UnknownScopes(IdentityError):
    """Scopes that no method requires."""

    def __init__(self, scopes: tuple[str, ...], known: tuple[str, ...]) -> None:
        super().__init__(f"no method asks for {', '.join(scopes)}; there are {', '.join(known)}")
        self.scopes = scopes


class TokenForAnotherUser(IdentityError):
    """A token for another person, whose chats the caller may not read."""

    def __init__(self, user_id: str) -> None:
        super().__init__("you can issue service tokens for yourself and for service accounts only")
        self.user_id = user_id


class TokenNotFound(IdentityError):
    """No such service token."""

    def __init__(self, token_id: str) -> None:
        super().__init__("there is no such service token; list them to see which there are")
        self.token_id = token_id


class TokenAlreadyIssued(IdentityError):
    """The request id has already issued a token."""

    def __init__(self, token_id: str) -> None:
        super().__init__(
            "this request issued a token before, whose text cannot be told again; "
            "revoke that one and ask anew"
        )
        self.token_id = token_id


class TooManyTokens(IdentityError):
    """More tokens are unexpired than watchers of revocations can hold."""

    def __init__(self, tokens_max: int) -> None:
        super().__init__(f"{tokens_max} service tokens are in force; wait for some to expire")
        self.tokens_max = tokens_max


class SignInRefused(IdentityError):
    """The login or the password is wrong; it is not said which."""

    def __init__(self) -> None:
        super().__init__("the login or the password is wrong")


class TooManyAttempts(IdentityError):
    """The attempt has to wait.

    Attributes:
        retry_after_s: How long.
    """

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("too many attempts to sign in failed lately; try again later")
        self.retry_after_s = retry_after_s


class SignInBusy(IdentityError):
    """More passwords wait to be checked than may."""

    def __init__(self) -> None:
        super().__init__("more sign-ins are being checked than can be at once; try again")


class LinkState(StrEnum):
    """Why a one-time link does not work."""

    UNKNOWN = "unknown"
    SPENT = "spent"
    EXPIRED = "expired"
    REVOKED = "revoked"


_LINK_TEXTS = {
    LinkState.UNKNOWN: "the link is not of this installation, or is not complete",
    LinkState.SPENT: "the link was used before; sign in with the password that was set",
    LinkState.EXPIRED: "the link has expired; ask an administrator for a new one",
    LinkState.REVOKED: "the link was taken back or replaced by a newer one; use the newest one",
}


class LinkInvalid(IdentityError):
    """A one-time link that does not work.

    Attributes:
        state: Why.
    """

    def __init__(self, state: LinkState) -> None:
        super().__init__(_LINK_TEXTS[state])
        self.state = state


class LinkNotFound(IdentityError):
    """No such one-time link of the user."""

    def __init__(self, link_id: str) -> None:
        super().__init__("there is no such link of the user; list them to see which there are")
        self.link_id = link_id


class SessionNotFound(IdentityError):
    """No such session of the caller."""

    def __init__(self, session_id: str) -> None:
        super().__init__("you have no such session; list them to see which there are")
        self.session_id = session_id


class ApiKeyNotFound(IdentityError):
    """No such API key of the user."""

    def __init__(self, key_id: str) -> None:
        super().__init__("there is no such API key of the user; list them to see which there are")
        self.key_id = key_id


class ExportNotFound(IdentityError):
    """No such export of the user that can be read."""

    def __init__(self, export_id: str) -> None:
        super().__init__("there is no such export, or it is not complete yet, or has expired")
        self.export_id = export_id


class SecretAlreadyShown(IdentityError):
    """The request id has already made a key or a link."""

    def __init__(self, made_id: str) -> None:
        super().__init__(
            "this request was made before, and what it made is shown only once; revoke that and "
            "ask anew"
        )
        self.made_id = made_id


class TooManyApiKeys(IdentityError):
    """The user has reached the limit of API keys."""

    def __init__(self, keys_max: int) -> None:
        super().__init__(f"the user has {keys_max} API keys already; revoke one first")
        self.keys_max = keys_max


class IsServiceAccount(IdentityError):
    """Service accounts do not sign in."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the user is a service account, which does not sign in; make an API key")
        self.user_id = user_id


class NotAServiceAccount(IdentityError):
    """People make their API keys themselves."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the user is a person, who makes API keys themselves")
        self.user_id = user_id


class SecondFactorRefused(IdentityError):
    """The code is wrong or was used before."""

    def __init__(self) -> None:
        super().__init__("the code is wrong, has expired, or was used before")


class SignInNotBegun(IdentityError):
    """The sign-in was not begun, or too long ago."""

    def __init__(self) -> None:
        super().__init__("the sign-in was not begun, or too long ago; begin it again")


class TotpEnabled(IdentityError):
    """The user has an authenticator app."""

    def __init__(self) -> None:
        super().__init__("there is an authenticator app already; remove it first")


class TotpNotEnabled(IdentityError):
    """The user has no authenticator app."""

    def __init__(self) -> None:
        super().__init__("there is no authenticator app; begin to add one")


class TotpUnavailable(IdentityError):
    """There is no master key to encrypt the secrets of authenticator apps with."""

    def __init__(self) -> None:
        super().__init__("secrets of authenticator apps cannot be stored without a master key")


class PasskeyRefused(IdentityError):
    """The passkey is not known, or the answer of its authenticator is not valid."""

    def __init__(self) -> None:
        super().__init__("the passkey is not known here, or its answer is not valid")


class PasskeyNotFound(IdentityError):
    """No such passkey of the caller."""

    def __init__(self, passkey_id: str) -> None:
        super().__init__("you have no such passkey; list them to see which there are")
        self.passkey_id = passkey_id


class PasskeyNotAdded(IdentityError):
    """The passkey is known already, or the user has as many as they may."""

    def __init__(self, passkeys_max: int) -> None:
        super().__init__(
            f"the passkey is known already, or there are {passkeys_max}; remove one first"
        )
        self.passkeys_max = passkeys_max


class IssuerNotFound(IdentityError):
    """No identity provider has this name."""

    def __init__(self, name: str) -> None:
        super().__init__("there is no such identity provider")
        self.name = name


class IssuerUnavailable(IdentityError):
    """The identity provider does not answer.

    Attributes:
        cause: Why; for logs.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("the identity provider does not answer; try again")
        self.cause = cause


class IssuerRefused(IdentityError):
    """The identity provider refused, or its answer is not valid for this sign-in.

    Attributes:
        cause: Why; for logs.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("the identity provider refused, or its answer is not valid")
        self.cause = cause


class IdentityNotKnown(IdentityError):
    """A user of an identity provider who is nobody here, where none are created."""

    def __init__(self) -> None:
        super().__init__("you are not known here; ask an administrator for an invitation")


class IssuerReadOnly(IdentityError):
    """The identity provider comes from the file of the installation."""

    def __init__(self, name: str) -> None:
        super().__init__("the identity provider comes from a file, and is changed there only")
        self.name = name


class IssuerSecretsUnavailable(IdentityError):
    """There is no master key to encrypt the secrets of clients with."""

    def __init__(self) -> None:
        super().__init__("secrets of identity providers cannot be stored without a master key")


class TooManyIssuers(IdentityError):
    """There are as many identity providers as there may be."""

    def __init__(self, issuers_max: int) -> None:
        super().__init__(f"there are {issuers_max} identity providers; delete one first")
        self.issuers_max = issuers_max


class LinkedIdentityNotFound(IdentityError):
    """No such linked identity of the caller."""

    def __init__(self, linked_identity_id: str) -> None:
        super().__init__("you have no such linked identity; list them to see which there are")
        self.linked_identity_id = linked_identity_id


class LastWayToSignIn(IdentityError):
    """The user could not sign in any more without the identity."""

    def __init__(self) -> None:
        super().__init__("set a password or add a passkey first; there is no other way to sign in")


class IdentityNotLinked(IdentityError):
    """The identity is that of another user, or the user has as many as they may."""

    def __init__(self, identities_max: int) -> None:
        super().__init__(
            f"the identity is that of another user, or you have {identities_max} already"
        )
        self.identities_max = identities_max


class FeedStopped(IdentityError):
    """This process stops and no longer publishes revocations."""

    def __init__(self) -> None:
        super().__init__("this gateway is stopping; follow another one")
