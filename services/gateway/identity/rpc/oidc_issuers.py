"""Serves identity providers to administrators, and linked identities to their users."""

from typing import Literal

import grpc

from gateway.identity.domain import LinkedIdentity, OidcIssuer, StoredIssuer
from gateway.identity.engine.identity_links import IdentityLinks
from gateway.identity.engine.oidc_administration import IssuerChange, OidcAdministration
from gateway.identity.errors import InvalidRequest
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from parley.api.identity.v1 import access_pb2
from parley.api.identity.v1 import linked_identity_service_pb2 as links_api
from parley.api.identity.v1 import oidc_issuer_service_pb2 as api
from parley.api.identity.v1.linked_identity_service_pb2_grpc import LinkedIdentityServiceServicer
from parley.api.identity.v1.oidc_issuer_service_pb2_grpc import OidcIssuerServiceServicer
from parley.rpc import Violation

DEFAULT_SCOPES = ("openid", "profile", "email")

Context = grpc.aio.ServicerContext


class OidcIssuerServicer(OidcIssuerServiceServicer):
    """Serves identity providers."""

    def __init__(self, administration: OidcAdministration, *, public_url: str) -> None:
        self._administration = administration
        self._public_url = public_url

    async def ListOidcIssuers(  # noqa: N802 (the name is the proto's)
        self, request: api.ListOidcIssuersRequest, context: Context
    ) -> api.ListOidcIssuersResponse:
        """List all issuers."""
        found = await self._administration.all()
        return api.ListOidcIssuersResponse(oidc_issuers=map(self._to_proto, found))

    async def PutOidcIssuer(  # noqa: N802 (the name is the proto's)
        self, request: api.PutOidcIssuerRequest, context: Context
    ) -> api.PutOidcIssuerResponse:
        """Create or replace an issuer."""
        issuer = OidcIssuer(
            name=request.name,
            display_name=request.display_name,
            issuer=request.issuer,
            client_id=request.client_id,
            scopes=tuple(request.scopes) or DEFAULT_SCOPES,
            creates_users=request.creates_users,
            links_by_email=request.links_by_email,
            role=_role_of(request.role),
            groups_claim=request.groups_claim,
            groups=dict(request.groups),
        )
        secret = request.client_secret if request.HasField("client_secret") else None
        change = IssuerChange(issuer, secret, request.expected_version)
        stored = await self._administration.put(change)
        return api.PutOidcIssuerResponse(oidc_issuer=self._to_proto(stored))

    async def DeleteOidcIssuer(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteOidcIssuerRequest, context: Context
    ) -> api.DeleteOidcIssuerResponse:
        """Delete an issuer."""
        await self._administration.delete(request.name)
        return api.DeleteOidcIssuerResponse()

    def _to_proto(self, stored: StoredIssuer) -> api.OidcIssuer:
        issuer = stored.issuer
        return api.OidcIssuer(
            name=issuer.name,
            display_name=issuer.display_name,
            issuer=issuer.issuer,
            client_id=issuer.client_id,
            has_client_secret=stored.has_client_secret,
            scopes=issuer.scopes,
            creates_users=issuer.creates_users,
            links_by_email=issuer.links_by_email,
            role=access_pb2.Role.Value(f"ROLE_{issuer.role.upper()}"),
            groups_claim=issuer.groups_claim,
            groups=issuer.groups,
            is_read_only=stored.version == 0,
            version=stored.version,
            redirect_uri=f"{self._public_url}/login/oidc/{issuer.name}/callback",
        )


class LinkedIdentityServicer(LinkedIdentityServiceServicer):
    """Serves linked identities."""

    def __init__(self, links: IdentityLinks) -> None:
        self._links = links

    async def ListLinkedIdentities(  # noqa: N802 (the name is the proto's)
        self, request: links_api.ListLinkedIdentitiesRequest, context: Context
    ) -> links_api.ListLinkedIdentitiesResponse:
        """List the caller's identities."""
        found = await self._links.all(calling_user())
        return links_api.ListLinkedIdentitiesResponse(linked_identities=map(_identity, found))

    async def StartIdentityLink(  # noqa: N802 (the name is the proto's)
        self, request: links_api.StartIdentityLinkRequest, context: Context
    ) -> links_api.StartIdentityLinkResponse:
        """Begin to link an identity."""
        path = await self._links.start(calling_user(), request.issuer)
        return links_api.StartIdentityLinkResponse(path=path)

    async def UnlinkIdentity(  # noqa: N802 (the name is the proto's)
        self, request: links_api.UnlinkIdentityRequest, context: Context
    ) -> links_api.UnlinkIdentityResponse:
        """Unlink an identity."""
        await self._links.unlink(calling_user(), request.linked_identity_id)
        return links_api.UnlinkIdentityResponse()


def _role_of(value: "access_pb2.Role.ValueType") -> Literal["member", "auditor"]:
    match value:
        case access_pb2.ROLE_UNSPECIFIED | access_pb2.ROLE_MEMBER:
            return "member"
        case access_pb2.ROLE_AUDITOR:
            return "auditor"
        case _:
            raise InvalidRequest(Violation("role", "give member or auditor"))


def _identity(linked: LinkedIdentity) -> links_api.LinkedIdentity:
    return links_api.LinkedIdentity(
        linked_identity_id=linked.id,
        issuer=linked.issuer,
        subject=linked.subject,
        linked_at=timestamp(linked.linked_at),
    )
