"""Mock model providers: a fast server that implements their protocols, including faults.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, the latter two at Azure's paths too,
and Anthropic's with Bedrock's signature and framing. Requests are validated as the providers do, so
that an invalid one is refused here already, with the provider's own message.

How a model behaves is in its name: `mock:deltas=40,size=12,delay=20ms,tools=2,fail=429*2`. A name
is `mock` or `mock-ANYTHING`, a colon and words with commas between them; behind a question mark the
words follow any name, as in `claude-sonnet-4-5?reasoning=8`. Values may be percent-encoded. Names
without words use the default behaviour of the server. `grammar.WORDS` is the list of words; `GET /`
and `parley llm-mock --help` print it. An unknown word is answered with 400 and the list.

Whatever the model, "repeat after me: X" in the last message of the user is answered with X.

Faults happen before the event (or byte) of the given number, counted from 0, and each time unless
`times=N` says how often; `fail=` counts the requests for one model name, words included.
"""

from parley.testing.llm_mock.behaviour.grammar import grammar_help
from parley.testing.llm_mock.errors import BehaviourUnknown, MockError, RecordingUnreadable
from parley.testing.llm_mock.http.server import MockModels
from parley.testing.llm_mock.http.statistics import Served, Statistics
from parley.testing.llm_mock.playback.recording import Recording, read_recording

__all__ = [
    "BehaviourUnknown",
    "MockError",
    "MockModels",
    "Recording",
    "RecordingUnreadable",
    "Served",
    "Statistics",
    "grammar_help",
    "read_recording",
]
