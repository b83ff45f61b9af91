"""A lexer of shell text: enough to distinguish operators from quoted text."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NESTING_MAX: Final = 50

# Longest first, so that `;;&` is not read as `;;` and `&`.
OPERATORS: Final = (
    *(";;&", "<<<", "<<-", "&>>"),
    *("&&", "||", "|&", ";;", ";&", "&>", ">&", "<&", "<<", ">>", ">|", "<>"),
    *(";", "&", "|", "<", ">", "(", ")"),
)
#: Operators that end a command, so that the next word begins another.
SEPARATORS: Final = frozenset(("&&", "||", "|&", ";;", ";&", ";;&", ";", "&", "|", "(", ")"))
_ENDS_WORD: Final = frozenset(" \t\n;&|<>()")


class TokenKind(StrEnum):
    """The kind of a token."""

    WORD = "word"
    OPERATOR = "operator"
    NEWLINE = "newline"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of shell text outside of comments and here-documents.

    Attributes:
        text: The source text, quotes included.
        start: Its offset.
        depth: The number of open parentheses around it.
        begins_command: Whether a word is in the position of a command name.
    """

    kind: TokenKind
    text: str
    start: int
    depth: int = 0
    begins_command: bool = False

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.start + len(self.text)

    def is_operator(self, text: str) -> bool:
        """Return whether it is this operator."""
        return self.kind is TokenKind.OPERATOR and self.text == text


class Unreadable(Exception):
    """The text ends inside a quote or a substitution; only the shell can report it."""


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of a command; the content of words is not split.

    Raises:
        Unreadable: a quote, a substitution or an expansion has no end.
    """
    lexer = _Lexer(text)
    lexer.scan(is_substitution=False)
    return tuple(lexer.tokens)


@dataclass(frozen=True, slots=True)
class _HereDocument:
    delimiter: str
    has_tabs_removed: bool


class _Lexer:
    """Scans the text once; substitutions inside words are skipped and not reported."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nesting = 0
        self.tokens: list[Token] = []

    def scan(self, *, is_substitution: bool) -> None:
        """Read commands up to the end of the text or of the enclosing substitution."""
        frame = _Frame()
        while self._at < len(self._text):
            if self._skips_blank():
                continue
            character = self._text[self._at]
            if character == "\n":
                self._emit(TokenKind.NEWLINE, "\n", frame)
                self._skip_bodies(frame)
            elif character == "#":
                self._at = self._line_end()
            elif (operator := self._operator()) is not None:
                if operator == ")" and is_substitution and frame.is_closed_by_parenthesis:
                    self._at += 1
                    return
                self._emit(TokenKind.OPERATOR, operator, frame)
            else:
                self._read_word(frame)
        if is_substitution:
            raise Unreadable

    def _skips_blank(self) -> bool:
        if self._text[self._at] in " \t":
            self._at += 1
            return True
        if self._text.startswith("\\\n", self._at):
            self._at += 2
            return True
        return False

    def _operator(self) -> str | None:
        here = (each for each in OPERATORS if self._text.startswith(each, self._at))
        return next(here, None)

    def _line_end(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _emit(self, kind: TokenKind, text: str, frame: "_Frame") -> None:
        token = Token(kind, text, self._at, frame.parentheses, frame.begins_command(kind))
        frame.push(token)
        if self._nesting == 0:
            self.tokens.append(token)
        # A word was skipped already.
        self._at = token.end

    def _read_word(self, frame: "_Frame") -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_WORD:
            self._skip_piece()
        word, self._at = self._text[start : self._at], start
        self._emit(TokenKind.WORD, word, frame)

    def _skip_piece(self) -> None:
        match self._text[self._at]:
            case "\\":
                self._at = min(self._at + 2, len(self._text))
            case "'":
                self._at = self._after("'", self._at + 1)
            case '"':
                self._skip_until('"')
            case "`":
                self._skip_escaped_until("`")
            case "$":
                self._skip_dollar()
            case _:
                self._at += 1

    def _after(self, end: str, start: int) -> int:
        place = self._text.find(end, start)
        if place < 0:
            raise Unreadable
        return place + len(end)

    def _skip_escaped_until(self, end: str) -> None:
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != end:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._close(end)

    def _skip_until(self, end: str) -> None:
        """Skip a double quote or an expansion in braces, whose content has its own rules."""
        self._at += 1
        self._enter()
        while self._at < len(self._text) and self._text[self._at] != end:
            if self._text[self._at] == "'" and end == '"':
                self._at += 1
            else:
                self._skip_piece()
        self._nesting -= 1
        self._close(end)

    def _close(self, end: str) -> None:
        if not self._text.startswith(end, self._at):
            raise Unreadable
        self._at += len(end)

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise Unreadable

    def _skip_dollar(self) -> None:
        self._at += 1
        after = self._text[self._at : self._at + 2]
        if after == "((":
            self._skip_arithmetic()
        elif after.startswith("("):
            self._at += 1
            self._enter()
            self.scan(is_substitution=True)
            self._nesting -= 1
        elif after.startswith("{"):
            self._skip_until("}")
        elif after.startswith("'") and self._nesting == 0:
            self._skip_escaped_until("'")
        elif after.startswith("#"):
            self._at += 1

    def _skip_arithmetic(self) -> None:
        self._enter()
        opened = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in "()":
                opened += 1 if character == "(" else -1
                self._at += 1
                if opened == 0:
                    self._nesting -= 1
                    return
            else:
                self._skip_piece()
        raise Unreadable

    def _skip_bodies(self, frame: "_Frame") -> None:
        for document in frame.documents:
            while self._at < len(self._text):
                end = self._line_end()
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                if document.has_tabs_removed:
                    line = line.lstrip("\t")
                if line == document.delimiter:
                    break
        frame.documents.clear()


class _Frame:
    """The state of one command list: its parentheses, `case` words and here-documents."""

    def __init__(self) -> None:
        self.parentheses = 0
        self.documents: list[_HereDocument] = []
        self._cases = 0
        self._last: Token | None = None

    @property
    def is_closed_by_parenthesis(self) -> bool:
        """Whether a closing parenthesis ends this frame rather than a group or a pattern in it."""
        return self.parentheses == 0 and self._cases == 0

    def begins_command(self, kind: TokenKind) -> bool:
        last = self._last
        return kind is TokenKind.WORD and (
            last is None
            or last.kind is TokenKind.NEWLINE
            or (last.kind is TokenKind.OPERATOR and last.text in SEPARATORS)
            or (last.begins_command and last.text in ("{", "do", "then", "else", "!", "time"))
        )

    def push(self, token: Token) -> None:
        match token.kind, token.text:
            case TokenKind.OPERATOR, "(":
                self.parentheses += 1
            case TokenKind.OPERATOR, ")":
                self.parentheses = max(0, self.parentheses - 1)
            case TokenKind.WORD, "case" if token.begins_command:
                self._cases += 1
            case TokenKind.WORD, "esac" if self._cases:
                self._cases -= 1
            case TokenKind.WORD, word if self._last is not None and self._last.text in (
                "<<",
                "<<-",
            ):
                bare = word.replace("'", "").replace('"', "").replace("\\", "")
                self.documents.append(_HereDocument(bare, self._last.text == "<<-"))
        self._last = token
