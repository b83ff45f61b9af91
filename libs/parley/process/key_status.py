"""Reports the keys of a process, for commands that rotate keys."""

from typing import Any

from parley.api.identity.v1 import key_status_service_pb2 as api
from parley.api.identity.v1.key_status_service_pb2_grpc import KeyStatusServiceServicer
from parley.identity import Signer, describe_certificate
from parley.process.key_rotation import KeyRotation
from parley.rpc import TlsFiles


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
