"""The limits as options of grpc."""

import json
from collections.abc import Iterable

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

from parley.rpc.limits import LIMITS

Options = tuple[tuple[str, str | int], ...]

_REPEATABLE = (MethodOptions.NO_SIDE_EFFECTS, MethodOptions.IDEMPOTENT)


def server_options() -> Options:
    """Return the options of every server."""
    return (
        *_shared_options(),
        ("grpc.max_concurrent_streams", LIMITS.streams_per_connection_max),
        # Overload protection refuses calls while ended ones are still being cleaned up, which takes
        # a busy process a while: calls that queue for a connection would be refused.
        ("grpc.http.overload_protection", 0),
        # By default grpc cancels after 30 s the calls that a busy event loop has not accepted yet,
        # and their clients could not tell why.
        ("grpc.server_max_unrequested_time_in_server", round(LIMITS.unaccepted_s)),
        # Binding a port in use must fail, not share its calls with the process that has it.
        ("grpc.so_reuseport", 0),
        # Clients probe at keepalive_s; half of that allows for the jitter of their timers. A client
        # that probes more often is disconnected, which ends all its waiting calls.
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            _milliseconds(LIMITS.keepalive_s / 2),
        ),
    )


def channel_options(services: Iterable[ServiceDescriptor], *, is_alone: bool = False) -> Options:
    """Return the options of a channel for stubs of `services`.

    Args:
        services: The services.
        is_alone: Whether it has a connection of its own; other channels to one address share one.
    """
    return (
        *_shared_options(),
        ("grpc.use_local_subchannel_pool", int(is_alone)),
        ("grpc.initial_reconnect_backoff_ms", _milliseconds(LIMITS.reconnect_first_s)),
        ("grpc.min_reconnect_backoff_ms", _milliseconds(LIMITS.reconnect_first_s)),
        ("grpc.max_reconnect_backoff_ms", _milliseconds(LIMITS.reconnect_last_s)),
        ("grpc.service_config", service_config(services)),
    )


def service_config(services: Iterable[ServiceDescriptor]) -> str:
    """Return the retry policy: UNAVAILABLE only, for methods that are idempotent by their proto."""
    repeatable = [
        {"service": service.full_name, "method": method.name}
        for service in services
        for method in service.methods
        if _is_repeatable(method)
    ]
    if not repeatable:
        return "{}"
    policy = {
        "maxAttempts": LIMITS.retry_attempts_max,
        "initialBackoff": f"{LIMITS.retry_first_s}s",
        "maxBackoff": f"{LIMITS.retry_last_s}s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    # The retry budget: once failures used half the tokens, no call is retried until calls succeed.
    budget = {"maxTokens": 20, "tokenRatio": 0.1}
    return json.dumps(
        {
            "methodConfig": [{"name": repeatable, "retryPolicy": policy}],
            "retryThrottling": budget,
        }
    )


def _shared_options() -> Options:
    return (
        ("grpc.max_send_message_length", LIMITS.message_bytes_max),
        ("grpc.max_receive_message_length", LIMITS.message_bytes_max),
        # Without the probe the window stays at the look-ahead, so that an unread stream stays
        # small.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", LIMITS.window_bytes),
        ("grpc.keepalive_time_ms", _milliseconds(LIMITS.keepalive_s)),
        ("grpc.keepalive_timeout_ms", _milliseconds(LIMITS.keepalive_timeout_s)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )


def _is_repeatable(method: MethodDescriptor) -> bool:
    return method.GetOptions().idempotency_level in _REPEATABLE


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
