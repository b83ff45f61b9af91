"""Tickets for terminals: chatd signs who may attach to which process, the node verifies it.

A ticket is not a token: their kinds differ, so neither is accepted in place of the other.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

import jwt
import msgspec

from parley.clock import Clock
from parley.identity.caller import ServiceName, UserId
from parley.identity.claims import ALGORITHM, read_kid
from parley.identity.errors import RefusalReason, Unauthenticated
from parley.identity.tokens import SigningKeySource, current_key
from parley.identity.trust import Trust
from parley.identity.verification import CLOCK_SKEW_S

TICKET_LIFETIME_S: Final = 60
TICKET_CHARACTERS_MAX: Final = 4096

_JWS = jwt.PyJWS(algorithms=[ALGORITHM])
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Instant = Annotated[int, msgspec.Meta(ge=0, lt=2**34)]


@dataclass(frozen=True, slots=True)
class AttachTicket:
    """The permission for one attachment to a terminal.

    Attributes:
        id: Identifies the ticket, which can be used once.
        user_id: The user who may attach.
        workspace_id: The workspace of the process.
        epoch: The number of the workspace's placement.
        process_id: The process whose terminal it is.
        node: The generation of the journal of the node that runs it.
        is_view_only: Whether input is not allowed.
        issued_at: When it was signed.
        expires_at: When it becomes invalid.
    """

    id: str
    user_id: UserId
    workspace_id: str
    epoch: int
    process_id: str
    node: str
    is_view_only: bool
    issued_at: datetime
    expires_at: datetime


class _Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    iss: ServiceName
    aud: ServiceName
    iat: _Instant
    exp: _Instant
    typ: Literal["attach"]
    jti: _Text
    sub: _Text
    workspace: _Text
    epoch: Annotated[int, msgspec.Meta(ge=0)]
    process: _Text
    node: _Text
    view_only: bool = False


class TicketIssuer:
    """Signs tickets with chatd's key."""

    def __init__(self, key: SigningKeySource, clock: Clock) -> None:
        self._key = key
        self._clock = clock

    def issue(
        self,
        ticket_id: str,
        *,
        user_id: UserId,
        workspace_id: str,
        process_id: str,
        node: str,
        is_view_only: bool,
        epoch: int = 0,
    ) -> tuple[str, datetime]:
        """Return a ticket that is valid from now on, and when it expires."""
        issued_s = int(self._clock.now().timestamp())
        claims = _Claims(
            iss=ServiceName.CHATD,
            aud=ServiceName.TOOLRUNNER,
            iat=issued_s,
            exp=issued_s + TICKET_LIFETIME_S,
            typ="attach",
            jti=ticket_id,
            sub=user_id,
            workspace=workspace_id,
            epoch=epoch,
            process=process_id,
            node=node,
            view_only=is_view_only,
        )
        key = current_key(self._key)
        text = _JWS.encode(msgspec.json.encode(claims), key.private, ALGORITHM, {"kid": key.kid})
        return text, datetime.fromtimestamp(claims.exp, UTC)


class TicketReader:
    """Verifies tickets; whether one was used already is checked by the node."""

    def __init__(self, trust: Trust, clock: Clock) -> None:
        self._trust = trust
        self._clock = clock

    def read(self, text: str) -> AttachTicket:
        """Return the content of a valid ticket.

        Raises:
            Unauthenticated: It was not signed by chatd, or is not valid now.
        """
        if len(text) > TICKET_CHARACTERS_MAX:
            raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
        key = self._trust.find(read_kid(text))
        if key is None:
            raise Unauthenticated(RefusalReason.TOKEN_KEY_UNKNOWN)
        if key.service is not ServiceName.CHATD:
            raise Unauthenticated(RefusalReason.TOKEN_ISSUER)
        try:
            payload = _JWS.decode(text, key.verifier(), algorithms=[ALGORITHM])
            claims = msgspec.json.decode(payload, type=_Claims)
        except jwt.InvalidSignatureError:
            raise Unauthenticated(RefusalReason.TOKEN_SIGNATURE) from None
        except (jwt.PyJWTError, ValueError):
            raise Unauthenticated(RefusalReason.TOKEN_MALFORMED) from None
        if claims.iss is not key.service:
            raise Unauthenticated(RefusalReason.TOKEN_ISSUER)
        if claims.aud is not ServiceName.TOOLRUNNER:
            raise Unauthenticated(RefusalReason.TOKEN_AUDIENCE)
        return self._timely(claims)

    def _timely(self, claims: _Claims) -> AttachTicket:
        now = self._clock.now()
        issued_at = datetime.fromtimestamp(claims.iat, UTC)
        expires_at = datetime.fromtimestamp(claims.exp, UTC)
        if now >= expires_at or expires_at > issued_at + timedelta(seconds=TICKET_LIFETIME_S):
            raise Unauthenticated(RefusalReason.TOKEN_EXPIRED)
        if issued_at > now + timedelta(seconds=CLOCK_SKEW_S):
            raise Unauthenticated(RefusalReason.TOKEN_NOT_YET_VALID)
        return AttachTicket(
            id=claims.jti,
            user_id=UserId(claims.sub),
            workspace_id=claims.workspace,
            epoch=claims.epoch,
            process_id=claims.process,
            node=claims.node,
            is_view_only=claims.view_only,
            issued_at=issued_at,
            expires_at=expires_at,
        )
