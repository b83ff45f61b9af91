"""Points in time as protos."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp


def optional_time(time: datetime | None) -> Timestamp | None:
    """Return a point in time, if there is one."""
    return None if time is None else time_to_proto(time)


def time_to_proto(time: datetime) -> Timestamp:
    """Return a point in time."""
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp
