import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.bus import Notice, Resync
from parley.bus.payload import PAYLOAD_BYTES_MAX, PayloadUnreadable, decode, encode

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=16)
notices = st.builds(Notice, names, names, st.integers(0, 2**63 - 1))


@settings(database=None)
@given(st.lists(notices, max_size=400))
def test_what_is_encoded_is_decoded_in_order(sent: list[Notice]) -> None:
    heard = [item for payload in encode(sent) for item in decode(payload)]
    assert heard == sent


def test_many_notices_share_a_payload_and_none_exceeds_the_bound() -> None:
    sent = [Notice("chat", f"{number:036}", number) for number in range(1000)]
    payloads = list(encode(sent))
    sizes = [len(payload.encode()) for payload in payloads]
    assert max(sizes) <= PAYLOAD_BYTES_MAX
    assert min(sizes[:-1]) > PAYLOAD_BYTES_MAX - 100


def test_the_longest_notice_fits_alone() -> None:
    longest = Notice("\x01" * 64, "\x01" * 512, 2**63 - 1)
    (payload,) = encode([longest])
    assert len(payload.encode()) <= PAYLOAD_BYTES_MAX
    assert decode(payload) == (longest,)


def test_nothing_to_send_is_no_payload_and_an_empty_payload_is_a_resync() -> None:
    assert list(encode([])) == []
    assert decode("[]") == (Resync(),)


@pytest.mark.parametrize(
    "payload", ["", "hello", "{}", '[["chat","a"]]', '[["chat","a","1"]]', '[["chat","a",-1]]']
)
def test_a_strange_payload_is_unreadable(payload: str) -> None:
    with pytest.raises(PayloadUnreadable):
        decode(payload)
