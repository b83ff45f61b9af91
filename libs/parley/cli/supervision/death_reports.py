"""Reports of deaths: the supervisor has waited for a chatd, and tells a living one that it is dead.

Without a living one nothing is reported: a chatd that starts finds the instance file unlocked.
"""

from pathlib import Path
from typing import Protocol

from parley.cli.home.layout import Home
from parley.cli.progress import Progress
from parley.clock import Clock
from parley.identity import ServiceName, Signer, SigningKey
from parley.instance_file import instance_of_child

ANSWER_S_MAX = 1.0


class DeathReports(Protocol):
    """Reports deaths."""

    async def report(self, instance_file: Path, pid: int, living: tuple[str, ...]) -> None:
        """Report the death of a child that was waited for to one of the living."""
        ...


class RpcDeathReports:
    """Reports deaths to chatd, signed with its own key, which only the supervisor's user reads."""

    def __init__(self, home: Home, clock: Clock, progress: Progress) -> None:
        self._home = home
        self._clock = clock
        self._progress = progress

    async def report(self, instance_file: Path, pid: int, living: tuple[str, ...]) -> None:
        """Report a death to the first of the living that answers."""
        worker_id = instance_of_child(instance_file, pid)
        if worker_id is None or not living:
            return
        if not await self.end(worker_id, living):
            self._progress.say(f"  no chatd heard that {instance_file.stem} has died")

    async def end(self, worker_id: str, living: tuple[str, ...]) -> bool:
        """Have a worker ended by the first that answers; return whether one did."""
        key = SigningKey.load(self._home.signing_key_file(ServiceName.CHATD))
        token = Signer(ServiceName.CHATD, key, self._clock).call_token(ServiceName.CHATD)
        for address in living:
            if await _is_ended(address, worker_id, token):
                return True
        return False


async def _is_ended(address: str, worker_id: str, token: str) -> bool:
    """Return whether a chatd has ended the worker."""
    # grpc takes longer to import than the rest of the supervisor together.
    import grpc

    from parley.api.chat.v1 import worker_service_pb2, worker_service_pb2_grpc

    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(address, (("grpc.enable_http_proxy", 0),)) as channel:
        try:
            await worker_service_pb2_grpc.WorkerServiceStub(channel).EndWorker(
                worker_service_pb2.EndWorkerRequest(
                    request_id=f"end-{worker_id}", worker_id=worker_id
                ),
                metadata=metadata,
                timeout=ANSWER_S_MAX,
            )
        except grpc.aio.AioRpcError:
            return False
    return True
