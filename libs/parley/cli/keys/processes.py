"""The keys that running processes report."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from parley.cli.home.layout import Home
from parley.clock import Clock
from parley.identity import CertificateFiles, ServiceName, Signer, SigningKey, server_name

if TYPE_CHECKING:
    import grpc

ANSWER_S_MAX = 5.0


@dataclass(frozen=True, slots=True)
class MasterKeyUse:
    """The master keys of a process, see `parley.process.key_rotation.MasterKeyStatus`."""

    key_ids: tuple[str, ...]
    values: Mapping[str, int]
    settled_key_id: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessKeys:
    """The keys of one process.

    Attributes:
        name: Its name.
        answers: Whether it answered; without an answer nothing else is known.
        signing_key_id: The key that it signs with.
        master: Its master keys; None if it has none.
        authorities: The fingerprints of the certificate authorities that it believes.
    """

    name: str
    answers: bool = True
    signing_key_id: str = ""
    master: MasterKeyUse | None = None
    authorities: tuple[str, ...] = ()


class Processes(Protocol):
    """The running processes of an installation."""

    async def keys(self) -> Sequence[ProcessKeys]:
        """Return the keys of every process that should run."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A process to ask."""

    name: str
    service: ServiceName
    address: str


class RpcProcesses:
    """Asks processes with the identity of the gateway, whose key the home has."""

    def __init__(self, home: Home, targets: Sequence[Target], clock: Clock) -> None:
        self._home = home
        self._targets = targets
        self._clock = clock

    async def keys(self) -> Sequence[ProcessKeys]:
        """Return the keys of all processes; they are asked at the same time."""
        key = SigningKey.load(self._home.signing_key_file(ServiceName.GATEWAY))
        signer = Signer(ServiceName.GATEWAY, key, self._clock)
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self._ask(each, signer)) for each in self._targets]
        return [task.result() for task in asked]

    async def _ask(self, target: Target, signer: Signer) -> ProcessKeys:
        # grpc takes longer to import than the rest of the command together.
        import grpc

        from parley.api.identity.v1 import key_status_service_pb2 as api
        from parley.api.identity.v1.key_status_service_pb2_grpc import KeyStatusServiceStub

        token = signer.call_token(target.service)
        async with self._channel(target) as channel:
            try:
                found: api.GetKeyStatusResponse = await KeyStatusServiceStub(channel).GetKeyStatus(
                    api.GetKeyStatusRequest(),
                    metadata=(("authorization", f"Bearer {token}"),),
                    timeout=ANSWER_S_MAX,
                )
            except grpc.aio.AioRpcError:
                return ProcessKeys(target.name, answers=False)
        master = MasterKeyUse(
            tuple(found.master.key_ids),
            dict(found.master.values),
            found.master.settled_key_id,
            tuple(found.master.damaged),
        )
        return ProcessKeys(
            target.name,
            signing_key_id=found.signing_key_id,
            master=master if found.HasField("master") else None,
            authorities=tuple(found.certificate.authorities),
        )

    def _channel(self, target: Target) -> "grpc.aio.Channel":
        import grpc

        options: list[tuple[str, Any]] = [("grpc.enable_http_proxy", 0)]
        if not target.address.startswith("tls:"):
            return grpc.aio.insecure_channel(target.address.removeprefix("tcp:"), options)
        files = CertificateFiles.read(self._home.tls / ServiceName.GATEWAY)
        credentials = grpc.ssl_channel_credentials(
            files.authority_pem, files.key_pem, files.certificate_pem
        )
        options.append(("grpc.ssl_target_name_override", server_name(target.service)))
        return grpc.aio.secure_channel(target.address.removeprefix("tls:"), credentials, options)
