"""The origins that the credentials of a server are sent to.

Credentials were entered for these origins. To be sent to another one, they must be entered again.
"""

from mcpgateway.servers.domain import AuthKind, OAuthSettings, Server, ServerSettings
from mcpgateway.servers.errors import CredentialsNeeded
from parley.http import Address, AddressInvalid


def credential_origins(settings: ServerSettings) -> frozenset[str]:
    """Return where credentials are sent to, each as `https://host:port`.

    Keys and headers are sent to the server itself. The secret of an OAuth client is sent to the
    configured endpoints, or to those that the issuer or else the server itself names.
    """
    if settings.auth_kind is not AuthKind.OAUTH2:
        return frozenset({_origin(settings.url)})
    oauth = settings.oauth or OAuthSettings()
    if oauth.authorization_url and oauth.token_url:
        endpoints = (oauth.token_url, oauth.revocation_url)
        return frozenset(_origin(url) for url in endpoints if url)
    return frozenset({_origin(oauth.issuer or settings.url)})


def check_origins(before: Server, after: ServerSettings) -> None:
    """Check that a change which keeps the stored credentials sends them to no other origin.

    Raises:
        CredentialsNeeded: It would.
    """
    old = credential_origins(before.settings)
    added = credential_origins(after) - old
    if before.has_credentials and added:
        raise CredentialsNeeded(origins_text(old), origins_text(added))


def origins_text(origins: frozenset[str]) -> str:
    """Return origins as one text, always in the same order."""
    return " ".join(sorted(origins))


def _origin(url: str) -> str:
    """Return the origin of a URL; the URL itself if its origin may be read differently elsewhere.

    There are several mappings of a host with other letters than ASCII to the name that is looked
    up, so such a URL has an origin of its own.
    """
    if not url.isascii():
        return url
    try:
        address, _ = Address.read(url)
    except AddressInvalid:
        return url
    return address.origin
