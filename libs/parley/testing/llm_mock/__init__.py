"""Model providers that are not there: a fast server that speaks their protocols, faults and all.

Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, the latter two at Azure's paths too,
and Anthropic's behind Bedrock's signature and framing. Requests are judged as the providers judge
them, so that a wrong one is refused here already, in the provider's own words.

How a model behaves is in its name: `mock:deltas=40,size=12,delay=20ms,tools=2,fail=429*2`. A name
is `mock` or `mock-ANYTHING`, a colon and words with commas between them; behind a question mark the
words follow any name, as in `claude-sonnet-4-5?reasoning=8`. Values may be percent-encoded. Names
without words behave as the server was told to. `grammar.WORDS` is the list of words; `GET /` and
`parley llm-mock --help` print it. A word that means nothing is answered with 400 and the list.

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
