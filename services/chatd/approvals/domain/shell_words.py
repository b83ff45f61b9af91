"""Words of shell text: quotes, expansions and substitutions.

Text that `dash` and `bash` read differently is `Unreadable`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

_BLANK: Final = " \t"
_ENDS_WORD: Final = frozenset(" \t\n;&|<>()")
_ARITHMETIC: Final = re.compile(r"[\w\s+*/%<>=!&|^~?:,.$-]*")
#: A variable in such an expression; not a letter of a hexadecimal number.
_EVALUATED: Final = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_POSITIONAL: Final = re.compile(r"\$[0-9*]")
_PARAMETER: Final = re.compile(r"[A-Za-z_]\w*|[0-9]+|[@*#?$!-]", re.ASCII)
_OPERATOR: Final = re.compile(r":?[-=?+]|%%?|##?|(?=\})")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Unreadable(ValueError):
    """The text is no shell text that every shell reads in the same way."""


class WordKind(Enum):
    """What is known of a word."""

    LITERAL = auto()
    GLOB = auto()  # Its text is a pattern of file names.
    DYNAMIC = auto()  # It may be anything, also several words or none.


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its quotes removed; a dynamic one has no text.

    Attributes:
        prefix: How a dynamic word begins, as far as that is known.
    """

    text: str
    kind: WordKind = WordKind.LITERAL
    prefix: str = ""

    @property
    def is_literal(self) -> bool:
        """Whether the shell passes it on as it is."""
        return self.kind is WordKind.LITERAL


ANYTHING: Final = Word("", WordKind.DYNAMIC)


@dataclass(slots=True)
class Pieces:
    """A word while it is read."""

    text: list[str] = field(default_factory=list)
    is_dynamic: bool = False
    is_glob: bool = False
    is_quoted: bool = False
    braces: str = ""  # Unquoted braces, commas and dots, from which bash may make several words.
    prefix: str = ""  # The text before the first piece that is not known.

    def add_unknown(self) -> None:
        """Add a piece that is not known before the command runs."""
        if not self.is_dynamic:
            self.is_dynamic, self.prefix = True, "".join(self.text)

    def word(self) -> Word:
        """Return the word."""
        has_expansion = "{" in self.braces and ("," in self.braces or ".." in self.braces)
        if has_expansion:
            return ANYTHING
        if self.is_dynamic:
            return Word("", WordKind.DYNAMIC, self.prefix)
        text = "".join(self.text)
        is_glob = self.is_glob and text != "["
        return Word(text, WordKind.GLOB if is_glob else WordKind.LITERAL)


@dataclass(slots=True)
class Cursor:
    """A text and the place that is read next."""

    text: str
    at: int = 0

    @property
    def is_at_end(self) -> bool:
        """Whether nothing follows."""
        return self.at >= len(self.text)

    def skip_blanks(self) -> None:
        """Skip blanks, comments and joined lines."""
        while self.at < len(self.text):
            if self.text[self.at] in _BLANK:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def starts_with(self, operators: tuple[str, ...]) -> str:
        """Return the first of these operators that follows; empty for none."""
        return next((each for each in operators if self.text.startswith(each, self.at)), "")

    def word_ahead(self) -> str:
        """Return the plain word that follows; a quoted one is none."""
        end = self.at
        while end < len(self.text) and self.text[end] not in _ENDS_WORD:
            end += 1
        return self.text[self.at : end]

    def require_word_start(self) -> None:
        """Require that a word follows."""
        if self.at >= len(self.text) or self.text[self.at] in _ENDS_WORD:
            raise Unreadable("a word is missing")


class WordReader:
    """Reads words.

    Args:
        cursor: Where to read.
        on_substitution: Reads the commands of `$(...)`; the cursor is at its parenthesis.
        on_text: Reads commands from the text of back quotes.
        on_assignment: Is called with a variable that an expansion may set.
        on_evaluation: Is called with a variable whose value bash evaluates as an expression.
    """

    def __init__(
        self,
        cursor: Cursor,
        *,
        on_substitution: Callable[[], None],
        on_text: Callable[[str], None],
        on_assignment: Callable[[str], None],
        on_evaluation: Callable[[str], None],
    ) -> None:
        self._cursor = cursor
        self._on_substitution = on_substitution
        self._on_text = on_text
        self._on_assignment = on_assignment
        self._on_evaluation = on_evaluation

    def read_word(self) -> Word:
        """Read a word."""
        pieces = Pieces()
        self.read_pieces(pieces)
        return pieces.word()

    def read_pieces(self, pieces: Pieces) -> None:
        """Read a word into its pieces."""
        while (
            self._cursor.at < len(self._cursor.text)
            and self._cursor.text[self._cursor.at] not in _ENDS_WORD
        ):
            self._piece(pieces)

    def _piece(self, pieces: Pieces) -> None:
        character = self._cursor.text[self._cursor.at]
        match character:
            case "\\":
                if self._cursor.at + 1 >= len(self._cursor.text):
                    raise Unreadable("it ends with a backslash")
                escaped = self._cursor.text[self._cursor.at + 1]
                if escaped != "\n":
                    pieces.text.append(escaped)
                    pieces.is_quoted = True
                self._cursor.at += 2
            case "'":
                end = self._cursor.text.find("'", self._cursor.at + 1)
                if end < 0:
                    raise Unreadable("a quote has no end")
                pieces.text.append(self._cursor.text[self._cursor.at + 1 : end])
                pieces.is_quoted = True
                self._cursor.at = end + 1
            case '"':
                pieces.is_quoted = True
                self._cursor.at += 1
                while not self._cursor.text.startswith('"', self._cursor.at):
                    if self._cursor.at >= len(self._cursor.text):
                        raise Unreadable("a quote has no end")
                    self.read_quoted_piece(pieces)
                self._cursor.at += 1
            case "`":
                self._read_backquotes(pieces, is_quoted=False)
            case "$":
                self._read_dollar(pieces, is_quoted=False)
            case _:
                if character in "*?[":
                    pieces.is_glob = True
                if character in "{},.":
                    pieces.braces += character
                pieces.text.append(character)
                self._cursor.at += 1

    def read_quoted_piece(self, pieces: Pieces) -> None:
        """Read one piece inside of double quotes or a here-document."""
        character = self._cursor.text[self._cursor.at]
        match character:
            case "\\":
                escaped = self._cursor.text[self._cursor.at + 1 : self._cursor.at + 2]
                if escaped and escaped in '$`"\\':
                    pieces.text.append(escaped)
                elif escaped != "\n":
                    pieces.text.append(character + escaped)
                self._cursor.at += 2
            case "`":
                self._read_backquotes(pieces, is_quoted=True)
            case "$":
                self._read_dollar(pieces, is_quoted=True)
            case _:
                pieces.text.append(character)
                self._cursor.at += 1

    def _read_backquotes(self, pieces: Pieces, *, is_quoted: bool) -> None:
        self._cursor.at += 1
        inner: list[str] = []
        while not self._cursor.text.startswith("`", self._cursor.at):
            if self._cursor.at >= len(self._cursor.text):
                raise Unreadable("a substitution has no end")
            character = self._cursor.text[self._cursor.at]
            escaped = self._cursor.text[self._cursor.at + 1 : self._cursor.at + 2]
            if character == '"' and is_quoted:
                raise Unreadable("quotes in a substitution are read differently by shells")
            if character == "\\" and escaped and escaped in "$`\\":
                inner.append(escaped)
                self._cursor.at += 2
            else:
                inner.append(character)
                self._cursor.at += 1
        self._cursor.at += 1
        pieces.add_unknown()
        self._on_text("".join(inner))

    def _read_dollar(self, pieces: Pieces, *, is_quoted: bool) -> None:
        self._cursor.at += 1
        after = self._cursor.text[self._cursor.at : self._cursor.at + 1]
        if after == "(":
            pieces.add_unknown()
            if self._cursor.text.startswith("((", self._cursor.at):
                self._read_arithmetic()
            else:
                self._on_substitution()
        elif after == "{":
            pieces.add_unknown()
            self._read_parameter()
        elif name := NAME.match(self._cursor.text, self._cursor.at):
            pieces.add_unknown()
            self._cursor.at = name.end()
        elif after and after in "@*#?-$!0123456789":
            pieces.add_unknown()
            self._cursor.at += 1
        elif (after in ("'", '"') and not is_quoted) or after in ("[", "\\"):
            raise Unreadable(f"${after} is read differently by shells")
        else:
            pieces.text.append("$")

    def _read_arithmetic(self) -> None:
        end = self._cursor.text.find("))", self._cursor.at)
        inner = self._cursor.text[self._cursor.at + 2 : end]
        if end < 0 or not _ARITHMETIC.fullmatch(inner) or _POSITIONAL.search(inner):
            raise Unreadable("an arithmetic expression is not plain")
        for name in _EVALUATED.findall(inner):
            self._on_evaluation(name)
        self._cursor.at = end + 2

    def _read_parameter(self) -> None:
        """Read `${...}` in the forms that all shells have."""
        self._cursor.at += 1
        if self._cursor.text.startswith("#", self._cursor.at) and not self._cursor.text.startswith(
            "#}", self._cursor.at
        ):
            self._cursor.at += 1
        name = _PARAMETER.match(self._cursor.text, self._cursor.at)
        if name is None:
            raise Unreadable("an expansion is read differently by shells")
        self._cursor.at = name.end()
        operator = _OPERATOR.match(self._cursor.text, self._cursor.at)
        if operator is None:
            raise Unreadable("an expansion is read differently by shells")
        self._cursor.at = operator.end()
        if "=" in operator[0]:
            self._on_assignment(name[0])
        pieces = Pieces()
        while not self._cursor.text.startswith("}", self._cursor.at):
            character = self._cursor.text[self._cursor.at : self._cursor.at + 1]
            if not character or character in "'\"\\{":
                raise Unreadable("quotes in an expansion are read differently by shells")
            self.read_quoted_piece(pieces)
        self._cursor.at += 1
