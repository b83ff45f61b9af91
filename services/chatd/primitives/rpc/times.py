"""Conversion of datetimes to proto timestamps."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp


def optional_time(time: datetime | None) -> Timestamp | None:
    """Convert a datetime, or return None for None."""
    return None if time is None else time_to_proto(time)


def time_to_proto(time: datetime) -> Timestamp:
    """Convert a datetime."""
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp
