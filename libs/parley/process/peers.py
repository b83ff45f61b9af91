"""Calls to and from other services: trust, signing, channels and the server of a process."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

from parley.api.identity.v1 import key_status_service_pb2 as api
from parley.api.identity.v1.key_status_service_pb2_grpc import KeyStatusServiceServicer
from parley.identity import (
    Caller,
    Guard,
    InMemoryRevocations,
    Revocations,
    ServiceName,
    Signer,
    TicketIssuer,
    TicketReader,
    Trust,
    describe_certificate,
    followed_signing_key,
)
from parley.process.key_rotation import KeyRotation
from parley.process.service import Process
from parley.process.service_settings import Environment, ServiceSettings
from parley.rpc import (
    Address,
    Channels,
    ErrorTable,
    FollowedRevocations,
    Registration,
    RunningServer,
    Scheme,
    TlsFiles,
    TunnelledMethods,
    connect,
    serve,
)
from parley.tasks import BackgroundTasks


class Neighbours:
    """The connections of a process to other services, set up alike in every service.

    Raises:
        SigningKeyUnreadable: The key that signs this process's calls cannot be read.
        TrustFileUnreadable: The public keys of the other services cannot be read.
    """

    def __init__(self, settings: ServiceSettings, process: Process) -> None:
        self._settings = settings
        self._process = process
        self._service = ServiceName(process.service)
        directory = settings.tls_directory
        self._tls = None if directory is None else TlsFiles(directory)
        self._trust = Trust(settings.trust_file, process.clock)
        key = followed_signing_key(settings.signing_key_file)
        self.signer = Signer(self._service, key, process.clock)
        self.ticket_office = TicketIssuer(key, process.clock)
        self.ticket_check = TicketReader(self._trust, process.clock)

    @asynccontextmanager
    async def channels(
        self, audience: ServiceName, addresses: Iterable[Address]
    ) -> AsyncIterator[Channels]:
        """Yield channels to the processes of another service; they are closed afterwards."""
        open_channel = partial(
            connect,
            audience=audience,
            signer=self.signer,
            telemetry=self._process.telemetry,
            tls=self._tls,
        )
        channels = Channels(addresses, open_channel)
        try:
            yield channels
        finally:
            await channels.close()

    @asynccontextmanager
    async def revocations(self, gateways: tuple[Address, ...]) -> AsyncIterator[Revocations]:
        """Follow the list of revoked service tokens; without a gateway all are refused."""
        if not gateways:
            yield InMemoryRevocations()
            return
        async with (
            self.channels(ServiceName.GATEWAY, gateways) as channels,
            BackgroundTasks(self._process.supervision) as tasks,
        ):
            followed = FollowedRevocations(
                channels, clock=self._process.clock, random=self._process.random
            )
            tasks.keep("revocations.follow", followed.run)
            yield followed

    def admission(self, revocations: Revocations) -> Callable[[str, str], Caller]:
        """Return a function that checks a token received inside an admitted call.

        It takes a method and an authorization, and returns the caller that may make that call or
        raises an `IdentityError`. The connection's certificate was checked when the call was
        admitted.
        """
        guard = Guard(
            self._service,
            self._trust,
            revocations,
            self._process.clock,
            peers_by_certificate=False,
        )
        return lambda method, authorization: guard.admit(method, authorization, None)

    def serve(
        self,
        servicers: Sequence[object],
        *,
        revocations: Revocations,
        errors: ErrorTable,
        domain: str,
        tunnelled: TunnelledMethods | None = None,
        master_keys: KeyRotation | None = None,
    ) -> AbstractAsyncContextManager[RunningServer]:
        """Serve generated services with these servicers until the context ends, then drain.

        Args:
            servicers: The servicers.
            revocations: The revoked service tokens.
            errors: The service's own errors and their problems.
            domain: The domain of the error reasons.
            tunnelled: Is given the methods, for calls tunnelled through a stream of this server.
            master_keys: The rotation of its master keys, if it has any.
        """
        settings, process = self._settings, self._process
        guard = Guard(
            self._service,
            self._trust,
            revocations,
            process.clock,
            peers_by_certificate=settings.listen.scheme is Scheme.TLS,
        )
        return serve(
            settings.listen,
            [
                *(Registration.of(servicer) for servicer in servicers),
                Registration.of(KeyStatusServicer(self.signer, self._tls, master_keys)),
            ],
            guard=guard,
            errors=errors,
            domain=domain,
            telemetry=process.telemetry,
            tls=self._tls,
            is_development=settings.environment is Environment.DEVELOPMENT,
            user_calls_max=settings.user_grpc_calls_max,
            tunnelled=tunnelled,
        )


class KeyStatusServicer(KeyStatusServiceServicer):
    """Implements `KeyStatusService`.

    Args:
        signer: Signs the calls of the process.
        tls: Its certificate, if it has one.
        master_keys: The rotation of its master keys, if it has any.
    """

    def __init__(
        self, signer: Signer, tls: TlsFiles | None, master_keys: KeyRotation | None
    ) -> None:
        self._signer = signer
        self._tls = tls
        self._master_keys = master_keys

    async def GetKeyStatus(  # noqa: N802 (the name is the proto's)
        self, request: api.GetKeyStatusRequest, context: Any
    ) -> api.GetKeyStatusResponse:
        """Return the ids of the keys in use."""
        return api.GetKeyStatusResponse(
            signing_key_id=self._signer.key_id,
            master=await self._master(),
            certificate=self._certificate(),
        )

    async def _master(self) -> api.MasterKeyStatus | None:
        if self._master_keys is None:
            return None
        found = await self._master_keys.status()
        return api.MasterKeyStatus(
            key_ids=found.key_ids,
            values=found.values,
            settled_key_id=found.settled_key_id,
            damaged=found.damaged,
        )

    def _certificate(self) -> api.CertificateStatus | None:
        if self._tls is None:
            return None
        files = self._tls.read()
        return api.CertificateStatus(
            serial=describe_certificate(files.certificate_pem).serial,
            authorities=files.authorities,
        )
