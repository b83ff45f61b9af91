"""What many processes print at once, and who has a turn meanwhile."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from parley.clock import FakeClock
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.processes.live_process import READ_TOGETHER, LiveProcess, Pipes
from toolrunner.processes.output.buffer import CHUNK_BYTES, KeptOutput
from toolrunner.processes.output.log import OutputLog
from toolrunner.spawner.client.spawner import Launched

NOISY = 5 * READ_TOGETHER
PIECE = b"y\n" * (CHUNK_BYTES // 2)


@contextmanager
def noisy(directory: Path, pipes: Pipes) -> Iterator[list[LiveProcess]]:
    """Give processes that have each printed as much as one read takes, and go on."""
    with ExitStack() as stack:
        processes = []
        for number in range(NOISY):
            output_fd, writing_fd = os.pipe()
            stack.callback(os.close, writing_fd)
            os.write(writing_fd, PIECE)
            record = ProcessRecord(
                process_id=ProcessId(f"p{number}"),
                workspace_id=WorkspaceId("w"),
                chat_id=ChatId("c"),
                request_id="r",
                command="yes",
                workdir="/",
                is_background=False,
                state=ProcessState.STARTING,
                started_at=FakeClock().now(),
            )
            log = OutputLog(directory, record.process_id, 10 * CHUNK_BYTES)
            live = LiveProcess(record, KeptOutput(log), 0.0, pipes)
            live.run(Launched(pid=1, output_fd=output_fd))
            stack.callback(live.close)
            processes.append(live)
        yield processes


async def each_turn(look: Callable[[], bool]) -> None:
    """Look in every turn of the event loop until there is no more to see."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()

    def turn() -> None:
        if look():
            loop.call_soon(turn)
        else:
            is_over.set()

    turn()
    async with asyncio.timeout(10):
        await is_over.wait()


async def test_between_two_turns_of_anybody_else_a_few_outputs_are_read(tmp_path: Path) -> None:
    pipes = Pipes()
    with noisy(tmp_path, pipes) as processes:
        read = [0]

        def look() -> bool:
            read.append(sum(live.output.total_bytes for live in processes) // CHUNK_BYTES)
            return read[-1] < NOISY

        await each_turn(look)
    pipes.close()
    turns = [after - before for before, after in pairwise(read)]
    assert max(turns) <= READ_TOGETHER


async def test_nobody_is_read_twice_before_everybody_was_read() -> None:
    pipes = Pipes()
    order: list[int] = []
    everybody = asyncio.Event()

    def read(number: int) -> None:
        # Nothing is taken out: there is always more.
        order.append(number)
        if len(order) >= 2 * NOISY:
            everybody.set()

    with ExitStack() as stack:
        for number in range(NOISY):
            output_fd, writing_fd = os.pipe()
            os.write(writing_fd, b"y")
            stack.callback(os.close, writing_fd)
            stack.callback(os.close, output_fd)
            stack.callback(pipes.remove, output_fd)
            pipes.add(output_fd, partial(read, number))
        async with asyncio.timeout(10):
            await everybody.wait()
    pipes.close()
    assert sorted(order[:NOISY]) == sorted(order[NOISY : 2 * NOISY]) == list(range(NOISY))


async def test_who_was_removed_by_another_in_the_same_turn_is_not_called() -> None:
    pipes = Pipes()
    called: list[int] = []
    with ExitStack() as stack:
        fds = []
        for _ in range(2):
            output_fd, writing_fd = os.pipe()
            os.write(writing_fd, b"y")
            stack.callback(os.close, writing_fd)
            stack.callback(os.close, output_fd)
            fds.append(output_fd)

        def read(fd: int) -> None:
            called.append(fd)
            for each in fds:
                pipes.remove(each)

        for fd in fds:
            pipes.add(fd, partial(read, fd))
        await each_turn(lambda: not called)
    pipes.close()
    assert len(called) == 1
