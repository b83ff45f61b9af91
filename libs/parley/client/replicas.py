"""The chatd processes of a client, and which one a chat prefers."""

from dataclasses import dataclass

from parley.api.chat.v1.action_service_pb2_grpc import ActionServiceStub
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceStub
from parley.api.chat.v1.revert_service_pb2_grpc import RevertServiceStub
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.rpc import Address, Channels, ranked


@dataclass(frozen=True, slots=True)
class Replica:
    """The stubs of one chatd process."""

    chats: ChatServiceStub
    actions: ActionServiceStub
    reverts: RevertServiceStub
    streams: StreamServiceStub


class Replicas:
    """Selects replicas as the gateways do, so that a reader reaches the owner of its chat."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._replicas: dict[Address, Replica] = {}

    def ranked(self, key: str) -> tuple[Replica, ...]:
        """Return the replicas in the order of preference of `key`."""
        return tuple(self._at(address) for address in ranked(key, self._channels.addresses))

    def _at(self, address: Address) -> Replica:
        if address not in self._replicas:
            channel = self._channels.at(address)
            self._replicas[address] = Replica(
                ChatServiceStub(channel),
                ActionServiceStub(channel),
                RevertServiceStub(channel),
                StreamServiceStub(channel),
            )
        return self._replicas[address]
