"""The options of an answer: its size, timing, tool calls and faults."""

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """Why the answer ends."""

    END = "end"
    LENGTH = "length"
    FILTER = "filter"
    REFUSAL = "refusal"


class Ids(StrEnum):
    """The fault in the ids of tool calls."""

    RIGHT = "right"
    DUPLICATE = "duplicate"
    MISSING = "missing"


class Usage(StrEnum):
    """The fault in the usage."""

    RIGHT = "right"
    MISSING = "missing"
    NEGATIVE = "negative"
    HUGE = "huge"


class FaultKind(StrEnum):
    """The fault in a stream."""

    CUT = "cut"
    CUT_BYTE = "cut_byte"
    DROP = "drop"
    RESET = "reset"
    STALL = "stall"
    ERROR = "error"
    GARBAGE = "garbage"
    BAD_JSON = "bad_json"
    BAD_UTF8 = "bad_utf8"
    NUL = "nul"
    HUGE_LINE = "huge_line"


class RetryForm(StrEnum):
    """The form of the retry hint in a refusal."""

    SECONDS = "retry_after"
    MILLISECONDS = "retry_after_ms"
    DATE = "retry_date"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and how many events (of CUT_BYTE: bytes) are sent before it.

    Attributes:
        kind: The kind of fault.
        after: The number of events or bytes before it.
        amount: Seconds of a stall, 0 for an endless one; bytes of a huge line.
    """

    kind: FaultKind
    after: int
    amount: float = 0


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A status with which requests are answered instead of a stream.

    Attributes:
        status: The status.
        is_quota: Whether it is the provider's error for an exhausted quota.
        times: The number of requests; None for all that follow.
        for_s: How long after the model's first request, instead of `times`.
    """

    status: int
    is_quota: bool = False
    times: int | None = 1
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """All options that a model name or a flag can set; the grammar has a word for each."""

    text: str | None = None
    deltas: int = 8
    size: int = 6
    preface: int = 0
    reasoning: int = 0
    is_redacted: bool = False
    reasoning_field: str = "reasoning_content"
    wait_s: float = 0.0
    latency_s: float = 0.0
    delay_s: float = 0.0
    ping_s: float = 0.0
    drip_s: float = 0.0
    tools: int = 0
    tool: str = ""
    tool_like: str = ""
    args: str | None = None
    args_bytes: int = 0
    args_depth: int = 0
    rounds: int = 1
    ids: Ids = Ids.RIGHT
    has_index: bool = True
    stop: Stop = Stop.END
    usage: Usage = Usage.RIGHT
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    context: int | None = None
    failures: tuple[FailureRule, ...] = ()
    retry_form: RetryForm | None = None
    retry_s: float = 0.0
    fault: Fault | None = None
    times: int | None = None
    is_endless: bool = False
    has_done: bool = True

    @property
    def is_calling(self) -> bool:
        """Return whether the answer has tool calls at all."""
        return self.tools > 0 or bool(self.tool or self.tool_like)

    @property
    def is_paced(self) -> bool:
        """Return whether an answer has pauses, or never ends."""
        return self.is_endless or any(
            (self.wait_s, self.latency_s, self.delay_s, self.ping_s, self.drip_s)
        )

    @property
    def is_even(self) -> bool:
        """Return whether there is nothing but pauses between the deltas of an answer."""
        return not (self.is_endless or self.ping_s or self.drip_s)
