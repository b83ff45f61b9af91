"""Variables that bash evaluates as expressions, in which it runs the substitutions of an index."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from chatd.approvals.domain.shell_words import NAME, Word

#: They set variables that their arguments name.
_SETTERS: Final = frozenset(
    ("declare", "export", "getopts", "let", "local", "printf", "read", "readonly", "typeset")
)
_RUNS_TEXT: Final = frozenset((".", "eval", "mapfile", "readarray", "source", "trap"))


@dataclass(frozen=True, slots=True)
class Evaluations:
    """What a text evaluates and sets.

    Attributes:
        evaluated: Variables in arithmetic expressions.
        texts: Variables that may get another value than a number.
    """

    evaluated: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def may_run(self, commands: Iterable[Sequence[Word]]) -> bool:
        """Return whether an expression may evaluate a text that these commands or others set."""
        if not self.evaluated:
            return False
        return bool(self.evaluated & self.texts) or any(map(self._is_set_by, commands))

    def _is_set_by(self, words: Sequence[Word]) -> bool:
        texts = {word.text for word in words}
        if texts & _RUNS_TEXT:
            return True
        return bool(texts & _SETTERS) and any(map(self._may_be_named, words))

    def _may_be_named(self, word: Word) -> bool:
        name = NAME.match(word.text or word.prefix)
        return not word.is_literal if name is None else name[0] in self.evaluated
