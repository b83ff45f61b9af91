"""Checkpoints of turns: what a turn changed comes back, and what others changed is left alone."""

import os
from collections.abc import AsyncIterator

import grpc
import pytest

from parley.api.workspace.v1 import file_pb2, process_pb2, sandbox_pb2
from parley.api.workspace.v1 import file_service_pb2 as files_api
from parley.rpc import problem_of
from support.toolrunner.files import Files
from support.toolrunner.node import House, connected, node, toolrunner
from support.toolrunner.turn_files import ChatTurns, actions, outcomes, tree_of

BINARY = bytes(range(256)) * 40
PIPE, TERMINAL = process_pb2.STDIN_MODE_PIPE, process_pb2.STDIN_MODE_TERMINAL
MATCH = process_pb2.WAIT_UNTIL_MATCH
#: Changes of every kind: content, mode, links, types, names that are not UTF-8.
CHANGING = r"""
printf 'new\000\377' > binary
rm gone.txt && rm -r removed
chmod 700 program
ln -sfn nowhere link
rm becomes_directory && mkdir becomes_directory && echo 1 > becomes_directory/inside
rm -r becomes_file && echo 2 > becomes_file
mkdir -p made/deep && echo 3 > made/deep/file
printf x > "$(printf 'name\377')"
mv moved moved_away
"""


@pytest.fixture
async def turns(each_house: House) -> AsyncIterator[ChatTurns]:
    async with node(each_house), connected(each_house) as client:
        await client.run("true")
        root = each_house.data / "workspaces" / client.context.workspace_id / "files"
        yield ChatTurns(client, Files(client, root))


async def filled(turns: ChatTurns) -> None:
    """Make the files that `CHANGING` changes, as a person does."""
    turns.at(0)
    await turns.run(
        "mkdir -p removed/empty becomes_file moved && echo 1 > removed/a && echo 1 > gone.txt && "
        "echo 1 > program && ln -s program link && echo 1 > becomes_directory && "
        "echo 1 > becomes_file/inside && echo 1 > moved/file && touch same && "
        "head -c 70000 /dev/zero > binary && chmod 640 binary"
    )


async def test_all_that_processes_of_a_turn_changed_comes_back_and_goes_again(
    turns: ChatTurns,
) -> None:
    await filled(turns)
    before = tree_of(turns.files.root)
    turns.at(5)
    await turns.run(CHANGING)
    changed = tree_of(turns.files.root)
    assert changed != before

    report = await turns.restore("r1", 5)

    assert (report.conflicts, report.lost, report.incomplete) == (0, 0, False)
    assert tree_of(turns.files.root) == before
    assert await turns.restore("r1", 5) == report

    await turns.undo("r2", "r1")

    assert tree_of(turns.files.root) == changed
    await turns.restore("r3", 5)
    assert tree_of(turns.files.root) == before


async def test_a_restore_goes_to_the_start_of_the_turn_and_not_further(turns: ChatTurns) -> None:
    turns.at(1)
    await turns.run("echo 1 > a; echo 1 > b")
    turns.at(4)
    await turns.run("echo 2 > a; rm b")
    turns.at(7)
    await turns.run("echo 3 > a; echo 3 > b; echo 3 > c")

    await turns.restore("r1", 4)

    assert sorted(tree_of(turns.files.root)) == ["a", "b"]
    assert turns.files.bytes_of("a") == b"1\n"
    assert turns.files.bytes_of("b") == b"1\n"
    await turns.restore("r2", 1)
    assert tree_of(turns.files.root) == {}


async def test_changes_of_file_tools_come_back_without_a_scan(turns: ChatTurns) -> None:
    files = turns.files
    await turns.put("text.txt", b"one\n")
    await turns.put("binary", BINARY)
    before = tree_of(files.root)
    turns.at(3)
    await files.edit(("text.txt", "one", "two"))
    await files.write("binary", b"short")
    await files.write("new/deep/file", b"1")
    changed = tree_of(files.root)

    shown = await turns.preview(3)

    assert actions(shown) == {
        "binary": "change",
        "new": "delete",
        "new/deep": "delete",
        "new/deep/file": "delete",
        "text.txt": "change",
    }
    assert tree_of(files.root) == changed
    await turns.restore("r1", 3)
    assert tree_of(files.root) == before
    await turns.undo("r2", "r1")
    assert tree_of(files.root) == changed


async def test_moved_and_deleted_directories_come_back(turns: ChatTurns) -> None:
    files = turns.files
    await turns.put("old/a", b"1")
    await turns.put("old/b/c", b"2")
    await turns.put("dropped/d", BINARY)
    before = tree_of(files.root)
    turns.at(3)
    context = turns.client.context
    await turns.client.files.MovePath(
        files_api.MovePathRequest(
            context=context, request_id="m", path="old", new_path="fresh/name"
        ),
        timeout=20,
    )
    await turns.client.files.DeletePath(
        files_api.DeletePathRequest(
            context=context, request_id="d", path="dropped", recursive=True
        ),
        timeout=20,
    )

    report = await turns.restore("r1", 3)

    assert (report.conflicts, report.lost) == (0, 0)
    assert tree_of(files.root) == before


async def test_what_another_chat_or_a_person_changed_since_is_a_conflict(
    turns: ChatTurns,
) -> None:
    files, client = turns.files, turns.client
    for name in ("chats", "persons", "own", "commands"):
        await turns.put(name, b"0")
    turns.at(2)
    await turns.run("for each in chats persons own commands; do echo 1 > $each; done")
    first = client.chat_id
    client.chat_id = client.new_id()
    turns.at(9)
    await files.write("chats", b"another chat")
    await turns.run("echo another > commands")
    client.chat_id = first
    turns.at(0)
    await files.write("persons", b"a person")

    report = await turns.restore("r1", 2)

    assert outcomes(report) == {
        "chats": "conflict",
        "commands": "conflict",
        "own": "restored",
        "persons": "conflict",
    }
    assert {name: files.bytes_of(name) for name in ("chats", "commands", "own", "persons")} == {
        "chats": b"another chat",
        "commands": b"another\n",
        "own": b"0",
        "persons": b"a person",
    }


async def test_a_file_changed_by_another_chat_in_between_is_a_conflict(turns: ChatTurns) -> None:
    files, client = turns.files, turns.client
    await turns.put("a", b"0")
    turns.at(2)
    await files.write("a", b"1")
    first = client.chat_id
    client.chat_id = client.new_id()
    turns.at(9)
    await files.write("a", b"2")
    client.chat_id = first
    turns.at(3)
    await files.write("a", b"3")

    report = await turns.restore("r1", 2)

    assert outcomes(report) == {"a": "conflict"}
    assert files.bytes_of("a") == b"3"


async def test_what_a_person_changes_by_a_process_beside_a_turn_is_a_conflict(
    turns: ChatTurns,
) -> None:
    for name in ("own", "persons"):
        await turns.put(name, b"0")
    turns.at(2)
    started = await turns.client.start("echo 1 > own; read line", stdin_mode=PIPE)
    await turns.run('until [ "$(cat own)" = 1 ]; do :; done')
    turns.at(0)
    await turns.run("echo person > persons")
    turns.at(2)
    await turns.client.write(started.process.process_id, b"\n")
    await turns.client.wait(started.process.process_id)

    report = await turns.restore("r1", 2)

    assert outcomes(report) == {"own": "restored", "persons": "conflict"}
    assert turns.files.bytes_of("persons") == b"person\n"


@pytest.mark.parametrize("is_typed", [False, True])
async def test_a_terminal_of_a_person_counts_once_something_is_typed(
    turns: ChatTurns, is_typed: bool
) -> None:
    await turns.put("file", b"0")
    turns.at(0)
    shell = await turns.client.start(
        'exec "${SHELL:-/bin/sh}" -i', background=True, stdin_mode=TERMINAL
    )
    turns.at(2)
    started = await turns.client.start("read line; echo 1 > file", stdin_mode=PIPE)
    turns.at(0)
    if is_typed:
        await turns.client.write(shell.process.process_id, b"echo 2 > file; echo do''ne\n")
        await turns.client.wait(shell.process.process_id, MATCH, pattern="done")
    turns.at(2)
    await turns.client.write(started.process.process_id, b"\n")
    await turns.client.wait(started.process.process_id)

    report = await turns.restore("r1", 2)

    assert outcomes(report) == {"file": "conflict" if is_typed else "restored"}
    turns.at(0)
    await turns.client.signal(shell.process.process_id, process_pb2.PROCESS_SIGNAL_KILL)


async def test_a_directory_with_files_of_others_stays(turns: ChatTurns) -> None:
    turns.at(2)
    await turns.run("mkdir made && echo 1 > made/own")
    await turns.preview(2)
    (turns.files.root / "made" / "persons").write_bytes(b"1")

    report = await turns.restore("r1", 2)

    assert outcomes(report)["made"] == "conflict"
    assert sorted(os.listdir(turns.files.root / "made")) == ["persons"]


async def test_running_processes_of_the_chat_are_told(turns: ChatTurns) -> None:
    turns.at(2)
    started = await turns.client.start("echo 1 > a; sleep 60", background=True)
    await turns.run("until [ -s a ]; do :; done")

    shown = await turns.preview(2)

    assert shown.running_process_ids == [started.process.process_id]
    assert outcomes(shown) == {"a": "restored"}
    report = await turns.restore("r1", 2)
    assert report.running_process_ids == [started.process.process_id]
    await turns.client.signal(started.process.process_id, process_pb2.PROCESS_SIGNAL_KILL)


async def test_a_read_only_call_restores_nothing(turns: ChatTurns) -> None:
    turns.at(2)
    await turns.files.write("a", b"1")
    turns.client.context.profile = sandbox_pb2.SANDBOX_PROFILE_READ_ONLY

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await turns.restore("r1", 2)

    assert problem_of(refused.value).reason == "READ_ONLY"
    assert turns.files.bytes_of("a") == b"1"


async def test_bad_requests_are_refused(turns: ChatTurns) -> None:
    reasons = []
    for call in (
        turns.restore("", 1),
        turns.restore("a/b", 1),
        turns.restore("r", 0),
        turns.preview(-1),
        turns.undo("r", "never"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        reasons.append(problem_of(refused.value).reason)
    assert reasons == [*["INVALID_REQUEST"] * 4, "CHECKPOINT_NOT_FOUND"]


async def test_processes_cannot_open_what_is_kept(each_house: House) -> None:
    if each_house.sandbox_level == "none":
        pytest.skip("nothing is confined at this level")
    async with node(each_house), connected(each_house) as client:
        await client.run("true")
        root = each_house.data / "workspaces" / client.context.workspace_id / "files"
        turns = ChatTurns(client, Files(client, root))
        turns.at(2)
        await turns.run("echo 1 > a")
        kept = root.parent / "checkpoints.sqlite"
        assert kept.exists()

        for command in (f"cat {kept}", f"cp {kept} a", f"rm {kept}", f"echo 1 > {kept}"):
            ended = await client.run(command)
            assert ended.process.exit.exit_code != 0, command


async def test_git_itself_is_left_as_it_is(turns: ChatTurns) -> None:
    turns.at(0)
    await turns.run(
        "git init -q . && echo 1 > a && git add a && git -c user.name=a "
        "-c user.email=a@b commit -qm 1"
    )
    turns.at(2)
    await turns.run("echo 2 > a && git -c user.name=a -c user.email=a@b commit -qam 2")

    await turns.restore("r1", 2)

    assert turns.files.bytes_of("a") == b"1\n"
    shown = await turns.client.run("git log --format=%s | tr '\\n' ' '; git status --short")
    assert shown.output.text == "2 1  M a\n"


async def test_what_processes_changed_before_the_node_was_killed_comes_back(house: House) -> None:
    async with toolrunner(house) as process, connected(house) as client:
        await client.run("echo 0 > a; echo 0 > b")
        root = house.data / "workspaces" / client.context.workspace_id / "files"
        turns = ChatTurns(client, Files(client, root))
        turns.at(2)
        await turns.run("echo 1 > a; rm b; echo 1 > c")
        process.kill()
        await process.wait()
    async with toolrunner(house), connected(house) as successor:
        successor.stands_for(client)
        turns = ChatTurns(successor, Files(successor, root))

        report = await turns.restore("r1", 2)

        assert outcomes(report) == {"a": "restored", "b": "restored", "c": "restored"}
        assert tree_of(root).keys() == {"a", "b"}
        assert turns.files.bytes_of("a") == b"0\n"


async def test_an_owner_that_was_replaced_restores_nothing(turns: ChatTurns) -> None:
    turns.at(0)
    await turns.run("echo 1 > file")
    turns.at(5)
    await turns.run("echo 2 > file")
    await turns.restore("r1", 5, owner_epoch=3)
    turns.at(7)
    await turns.run("echo 3 > file")
    for restore_id, epoch in (("r1", 2), ("r2", 2), ("r2", 0)):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await turns.restore(restore_id, 7, owner_epoch=epoch)
        expected = "STALE_OWNER" if epoch else "INVALID_REQUEST"
        assert problem_of(refused.value).reason == expected
    assert (turns.files.root / "file").read_text() == "3\n"
    await turns.restore("r2", 7, owner_epoch=4)
    assert (turns.files.root / "file").read_text() == "1\n"


async def test_what_a_turn_changed_is_shown_as_the_turn_left_it_also_after_later_turns(
    turns: ChatTurns,
) -> None:
    await turns.put("kept.txt", b"one\n")
    await turns.put("gone.txt", b"old\n")
    turns.at(5)
    await turns.run(r"echo two >> kept.txt; rm gone.txt; mkdir d; printf 'a\000b' > d/binary")
    await turns.files.write("made.txt", b"first\n")
    turns.at(6)
    await turns.run("echo three >> kept.txt; rm made.txt")

    found = await turns.changed(5)
    made = await turns.read(5, "made.txt")
    deleted = await turns.read(5, "gone.txt", before=True)
    binary = await turns.read(5, "d/binary")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await turns.read(5, "gone.txt")

    listed = {each.path: (each.change, each.readable) for each in found.files}
    assert listed == {
        "d/binary": (file_pb2.FILE_CHANGE_KIND_CREATED, True),
        "gone.txt": (file_pb2.FILE_CHANGE_KIND_DELETED, False),
        "kept.txt": (file_pb2.FILE_CHANGE_KIND_MODIFIED, True),
        "made.txt": (file_pb2.FILE_CHANGE_KIND_CREATED, True),
    }
    patches = {each.path: each.patch for each in found.files}
    assert patches["kept.txt"] == "--- a/kept.txt\n+++ b/kept.txt\n@@ -1 +1,2 @@\n one\n+two\n"
    assert patches["gone.txt"].startswith("--- a/gone.txt\n+++ /dev/null\n")
    assert patches["d/binary"] == ""
    assert (made.content, deleted.content) == ("first\n", "old\n")
    assert (binary.binary, binary.content, binary.size_bytes) == (True, "", 3)
    assert problem_of(refused.value).reason == "CHECKPOINT_NOT_FOUND"
    assert [each.path for each in (await turns.changed(6)).files] == ["kept.txt", "made.txt"]
    assert (found.incomplete, found.omitted) == (False, 0)
    assert not (await turns.changed(7)).files


async def test_a_turn_that_was_taken_back_has_no_files_until_that_is_undone(
    turns: ChatTurns,
) -> None:
    turns.at(5)
    await turns.files.write("a.txt", b"of the turn\n")
    await turns.restore("r1", 5)
    taken_back = await turns.changed(5)
    await turns.undo("r2", "r1")

    assert [*taken_back.files] == []
    assert (await turns.read(5, "a.txt")).content == "of the turn\n"


async def test_a_long_file_of_a_turn_is_listed_without_a_patch_and_can_be_read(
    turns: ChatTurns,
) -> None:
    turns.at(5)
    await turns.run("yes | head -c 3000000 > long.txt; seq 6000 > lines.txt")

    found = await turns.changed(5)
    read = await turns.read(5, "long.txt")

    assert [(each.path, each.patch, each.readable) for each in found.files] == [
        ("lines.txt", "", True),
        ("long.txt", "", True),
    ]
    assert (len(read.content), read.size_bytes, read.truncated) == (1024 * 1024, 3000000, True)
