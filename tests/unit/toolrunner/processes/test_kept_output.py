import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.processes.output.buffer import HEAD_BYTES, TAIL_BYTES, KeptOutput
from toolrunner.processes.output.excerpt import Budget, excerpt
from toolrunner.processes.output.log import BEGINNING_BYTES, FinishedLog, OutputLog, remove_logs


def numbered(count: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(count))


def filled(directory: Path, data: bytes, *, log_bytes: int) -> KeptOutput:
    output = KeptOutput(OutputLog(directory, "p", log_bytes))
    for start in range(0, len(data), 1000):
        output.append(data[start : start + 1000])
    return output


def test_everything_within_the_log_can_be_read_again(tmp_path: Path) -> None:
    data = numbered(50_000)
    output = filled(tmp_path, data, log_bytes=1024 * 1024)
    assert output.spans == ((0, len(data)),)
    assert output.read(0, len(data)) == data
    assert output.read(20_000, 300_000) == data[20_000:300_000]
    output.close()


class WatchedLog(OutputLog):
    """A log that counts who asks what it has on disk."""

    looks = 0

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        self.looks += 1
        return super().spans


def test_output_that_is_in_memory_is_told_without_a_look_at_the_disk(tmp_path: Path) -> None:
    log = WatchedLog(tmp_path, "p", 100_000)
    output = KeptOutput(log)
    assert (output.spans, excerpt(output, 0, 0, Budget()).text) == (((0, 0),), "")
    output.append(b"a few words\n")
    output.close()
    assert output.spans == ((0, 12),)
    assert excerpt(output, 2, 12, Budget()).text == "few words\n"
    assert log.looks == 0


def test_the_beginning_and_the_newest_part_outlive_a_full_log(tmp_path: Path) -> None:
    data = numbered(50_000)
    output = filled(tmp_path, data, log_bytes=100_000)
    (head, rest) = output.spans
    assert head == (0, HEAD_BYTES)
    assert rest == (output.log_place[1], len(data))
    assert rest[1] - rest[0] >= 50_000
    assert output.read(*rest) == data[rest[0] :]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 102_000
    output.close()


def test_a_finished_log_says_by_itself_which_part_it_has(tmp_path: Path) -> None:
    data = numbered(50_000)
    output = filled(tmp_path, data, log_bytes=100_000)
    output.close()
    log = FinishedLog(tmp_path, "p")
    assert log.spans == ((output.log_place[1], len(data)),)
    assert log.read(len(data) - 30_000, len(data)) == data[-30_000:]
    assert FinishedLog(tmp_path, "other").spans == ()


def test_a_disk_that_takes_nothing_costs_only_the_middle(tmp_path: Path) -> None:
    data = numbered(50_000)
    (tmp_path / "p.0.log").touch()
    output = filled(tmp_path, data, log_bytes=100_000)
    tail_start = output.spans[1][0]
    assert output.spans == ((0, HEAD_BYTES), (tail_start, len(data)))
    assert len(data) - tail_start >= TAIL_BYTES
    found = excerpt(output, 0, len(data), Budget())
    assert found.text.startswith("0000000\n")
    assert found.text.endswith("0049999\n")


def test_a_removed_log_leaves_no_file(tmp_path: Path) -> None:
    filled(tmp_path, numbered(50_000), log_bytes=100_000).close()
    (tmp_path / "other.0.log").touch()
    remove_logs(tmp_path, {"p"})
    assert os.listdir(tmp_path) == ["other.0.log"]


def test_a_log_that_is_not_small_keeps_the_beginning_on_disk_too(tmp_path: Path) -> None:
    data = numbered(100_000)
    output = filled(tmp_path, data, log_bytes=200_000)
    output.close()
    (beginning, rest) = FinishedLog(tmp_path, "p").spans
    assert beginning == (0, BEGINNING_BYTES)
    assert rest == (output.log_place[1], len(data))
    assert FinishedLog(tmp_path, "p").read(0, 100) == data[:100]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 202_000 + BEGINNING_BYTES
    assert output.log_place == (f"p.{rest[0]}.log", rest[0])


def test_output_goes_on_after_a_restart_where_it_was(tmp_path: Path) -> None:
    data = numbered(100_000)
    filled(tmp_path, data[:500_000], log_bytes=200_000).close()
    resumed = KeptOutput.resumed(OutputLog.reopened(tmp_path, "p", 200_000))
    assert resumed.total_bytes == 500_000
    resumed.append(data[500_000:])
    ((_, head_end), (start, end)) = resumed.spans
    assert (head_end, end) == (HEAD_BYTES, len(data))
    assert resumed.read(start, end) == data[start:]
    assert resumed.read(0, head_end) == data[:head_end]
    resumed.close()


@given(
    st.lists(st.binary(min_size=1, max_size=400), max_size=40),
    st.integers(1, 2000),
    st.integers(0, 39),
    st.data(),
)
def test_whatever_can_be_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[bytes],
    log_bytes: int,
    restart_at: int,
    choice: st.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    output = KeptOutput(OutputLog(directory, "p", log_bytes))
    for at, piece in enumerate(pieces):
        if at == restart_at:
            output.close()
            output = KeptOutput.resumed(OutputLog.reopened(directory, "p", log_bytes))
        output.append(piece)
    output.close()
    data = b"".join(pieces)
    assert output.total_bytes == len(data)
    for start, end in output.spans:
        first = choice.draw(st.integers(start, end))
        last = choice.draw(st.integers(first, end))
        assert output.read(first, last) == data[first:last]


def test_what_leaves_a_pipe_is_in_the_log(tmp_path: Path) -> None:
    output = KeptOutput(OutputLog(tmp_path, "p", 1_000_000))
    reading, input_write = os.pipe()
    os.set_blocking(reading, False)
    with pytest.raises(BlockingIOError):
        output.take(reading)
    os.write(input_write, numbered(1000))
    assert output.take(reading)
    assert FinishedLog(tmp_path, "p").read(0, 8000) == numbered(1000)
    assert output.read(0, 8000) == numbered(1000)
    os.close(input_write)
    assert not output.take(reading)
    os.close(reading)
    output.close()


def test_a_terminal_is_read_too_until_nobody_has_it(tmp_path: Path) -> None:
    output = KeptOutput(OutputLog(tmp_path, "p", 1_000_000))
    terminal, other_end = os.openpty()
    os.set_blocking(terminal, False)
    os.write(other_end, b"drawn")
    assert output.take(terminal)
    with pytest.raises(BlockingIOError):
        output.take(terminal)
    os.close(other_end)
    assert not output.take(terminal)
    assert (output.total_bytes, FinishedLog(tmp_path, "p").read(0, 5)) == (5, b"drawn")
    os.close(terminal)
    output.close()


def test_of_many_logs_only_those_named_are_removed(tmp_path: Path) -> None:
    for name in ("p1.0.log", "p1.4096.log", "p2.0.log", "p11.0.log", "p1.note"):
        (tmp_path / name).touch()
    remove_logs(tmp_path, {"p1", "p3"})
    assert {path.name for path in tmp_path.iterdir()} == {"p2.0.log", "p11.0.log", "p1.note"}
    remove_logs(tmp_path / "none", {"p1"})
