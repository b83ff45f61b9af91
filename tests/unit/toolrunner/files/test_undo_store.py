"""What files were: kept in order, per chat, and found again after whatever happened."""

from pathlib import Path

from toolrunner.files.undo_store import Undone, UndoRecord, UndoStore
from toolrunner.fileworker.values import Image

A = Image("a", b"old a", 0o644, "before", "after")
B = Image("b", None, None, "", "after")


def kept(store: UndoStore, request_id: str, *images: Image, chat_id: str = "chat") -> UndoRecord:
    record = store.begin(token="t", request_id=request_id, chat_id=chat_id, images=images)
    store.finish(record)
    return record


def test_a_change_is_pending_until_it_is_finished(tmp_path: Path) -> None:
    record = UndoStore(tmp_path).begin(token="t", request_id="r", chat_id="c", images=(A,))
    assert UndoStore(tmp_path).pending() == [record]
    assert UndoStore(tmp_path).by_request("r", "c") is None
    UndoStore(tmp_path).finish(record)
    assert UndoStore(tmp_path).pending() == []
    assert UndoStore(tmp_path).by_request("r", "c") == record


def test_the_last_change_of_a_file_is_found_for_its_chat_only(tmp_path: Path) -> None:
    store = UndoStore(tmp_path)
    kept(store, "r1", A)
    last = kept(store, "r2", A, B)
    kept(store, "r3", A, chat_id="other")
    assert store.by_path("a", "chat") == last
    assert store.by_path("a", "nobody") is None
    assert store.by_request("r3", "chat") is None
    assert store.by_request("r2", "") == last


def undo(store: UndoStore, record: UndoRecord, *paths: str) -> None:
    undone = Undone(record.sequence, paths)
    undoing = store.begin(token="u", request_id="u", chat_id="chat", images=(), undone=undone)
    store.finish(undoing)


def test_what_is_undone_of_a_change_is_forgotten(tmp_path: Path) -> None:
    store = UndoStore(tmp_path)
    record = kept(store, "r", A, B)
    undo(store, record, "a")
    rest = store.by_request("r", "chat")
    assert rest is not None
    assert rest.images == (B,)
    undo(store, rest, "b")
    assert store.by_request("r", "chat") is None
    assert (store.by_request("u", "chat"), list(tmp_path.iterdir())) == (None, [])


def test_a_torn_record_is_passed_over(tmp_path: Path) -> None:
    store = UndoStore(tmp_path)
    first = kept(store, "r1", A)
    second = kept(store, "r2", A)
    (tmp_path / f"{second.sequence}.done").write_bytes(b"\x93torn")
    assert store.by_path("a", "chat") == first


def test_the_oldest_changes_go_first(tmp_path: Path) -> None:
    store = UndoStore(tmp_path, records_max=2)
    for number in range(4):
        kept(store, f"r{number}", A)
    assert [store.by_request(f"r{number}", "chat") is None for number in range(4)] == [
        True,
        True,
        False,
        False,
    ]
