from chatd.domain.chat import ChatId, NewMessage, Owner, OwnerId, Role
from chatd.domain.partials import Chunk
from chatd.domain.parts import Text
from chatd.domain.pieces import Piece
from chatd.store.chats import PostgresChats
from chatd.store.partials import PostgresPartials
from parley.clock import FakeClock
from parley.postgres import Pool

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
GONE = ChatId("00000000-0000-0000-0000-000000000002")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
HELLO = NewMessage(Role.USER, (Text("hello"),), ANN.id)


def chunk(chat_id: ChatId, attempt: int, first_seq: int, *texts: str) -> Chunk:
    pieces = tuple(Piece(Role.ASSISTANT, 0, Text(text)) for text in texts)
    return Chunk(chat_id, 1, attempt, first_seq, pieces)


async def test_chunks_come_back_in_order_and_only_those_of_the_episode(
    pool: Pool,
) -> None:
    partials = PostgresPartials(pool)
    async with PostgresChats(pool, lambda state: None, FakeClock()) as chats:
        await chats.create(
            CHAT, owner=ANN, title="x", has_own_title=True, message=HELLO, claimed_by=None
        )
    await partials.add((chunk(CHAT, 0, 3, "lo\x00"), chunk(CHAT, 0, 1, "h", "el")))
    await partials.add((chunk(CHAT, 1, 1, "other"), chunk(GONE, 1, 1, "nobody")))
    loaded = await partials.load(CHAT, 1, 0)
    assert [piece.part for piece in loaded] == [Text("h"), Text("el"), Text("lo\x00")]
    assert await partials.load(CHAT, 1, 2) == ()
