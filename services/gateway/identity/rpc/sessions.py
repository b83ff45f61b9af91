"""Serves the sessions and the password of the caller, and one-time links to administrators."""

import grpc

from gateway.identity.domain import LinkRecord
from gateway.identity.engine.own_sessions import OwnSessions
from gateway.identity.engine.sign_in_links import NewLink, SignInLinks
from gateway.identity.rpc.service_tokens import calling_user, timestamp
from gateway.identity.rpc.sign_in import PURPOSES, session_to_proto
from parley.api.identity.v1 import session_pb2
from parley.api.identity.v1 import session_service_pb2 as api
from parley.api.identity.v1.session_service_pb2_grpc import (
    SessionServiceServicer,
    SignInLinkServiceServicer,
)


class SessionServicer(SessionServiceServicer):
    """Serves sessions."""

    def __init__(self, sessions: OwnSessions) -> None:
        self._sessions = sessions

    async def ListSessions(  # noqa: N802 (the name is the proto's)
        self, request: api.ListSessionsRequest, context: grpc.aio.ServicerContext
    ) -> api.ListSessionsResponse:
        """List the caller's sessions."""
        found = await self._sessions.list(calling_user())
        current = request.current_session_id
        return api.ListSessionsResponse(
            sessions=[session_to_proto(each, current) for each in found]
        )

    async def RevokeSession(  # noqa: N802 (the name is the proto's)
        self, request: api.RevokeSessionRequest, context: grpc.aio.ServicerContext
    ) -> api.RevokeSessionResponse:
        """End a session of the caller."""
        await self._sessions.end(calling_user(), request.session_id)
        return api.RevokeSessionResponse()

    async def SignOut(  # noqa: N802 (the name is the proto's)
        self, request: api.SignOutRequest, context: grpc.aio.ServicerContext
    ) -> api.SignOutResponse:
        """End the session of the request, or all."""
        ended = await self._sessions.sign_out(
            calling_user(), request.current_session_id, everywhere=request.everywhere
        )
        return api.SignOutResponse(ended_count=ended)

    async def ChangePassword(  # noqa: N802 (the name is the proto's)
        self, request: api.ChangePasswordRequest, context: grpc.aio.ServicerContext
    ) -> api.ChangePasswordResponse:
        """Change the caller's password."""
        await self._sessions.change_password(
            calling_user(),
            current=request.current_password,
            new=request.new_password,
            kept_session=request.current_session_id,
        )
        return api.ChangePasswordResponse()


class SignInLinkServicer(SignInLinkServiceServicer):
    """Serves one-time links."""

    def __init__(self, links: SignInLinks) -> None:
        self._links = links

    async def CreateSignInLink(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateSignInLinkRequest, context: grpc.aio.ServicerContext
    ) -> api.CreateSignInLinkResponse:
        """Make a link; its address is in this response only."""
        asked = NewLink(
            request_id=request.request_id,
            user_id=request.user_id,
            purpose={value: each for each, value in PURPOSES.items()}.get(request.purpose),
            lifetime_s=request.lifetime_s,
        )
        made = await self._links.create(calling_user(), asked)
        return api.CreateSignInLinkResponse(link=_link_to_proto(made.record), url=made.url)

    async def ListSignInLinks(  # noqa: N802 (the name is the proto's)
        self, request: api.ListSignInLinksRequest, context: grpc.aio.ServicerContext
    ) -> api.ListSignInLinksResponse:
        """List the links of a user."""
        found = await self._links.list(calling_user(), request.user_id)
        return api.ListSignInLinksResponse(links=map(_link_to_proto, found))

    async def RevokeSignInLink(  # noqa: N802 (the name is the proto's)
        self, request: api.RevokeSignInLinkRequest, context: grpc.aio.ServicerContext
    ) -> api.RevokeSignInLinkResponse:
        """Take a link back."""
        await self._links.revoke(calling_user(), request.user_id, request.link_id)
        return api.RevokeSignInLinkResponse()


def _link_to_proto(record: LinkRecord) -> session_pb2.SignInLink:
    return session_pb2.SignInLink(
        link_id=record.id,
        user_id=record.user_id,
        purpose=PURPOSES[record.purpose],
        created_by_user_id=record.created_by_user_id,
        created_at=timestamp(record.created_at),
        expires_at=timestamp(record.expires_at),
        used_at=None if record.used_at is None else timestamp(record.used_at),
        revoked_at=None if record.revoked_at is None else timestamp(record.revoked_at),
    )
