"""How an answer is to be: its size, its pace, its calls, and what goes wrong with it."""

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """Why the answer ends."""

    END = "end"
    LENGTH = "length"
    FILTER = "filter"
    REFUSAL = "refusal"


class Ids(StrEnum):
    """What is wrong with the ids of tool calls."""

    RIGHT = "right"
    DUPLICATE = "duplicate"
    MISSING = "missing"


class Usage(StrEnum):
    """What is wrong with the usage."""

    RIGHT = "right"
    MISSING = "missing"
    NEGATIVE = "negative"
    HUGE = "huge"


class FaultKind(StrEnum):
    """What happens to a stream on its way."""

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
    """How a refusal says when to come back."""

    SECONDS = "retry_after"
    MILLISECONDS = "retry_after_ms"
    DATE = "retry_date"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and how many events (of CUT_BYTE: bytes) arrive before it.

    Attributes:
        kind: What happens.
        after: What arrives before it.
        amount: Seconds of a stall, 0 for good; bytes of a huge line.
    """

    kind: FaultKind
    after: int
    amount: float = 0


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A status that requests are answered with instead of a stream.

    Attributes:
        status: The status.
        is_quota: The account has nothing left, in the provider's own words.
        times: How many requests; none for all that follow.
        for_s: For how long after the model's first request, instead of `times`.
    """

    status: int
    is_quota: bool = False
    times: int | None = 1
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """All that a model name or a flag can ask for; the grammar has a word for each."""

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
        """Return whether tools are to be called at all."""
        return self.tools > 0 or bool(self.tool or self.tool_like)

    @property
    def is_paced(self) -> bool:
        """Return whether an answer takes time, or never ends."""
        return self.is_endless or any(
            (self.wait_s, self.latency_s, self.delay_s, self.ping_s, self.drip_s)
        )

    @property
    def is_even(self) -> bool:
        """Return whether nothing but pauses comes between the pieces of an answer."""
        return not (self.is_endless or self.ping_s or self.drip_s)
