"""All limits of Parley's gRPC in one value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of connections, calls and messages.

    Attributes:
        user_calls_max: Running calls of one user of service tokens, streams included, if no setting
            says otherwise.
        message_bytes_max: Largest message that is sent or accepted; larger data is streamed.
        frame_bytes_max: Largest message on a stream that many subscribers share.
        window_bytes: The bytes an unread stream may buffer before its writer waits.
        streams_per_connection_max: Calls in flight on one connection; more of them queue.
        long_calls_per_connection_max: Long calls in flight on one connection, after which another
            one is opened; below the limit at which calls queue, so that none does.
        keepalive_s: Silence after which a connection is probed.
        keepalive_timeout_s: How long a probe may stay unanswered before the connection is dropped.
        unaccepted_s: How long a call may wait for a busy server to accept it; longer than any
            deadline of a unary call, so that its deadline applies.
        unary_deadline_s: Deadline of a unary call that has none.
        stream_deadline_s: Deadline of a streaming call that has none.
        drain_s: How long running calls may go on after a server begins to stop.
        flush_s: How long the last answers may take to leave a drained server.
        retry_attempts_max: Attempts of a call that is safe to repeat, the first included.
        retry_first_s: Delay before the first repetition; it doubles from there.
        retry_last_s: Longest delay between two attempts.
        reconnect_first_s: Delay before a lost connection is made again; it grows from there.
        reconnect_last_s: Longest delay between two attempts to connect.
        certificate_check_s: How often a client checks whether its certificate was renewed.
        clock_offset_s_max: The largest clock offset for which calls are signed with it.
        problem_text_max: Characters of a problem's message that are sent; trailers are small.
        violations_max: Field violations that are sent with one problem.
    """

    user_calls_max: int = 2000
    message_bytes_max: int = 4 * 1024 * 1024
    frame_bytes_max: int = 256 * 1024
    window_bytes: int = 256 * 1024
    streams_per_connection_max: int = 256
    long_calls_per_connection_max: int = 128
    keepalive_s: float = 20.0
    keepalive_timeout_s: float = 10.0
    unaccepted_s: float = 360.0
    unary_deadline_s: float = 30.0
    stream_deadline_s: float = 24 * 3600.0
    drain_s: float = 10.0
    flush_s: float = 1.0
    retry_attempts_max: int = 4
    retry_first_s: float = 0.1
    retry_last_s: float = 2.0
    reconnect_first_s: float = 0.1
    reconnect_last_s: float = 1.0
    certificate_check_s: float = 30.0
    clock_offset_s_max: int = 2 * 3600
    problem_text_max: int = 1024
    violations_max: int = 20


LIMITS = Limits()
