"""Flows: a login that was begun and not yet completed."""

import base64
import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode, urlsplit

from mcpgateway.oauth.domain.grants import Terms
from mcpgateway.oauth.domain.metadata import PKCE_METHOD

FLOW_LIFETIME: Final = timedelta(minutes=10)
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A login that was begun.

    Attributes:
        id: Its id; the ciphertext is bound to it.
        server_id: The server to connect to.
        user_id: Who began it, and only may complete it.
        browser_sha256: Of a value that only the browser which began it has.
        fingerprint: Of the settings that it was begun under.
        terms: With whom the grant is made.
        sends_issuer: Whether the answer has to name the issuer.
        scopes: What was asked for.
        verifier: The PKCE verifier.
    """

    id: str
    server_id: str
    user_id: str
    browser_sha256: bytes = field(repr=False)
    fingerprint: str
    terms: Terms
    sends_issuer: bool
    scopes: tuple[str, ...]
    verifier: str = field(repr=False)


def secret_text(random_bytes: bytes) -> str:
    """Return random bytes as a text for URLs."""
    return base64.urlsafe_b64encode(random_bytes).decode().rstrip("=")


def sha256(text: str) -> bytes:
    """Return the hash under which a secret text is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def authorization_url(endpoint: str, flow: Flow, state: str) -> str:
    """Return the address at which the user agrees."""
    query = {
        "response_type": "code",
        "client_id": flow.terms.client_id,
        "redirect_uri": flow.terms.redirect_uri,
        "state": state,
        "code_challenge": secret_text(sha256(flow.verifier)),
        "code_challenge_method": PKCE_METHOD,
        "resource": flow.terms.resource,
    }
    if flow.scopes:
        query["scope"] = " ".join(flow.scopes)
    joint = "&" if urlsplit(endpoint).query else "?"
    return f"{endpoint}{joint}{urlencode(query)}"
