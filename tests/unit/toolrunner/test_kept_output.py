import os
from pathlib import Path

from toolrunner.kept_output import HEAD_BYTES, TAIL_BYTES, KeptOutput
from toolrunner.output import Budget, excerpt
from toolrunner.output_log import FinishedLog, OutputLog


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


def test_the_beginning_and_the_newest_part_outlive_a_full_log(tmp_path: Path) -> None:
    data = numbered(50_000)
    output = filled(tmp_path, data, log_bytes=100_000)
    (head, rest) = output.spans
    assert head == (0, HEAD_BYTES)
    assert rest == (output.log_start_bytes, len(data))
    assert rest[1] - rest[0] >= 50_000
    assert output.read(*rest) == data[rest[0] :]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 102_000
    output.close()


def test_a_finished_log_says_by_itself_which_part_it_has(tmp_path: Path) -> None:
    data = numbered(50_000)
    output = filled(tmp_path, data, log_bytes=100_000)
    output.close()
    log = FinishedLog(tmp_path, "p")
    assert log.spans == ((output.log_start_bytes, len(data)),)
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


def test_a_removed_output_leaves_no_file(tmp_path: Path) -> None:
    filled(tmp_path, numbered(50_000), log_bytes=100_000).remove()
    assert os.listdir(tmp_path) == []
