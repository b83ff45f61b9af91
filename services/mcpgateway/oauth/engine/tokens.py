"""The token and revocation endpoints: codes and refresh tokens for tokens, and giving them up."""

import base64
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from mcpgateway.oauth.domain.flows import Flow
from mcpgateway.oauth.domain.grants import AuthMethod, Terms, TokenAnswer, Tokens
from mcpgateway.oauth.domain.metadata import scopes_of
from mcpgateway.oauth.engine.issuer_http import Answer, IssuerHttp
from mcpgateway.oauth.errors import IssuerFailed

TOKEN_CHARACTERS_MAX: Final = 16 * 1024
LIFETIME_S_MAX: Final = 10 * 365 * 86400
#: Errors after which a grant never works again; the second is GitHub's.
GRANT_ERRORS: Final = frozenset({"invalid_grant", "bad_refresh_token"})
CLIENT_ERRORS: Final = frozenset({"invalid_client", "unauthorized_client"})


class GrantRefused(Exception):
    """The authorization server does not accept the code or the refresh token."""


class ClientRefused(Exception):
    """The authorization server does not accept the client."""


class Revocation(StrEnum):
    """What an authorization server did about a grant given up; the names are those of the proto."""

    NOT_NEEDED = "NOT_NEEDED"
    REVOKED = "REVOKED"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    FAILED = "FAILED"


class TokenEndpoint:
    """Calls token and revocation endpoints; texts of answers are never passed on."""

    def __init__(self, http: IssuerHttp) -> None:
        self._http = http

    async def exchange(self, flow: Flow, secret: str, code: str) -> TokenAnswer:
        """Return the tokens for a code.

        Raises:
            GrantRefused: The code is not accepted.
            ClientRefused: The client is not accepted.
            IssuerFailed: There is no usable answer.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.terms.redirect_uri,
            "code_verifier": flow.verifier,
        }
        return await self._tokens(flow.terms, secret, form)

    async def refresh(self, terms: Terms, secret: str, refresh_token: str) -> TokenAnswer:
        """Return new tokens; the refresh token may have been replaced by another.

        Raises:
            GrantRefused: The refresh token is not accepted.
            ClientRefused: The client is not accepted.
            IssuerFailed: There is no usable answer.
        """
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return await self._tokens(terms, secret, form)

    async def revoke(self, terms: Terms, secret: str, tokens: Tokens) -> Revocation:
        """Give up tokens: the refresh token, or the access token if that is refused."""
        if not terms.revocation_url:
            return Revocation.NOT_SUPPORTED
        held = (("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token))
        for kind, token in ((kind, token) for kind, token in held if token):
            form = {"token": token, "token_type_hint": kind}
            headers = _authenticate(terms, secret, form)
            try:
                answer = await self._http.post_form(terms.revocation_url, form, headers)
            except IssuerFailed:
                return Revocation.FAILED
            # Other codes of success promise nothing.
            if answer.status in (200, 204):
                return Revocation.REVOKED
            if _error(answer) != "unsupported_token_type":
                return Revocation.FAILED
        return Revocation.FAILED

    async def _tokens(self, terms: Terms, secret: str, form: dict[str, str]) -> TokenAnswer:
        form["resource"] = terms.resource
        headers = _authenticate(terms, secret, form)
        answer = await self._http.post_form(terms.token_url, form, headers)
        error = _error(answer)
        if error in GRANT_ERRORS:
            raise GrantRefused
        if error in CLIENT_ERRORS:
            raise ClientRefused
        if answer.status != 200 or error or not isinstance(answer.document, dict):
            raise IssuerFailed(terms.issuer, f"it gives no token (HTTP {answer.status})")
        return _token_answer(terms.issuer, answer.document)


def _authenticate(terms: Terms, secret: str, form: dict[str, str]) -> Mapping[str, str]:
    """Add the client to a form or to the headers (RFC 6749, 2.3.1: both parts are encoded)."""
    match terms.auth_method:
        case AuthMethod.BASIC if secret:
            pair = f"{quote(terms.client_id, safe='')}:{quote(secret, safe='')}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        case AuthMethod.POST if secret:
            form["client_id"], form["client_secret"] = terms.client_id, secret
        case _:
            form["client_id"] = terms.client_id
    return {}


def _error(answer: Answer) -> str:
    error = answer.document.get("error") if isinstance(answer.document, dict) else ""
    return error if isinstance(error, str) else ""


def _token_answer(issuer: str, document: Mapping[str, Any]) -> TokenAnswer:
    access, refresh = document.get("access_token"), document.get("refresh_token") or ""
    kind, scope = document.get("token_type"), document.get("scope")
    if not _is_token(access) or not (refresh == "" or _is_token(refresh)):
        raise IssuerFailed(issuer, "its token cannot be used")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise IssuerFailed(issuer, "its token is no bearer token")
    return TokenAnswer(
        Tokens(str(access), refresh),
        _lifetime(document.get("expires_in")),
        scopes_of(scope) if isinstance(scope, str) and scope.strip() else None,
    )


def _is_token(value: object) -> bool:
    """Return whether a value can be sent in a header."""
    is_text = isinstance(value, str) and 0 < len(value) <= TOKEN_CHARACTERS_MAX
    return is_text and str(value).isascii() and str(value).isprintable() and " " not in str(value)


def _lifetime(value: object) -> timedelta | None:
    """Return how long a token can be used; None if that cannot be read."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return timedelta(seconds=min(float(value), LIFETIME_S_MAX))
