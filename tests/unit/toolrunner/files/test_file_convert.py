"""What is known of files on its way out."""

import os
import stat

import msgspec
import pytest

from toolrunner.files.rpc.convert import info_to_proto
from toolrunner.fileworker.content.snapshot import info_of
from toolrunner.fileworker.protocol import AnswerFrame, Frames, Stat, frame
from toolrunner.fileworker.values import PathInfo


@pytest.mark.parametrize(
    ("modified_s", "told"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (2**62, "2262-04-11T23:47:16.854775807Z"),
        (-(2**62), "1677-09-21T00:12:43.145224192Z"),
    ],
)
def test_any_time_that_a_file_system_keeps_reaches_the_caller(modified_s: int, told: str) -> None:
    fields = (stat.S_IFREG | 0o644, 1, 1, 1, 0, 0, 5, 0, modified_s, 0)
    result = os.stat_result(fields, {"st_mtime_ns": modified_s * 10**9})
    [body] = Frames(bytearray()).feed(
        frame(AnswerFrame(1, Stat(info_of("a", result)), is_last=True))
    )
    answer = msgspec.msgpack.decode(body, type=AnswerFrame).answer
    assert isinstance(answer, Stat)
    assert answer.info is not None
    assert info_to_proto(answer.info).modified_at.ToJsonString() == told


@pytest.mark.parametrize(
    ("modified_ns", "told"),
    [(10**30, "9999-12-31T23:59:59.999999999Z"), (-(10**30), "0001-01-01T00:00:00Z")],
)
def test_a_time_that_no_timestamp_can_say_is_told_as_the_nearest(
    modified_ns: int, told: str
) -> None:
    info = PathInfo("a", "file", 5, 0o644, modified_ns)
    assert info_to_proto(info).modified_at.ToJsonString() == told
