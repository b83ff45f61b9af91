"""ChatService: all its methods in one servicer."""

from chatd.chats.rpc.arrangement import ArrangementMethods
from chatd.chats.rpc.control import ControlMethods
from chatd.chats.rpc.forking import ForkMethods
from chatd.chats.rpc.reading import ReadMethods
from chatd.chats.rpc.searching import SearchMethods
from chatd.chats.rpc.sending import SendMethods


class ChatServicer(
    SendMethods, ForkMethods, ReadMethods, SearchMethods, ControlMethods, ArrangementMethods
):
    """Serves chats."""
