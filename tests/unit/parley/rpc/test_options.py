import json
from pathlib import Path

import grpc

from parley.rpc import LIMITS
from parley.rpc.options import channel_options, server_options, service_config
from support.rpc.echo_service import ECHO, ECHO_SERVICE


def test_only_methods_that_allow_it_are_repeated_and_only_when_unavailable() -> None:
    config = json.loads(service_config([ECHO_SERVICE]))
    assert config["methodConfig"] == [
        {
            "name": [{"service": ECHO, "method": "Look"}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "2.0s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]


def test_without_such_methods_nothing_is_repeated() -> None:
    assert service_config([]) == "{}"


def test_both_sides_have_the_same_limits() -> None:
    shared = {
        "grpc.max_send_message_length": LIMITS.message_bytes_max,
        "grpc.max_receive_message_length": LIMITS.message_bytes_max,
        "grpc.http2.bdp_probe": 0,
        "grpc.http2.lookahead_bytes": 262144,
        "grpc.keepalive_time_ms": 20_000,
    }
    for options in (dict(server_options()), dict(channel_options([]))):
        assert shared.items() <= options.items()


def test_a_server_does_not_share_its_port() -> None:
    assert dict(server_options())["grpc.so_reuseport"] == 0


def test_every_option_is_one_that_grpc_knows() -> None:
    (path,) = (Path(grpc.__file__).parent / "_cython").glob("cygrpc*.so")
    library = path.read_bytes()
    names = [name for name, _ in (*server_options(), *channel_options([]))]
    assert [name for name in names if name.encode() + b"\0" not in library] == []
