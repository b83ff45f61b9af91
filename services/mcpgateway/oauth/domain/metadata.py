"""What resources and authorization servers say about themselves (RFC 9728, RFC 8414, RFC 9207)."""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from mcpgateway.servers.oauth_validation import SCOPE, SCOPES_MAX

URL_CHARACTERS_MAX: Final = 2048
PKCE_METHOD: Final = "S256"
OFFLINE_SCOPE: Final = "offline_access"
_FIELD: Final = r'(?:^|[\s,]){}\s*=\s*(?:"([^"]*)"|([^\s,"]+))'


class Malformed(ValueError):
    """A document or a header is not what the RFCs say."""


class ResourceMetadata(msgspec.Struct, frozen=True):
    """The metadata of a protected resource."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] = ()


class _ServerDocument(msgspec.Struct, frozen=True):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationServer:
    """An authorization server, as its metadata or the settings of the MCP server describe it.

    Attributes:
        issuer: Its identifier; empty if the settings do not name it.
        authorization_url: Where users agree.
        token_url: Where codes and refresh tokens are exchanged.
        revocation_url: Where tokens are revoked; empty if nowhere.
        registration_url: Where clients are registered; empty if nowhere.
        scopes: The scopes that it lists.
        auth_methods: How clients may authenticate at the token endpoint.
        sends_issuer: Whether its answers always name it (RFC 9207).
        takes_documents: Whether the URL of a document may be a client id.
        has_pkce: Whether it offers PKCE with S256.
    """

    issuer: str
    authorization_url: str
    token_url: str
    revocation_url: str = ""
    registration_url: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ("client_secret_basic",)
    sends_issuer: bool = False
    takes_documents: bool = False
    has_pkce: bool = True

    @property
    def urls(self) -> tuple[str, ...]:
        """Every endpoint that it has."""
        every = (
            self.authorization_url,
            self.token_url,
            self.revocation_url,
            self.registration_url,
        )
        return tuple(url for url in every if url)


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a refusal of a resource says in WWW-Authenticate."""

    metadata_url: str = ""
    scopes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Discovered:
    """The authorization server of a resource, and what to ask it for."""

    server: AuthorizationServer
    resource: str
    scopes: tuple[str, ...]


def read_challenge(header: str) -> Challenge:
    """Return what the header says; what cannot be read counts as absent."""
    return Challenge(
        _parameter(header, "resource_metadata")[:URL_CHARACTERS_MAX],
        scopes_of(_parameter(header, "scope")),
        _parameter(header, "error")[:64],
    )


def scopes_of(text: str) -> tuple[str, ...]:
    """Return the scopes of a space-separated text, each once; malformed ones are left out."""
    return merged_scopes(tuple(text.split()))


def merged_scopes(*several: tuple[str, ...]) -> tuple[str, ...]:
    """Return the union in order, within the limit; malformed ones are left out."""
    every = dict.fromkeys(scope for scopes in several for scope in scopes if SCOPE.fullmatch(scope))
    return tuple(every)[:SCOPES_MAX]


def read_resource(document: Any, url: str) -> ResourceMetadata:
    """Return the metadata of the resource at `url`.

    Raises:
        Malformed: They are incomplete, or those of another resource.
    """
    metadata: ResourceMetadata = _converted(document, ResourceMetadata)
    if not covers(metadata.resource, url):
        raise Malformed("its metadata are those of another resource")
    return metadata


def read_server(document: Any, issuer: str) -> AuthorizationServer:
    """Return the authorization server that the document of an issuer describes.

    Raises:
        Malformed: The document is incomplete, or of another issuer.
    """
    read = _converted(document, _ServerDocument)
    if not is_same_issuer(read.issuer, issuer):
        raise Malformed("its metadata name another issuer")
    return AuthorizationServer(
        issuer=read.issuer,
        authorization_url=read.authorization_endpoint,
        token_url=read.token_endpoint,
        revocation_url=read.revocation_endpoint,
        registration_url=read.registration_endpoint,
        scopes=merged_scopes(read.scopes_supported),
        auth_methods=read.token_endpoint_auth_methods_supported,
        sends_issuer=read.authorization_response_iss_parameter_supported,
        takes_documents=read.client_id_metadata_document_supported,
        has_pkce=PKCE_METHOD in read.code_challenge_methods_supported,
    )


def resource_metadata_urls(url: str, challenge: Challenge) -> tuple[str, ...]:
    """Return where the metadata of a resource may be, in order (RFC 9728, 3.1 and 5.1)."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    path = parts.path.rstrip("/")
    places = (challenge.metadata_url, f"{root}{path}", root)
    return tuple(dict.fromkeys(place for place in places if place))


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return where the metadata of an issuer may be, in order (RFC 8414, 3.1 and 5)."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(places))


def is_same_issuer(left: str, right: str) -> bool:
    """Compare issuers as texts; only the slash of a root may be missing."""
    shorter, longer = sorted((left, right), key=len)
    return left == right or (longer == f"{shorter}/" and urlsplit(shorter).path == "")


def is_answer_of(server_issuer: str, *, sends_issuer: bool, issuer: str | None) -> bool:
    """Return whether an answer may come from the server that was asked (RFC 9207, 2.4)."""
    if issuer is None:
        return not sends_issuer
    return bool(server_issuer) and issuer == server_issuer


def covers(resource: str, url: str) -> bool:
    """Return whether a resource is the one at `url`, or one above it on the same origin."""
    try:
        above, below = urlsplit(resource), urlsplit(url)
        is_same_origin = _origin(resource) == _origin(url)
    except ValueError:
        return False
    if not is_same_origin or above.fragment or above.query not in ("", below.query):
        return False
    path = above.path.rstrip("/")
    return below.path.rstrip("/") == path or below.path.startswith(f"{path}/")


def canonical(url: str) -> str:
    """Return the identifier of the resource at `url` (RFC 8707)."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}{query}"


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return (parts.scheme.lower(), (parts.hostname or "").lower(), port)


def _parameter(header: str, name: str) -> str:
    found = re.search(_FIELD.format(re.escape(name)), header, re.IGNORECASE)
    return "" if found is None else found[1] if found[1] is not None else found[2]


def _converted(document: Any, kind: Any) -> Any:
    if not isinstance(document, dict):
        raise Malformed("its metadata are no JSON object")
    given = {name: value for name, value in document.items() if value is not None}
    try:
        read = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"its metadata are incomplete: {error}") from error
    texts = [value for value in msgspec.to_builtins(read).values() if isinstance(value, str)]
    if any(len(text) > URL_CHARACTERS_MAX or not text.isprintable() for text in texts):
        raise Malformed("its metadata have texts that are too long or not printable")
    return read
