"""Text generated from a seed."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import count

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
