"""Passkeys (WebAuthn): adding them, and signing in with them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import parse_authentication_credential_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from gateway.identity.domain import PasskeyRecord, UserKind
from gateway.identity.engine.users import Users
from gateway.identity.errors import (
    IsServiceAccount,
    PasskeyNotFound,
    PasskeyRefused,
    SignInNotBegun,
)
from gateway.identity.secret_tokens import TokenBytes, digest_of, new_token
from gateway.identity.store.second_factors import (
    SecondFactorStore,
    StoredPasskey,
    Unfinished,
    UnfinishedPurpose,
)
from parley.clock import Clock
from parley.identity import User, UserId

CHALLENGE_BYTES: Final = 32
CONTINUATION_LIFETIME: Final = timedelta(minutes=5)
NAME: Final = "Parley"


@dataclass(frozen=True, slots=True)
class StartedPasskey:
    """What a browser needs, and the token of the second request."""

    options_json: str
    continuation: str = field(repr=False)


class Passkeys:
    """The passkeys of users; the authenticator verifies the person, so one is enough to sign in.

    Args:
        store: Stores passkeys.
        users: Reads users.
        clock: The clock.
        new_id: Generates ids.
        token_bytes: Random bytes of challenges and tokens.
        host: The host that passkeys are bound to.
        origin: The origin of our pages.
    """

    def __init__(
        self,
        store: SecondFactorStore,
        users: Users,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
        host: str,
        origin: str,
    ) -> None:
        self._store = store
        self._users = users
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes
        self._host = host
        self._origin = origin

    async def start(self, caller: User) -> StartedPasskey:
        """Begin to add a passkey of the caller.

        Raises:
            IsServiceAccount: The caller is one.
        """
        user = await self._users.find(caller.id)
        if user.kind is not UserKind.PERSON:
            raise IsServiceAccount(user.id)
        known = await self._store.list_passkeys(user.id)
        challenge = self._token_bytes(CHALLENGE_BYTES)
        options = generate_registration_options(
            rp_id=self._host,
            rp_name=NAME,
            user_id=user.id.encode(),
            user_name=user.login,
            user_display_name=user.display_name,
            challenge=challenge,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[
                PublicKeyCredentialDescriptor(each.credential_id) for each in known
            ],
        )
        continuation = await self._begin(UnfinishedPurpose.NEW_PASSKEY, challenge, user.id)
        return StartedPasskey(options_to_json(options), continuation)

    async def add(
        self, caller: User, *, continuation: str, name: str, credential_json: str
    ) -> PasskeyRecord:
        """Finish adding a passkey.

        Raises:
            SignInNotBegun: It was not begun by the caller, or too long ago.
            PasskeyRefused: The answer of the authenticator is not valid here.
            PasskeyNotAdded: It is known already, or the caller has as many as they may.
        """
        begun = await self._take(continuation, UnfinishedPurpose.NEW_PASSKEY)
        if begun.user_id != caller.id:
            raise SignInNotBegun
        try:
            verified = verify_registration_response(
                credential=credential_json,
                expected_challenge=begun.content,
                expected_rp_id=self._host,
                expected_origin=self._origin,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, KeyError, TypeError) as error:
            raise PasskeyRefused from error
        record = PasskeyRecord(self._new_id(), UserId(caller.id), name, self._clock.now())
        await self._store.add_passkey(
            StoredPasskey(
                record,
                verified.credential_id,
                verified.credential_public_key,
                verified.sign_count,
            )
        )
        return record

    async def remove(self, caller: User, passkey_id: str) -> None:
        """Remove a passkey of the caller.

        Raises:
            PasskeyNotFound: The caller has no such passkey.
        """
        if not await self._store.remove_passkey(caller.id, passkey_id):
            raise PasskeyNotFound(passkey_id)

    async def start_sign_in(self) -> StartedPasskey:
        """Begin a sign-in; the authenticator knows which user it is."""
        challenge = self._token_bytes(CHALLENGE_BYTES)
        options = generate_authentication_options(
            rp_id=self._host,
            challenge=challenge,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        continuation = await self._begin(UnfinishedPurpose.PASSKEY_SIGN_IN, challenge, None)
        return StartedPasskey(options_to_json(options), continuation)

    async def user_of(self, *, continuation: str, credential_json: str) -> UserId:
        """Return the user of a sign-in with a passkey; each beginning is used once.

        Raises:
            SignInNotBegun: It was not begun, or too long ago.
            PasskeyRefused: The passkey is not known, or its answer is not valid.
        """
        begun = await self._take(continuation, UnfinishedPurpose.PASSKEY_SIGN_IN)
        try:
            credential = parse_authentication_credential_json(credential_json)
            stored = await self._store.find_passkey(credential.raw_id)
            if stored is None:
                raise PasskeyRefused
            verified = verify_authentication_response(
                credential=credential,
                expected_challenge=begun.content,
                expected_rp_id=self._host,
                expected_origin=self._origin,
                credential_public_key=stored.public_key,
                credential_current_sign_count=stored.sign_count,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, KeyError, TypeError) as error:
            raise PasskeyRefused from error
        now = self._clock.now()
        await self._store.touch_passkey(stored.record.id, verified.new_sign_count, now)
        return stored.record.user_id

    async def _begin(
        self, purpose: UnfinishedPurpose, challenge: bytes, user_id: UserId | None
    ) -> str:
        continuation, now = new_token(self._token_bytes), self._clock.now()
        await self._store.begin(
            digest_of(continuation),
            purpose,
            Unfinished(user_id, challenge),
            now=now,
            expires_at=now + CONTINUATION_LIFETIME,
        )
        return continuation

    async def _take(self, continuation: str, purpose: UnfinishedPurpose) -> Unfinished:
        begun = await self._store.take(digest_of(continuation), purpose, self._clock.now())
        if begun is None:
            raise SignInNotBegun
        return begun
