"""An identity provider (OpenID Connect) on a real socket, which can be made to lie."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from parley.clock import Clock

CLIENT_ID, CLIENT_SECRET = "parley", "secret of the client"


class FakeIssuer:
    """An issuer with one user; what it says can be changed.

    Attributes:
        claims: Of the ID tokens, over what is right; None leaves one out.
        metadata: Of the discovery document, over what is right.
        algorithm: That ID tokens are signed with.
        kid: The id of the key that ID tokens name.
        token_status: The status of the token endpoint.
        asked: The forms that the token endpoint got.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.key = rsa.generate_private_key(65537, 2048)
        self.claims: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.algorithm = "RS256"
        self.kid = "key-1"
        self.token_status = 200
        self.asked: list[dict[str, str]] = []
        self.url = ""
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, location: str) -> str:
        """Let the user agree, and return where the issuer sends the browser to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert location.startswith(f"{self.url}/authorize?")
        assert query["response_type"] == "code"
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.url}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    async def discovery(self, request: web.Request) -> web.Response:
        """Serve the discovery document."""
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/jwks",
                "end_session_endpoint": f"{self.url}/logout",
                "code_challenge_methods_supported": ["S256"],
            }
            | self.metadata
        )

    async def jwks(self, request: web.Request) -> web.Response:
        """Serve the public keys."""
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return web.json_response({"keys": [public | {"kid": "key-1", "use": "sig"}]})

    async def token(self, request: web.Request) -> web.Response:
        """Exchange a code, once and with its verifier."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        if self.token_status != 200:
            return web.json_response({"error": "server_error"}, status=self.token_status)
        asked = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        pair = base64.b64encode(f"{CLIENT_ID}:secret%20of%20the%20client".encode()).decode()
        is_client = request.headers.get("Authorization") == f"Basic {pair}"
        if not is_client or asked is None or asked["code_challenge"] != challenge:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"id_token": self._id_token(asked["nonce"]), "token_type": "x"})

    def _id_token(self, nonce: str) -> str:
        now = int(self._clock.now().timestamp())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "subject-1",
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "preferred_username": "Grace@corp.example",
            "name": "Grace Hopper",
            "email": "grace@corp.example",
        } | self.claims
        said = {name: value for name, value in claims.items() if value is not None}
        key: Any = self.key
        if self.algorithm == "none":
            key = ""
        elif self.algorithm == "HS256":
            key = "a shared secret that anybody could know"
        return jwt.encode(said, key, algorithm=self.algorithm, headers={"kid": self.kid})


@asynccontextmanager
async def fake_issuer(clock: Clock) -> AsyncIterator[FakeIssuer]:
    """Serve an issuer."""
    issuer = FakeIssuer(clock)
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.discovery)
    app.router.add_get("/jwks", issuer.jwks)
    app.router.add_post("/token", issuer.token)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield issuer
    finally:
        await runner.cleanup()
