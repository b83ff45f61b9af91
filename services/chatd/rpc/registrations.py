"""Which proto services this process serves, and by what."""

from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.stream_servicer import StreamServicer
from parley.api.chat.v1 import chat_service_pb2, stream_service_pb2
from parley.api.chat.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server
from parley.api.chat.v1.stream_service_pb2_grpc import add_StreamServiceServicer_to_server
from parley.rpc import Registration


def registrations(chats: ChatServicer, streams: StreamServicer) -> tuple[Registration, ...]:
    """Return everything chatd answers."""
    return (
        Registration(
            chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"],
            add_ChatServiceServicer_to_server,
            chats,
        ),
        Registration(
            stream_service_pb2.DESCRIPTOR.services_by_name["StreamService"],
            add_StreamServiceServicer_to_server,
            streams,
        ),
    )
