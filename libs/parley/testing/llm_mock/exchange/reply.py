"""The reply to a request, before it is encoded for a protocol."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from itertools import count

from parley.testing.llm_mock.behaviour.options import Behaviour, Ids, Stop, Usage
from parley.testing.llm_mock.exchange.parsing import sample_arguments
from parley.testing.llm_mock.exchange.request import Call, ParsedRequest, Reply, Tokens

ECHO = re.compile(r"\brepeat after me: (.+)", re.IGNORECASE | re.DOTALL)
REFUSAL = "I cannot help with that."
CHARACTERS_PER_TOKEN = 4
ARGUMENT_PIECES_MAX = 40
HUGE_TOKENS, NEGATIVE_TOKENS = 10**15, -7


def reply_to(question: ParsedRequest, behaviour: Behaviour, seed: int) -> Reply:
    """Return the reply to the request for this behaviour."""
    calls = _calls(question, behaviour)
    text, stop = _text(question, behaviour, seed, has_calls=bool(calls))
    wordless = behaviour.is_redacted
    thoughts = (
        () if wordless else pieces(seed, "thought", behaviour.reasoning, max(2, behaviour.size))
    )
    return Reply(
        model=question.model,
        thoughts=thoughts,
        is_redacted=wordless,
        text=text,
        calls=calls,
        stop=stop,
        tokens=_tokens(behaviour, thoughts, text, calls),
        reasoning_field=behaviour.reasoning_field,
        has_index=behaviour.has_index,
        has_done=behaviour.has_done,
        args_size=max(behaviour.size, *(len(c.args) // ARGUMENT_PIECES_MAX + 1 for c in calls), 1),
        wants_usage=question.wants_usage,
        wants_encrypted=question.wants_encrypted,
    )


def estimated_tokens(body: bytes) -> int:
    """Return the approximate number of tokens of a request."""
    return max(1, len(body) // CHARACTERS_PER_TOKEN)


def _calls(question: ParsedRequest, behaviour: Behaviour) -> tuple[Call, ...]:
    if not behaviour.is_calling or question.rounds_done >= behaviour.rounds:
        return ()
    offered = {tool.name: tool.schema for tool in question.tools}
    like = behaviour.tool_like or "*"
    name = behaviour.tool or next((each for each in offered if fnmatchcase(each, like)), "")
    if not name:
        return ()
    args = _arguments(behaviour, offered.get(name))
    return tuple(
        Call(
            name,
            args,
            number=0 if behaviour.ids is Ids.DUPLICATE else number,
            has_id=behaviour.ids is not Ids.MISSING,
        )
        for number in range(max(1, behaviour.tools))
    )


def _arguments(behaviour: Behaviour, schema: object) -> str:
    if behaviour.args_bytes:
        return '{"text":"' + "x" * behaviour.args_bytes + '"}'
    if behaviour.args_depth:
        return '{"deep":' * behaviour.args_depth + "1" + "}" * behaviour.args_depth
    return sample_arguments(schema) if behaviour.args is None else behaviour.args


def _text(
    question: ParsedRequest, behaviour: Behaviour, seed: int, *, has_calls: bool
) -> tuple[tuple[str, ...], Stop]:
    echoed = ECHO.search(question.said)
    if has_calls:
        return pieces(seed, "preface", behaviour.preface, behaviour.size), Stop.END
    if behaviour.stop is Stop.REFUSAL:
        return cut(REFUSAL, behaviour.size), behaviour.stop
    if behaviour.text is not None:
        text = cut(behaviour.text, behaviour.size)
    elif echoed is not None:
        text = cut(echoed[1], behaviour.size)
    else:
        text = pieces(seed, "answer", behaviour.deltas, behaviour.size)
    return _bounded(text, question, behaviour)


def _bounded(
    text: tuple[str, ...], question: ParsedRequest, behaviour: Behaviour
) -> tuple[tuple[str, ...], Stop]:
    """Return as much of the text as the request's token limit allows."""
    if question.output_tokens_max is None:
        return text, behaviour.stop
    whole = "".join(text)
    allowed = question.output_tokens_max * CHARACTERS_PER_TOKEN
    if len(whole) <= allowed:
        return text, behaviour.stop
    return cut(whole[:allowed], behaviour.size), Stop.LENGTH


def _tokens(
    behaviour: Behaviour, thoughts: tuple[str, ...], text: tuple[str, ...], calls: tuple[Call, ...]
) -> Tokens | None:
    match behaviour.usage:
        case Usage.MISSING:
            return None
        case Usage.NEGATIVE:
            return Tokens(NEGATIVE_TOKENS, NEGATIVE_TOKENS, NEGATIVE_TOKENS)
        case Usage.HUGE:
            return Tokens(HUGE_TOKENS, HUGE_TOKENS)
        case Usage.RIGHT:
            thought = _estimate("".join(thoughts)) if thoughts else 0
            said = _estimate("".join(text), *(call.name + call.args for call in calls))
            reasoning = _or(behaviour.reasoning_tokens, thought)
            return Tokens(
                behaviour.input_tokens,
                _or(behaviour.output_tokens, said + reasoning),
                reasoning,
                behaviour.cache_read,
                behaviour.cache_write,
            )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _estimate(*texts: str) -> int:
    return max(1, sum(map(len, texts)) // CHARACTERS_PER_TOKEN)


SENTENCE = (
    "the answer is that a parley between two sides needs patience and paper since every "
    "word once said stays said naïve or not and a café table serves as well as a hall of "
    "mirrors when 会話 goes on until both have had enough of it"
)
TEXTS_MAX = 256
VOCABULARY = tuple(SENTENCE.split())


@lru_cache(maxsize=TEXTS_MAX)
def pieces(seed: int, topic: str, number: int, size: int) -> tuple[str, ...]:
    """Return `number` pieces of `size` characters each, the same for the same seed and topic."""
    wanted = number * size
    if not wanted:
        return ()
    words, length = [], 0
    for word in _words(seed, topic):
        words.append(word)
        length += len(word) + 1
        if length > wanted:
            break
    text = " ".join(words)[: wanted - 1] + "."
    return cut(text.capitalize(), size)


def cut(text: str, size: int) -> tuple[str, ...]:
    """Return a text in pieces of `size` characters; the last one may be shorter."""
    return tuple(text[begin : begin + size] for begin in range(0, len(text), size))


def _words(seed: int, topic: str) -> Iterator[str]:
    for block in count():
        for byte in blake2b(f"{seed}/{topic}/{block}".encode()).digest():
            yield VOCABULARY[byte % len(VOCABULARY)]
