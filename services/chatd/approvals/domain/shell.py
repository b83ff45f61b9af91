"""A strict parser of shell text that returns every simple command in it.

It accepts what `dash` and `bash` read alike. Text that they read differently, or that it does not
know, is `Unreadable`: a caller must then assume that it may run anything.
"""

import re
from dataclasses import dataclass
from typing import Final

from chatd.approvals.domain.evaluations import Evaluations
from chatd.approvals.domain.shell_words import (
    ANYTHING,
    NAME,
    Cursor,
    Pieces,
    Unreadable,
    Word,
    WordKind,
    WordReader,
)

TEXT_CHARACTERS_MAX: Final = 128 * 1024
NESTING_MAX: Final = 40
COMMANDS_MAX: Final = 1000

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_NUMBER: Final = re.compile(r"(\"?)(?:[0-9]*|\$\(\([^()]*\)\))\1")
_NUMBERS: Final = re.compile(r"\s+in[0-9 \t]*")
_LIST_OPERATORS: Final = ("&&", "||", "|&", "&", ";", "|")
_CASE_OPERATORS: Final = (";;&", ";;", ";&")
_REDIRECTIONS: Final = ("<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">")
_WRITES: Final = frozenset((">", ">>", ">|", ">&", "<>"))
#: Writing there changes no file.
_DISCARDED: Final = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "-", *"0123456789"))
_RESERVED: Final = frozenset(
    (
        *("!", "{", "}", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi"),
        *("for", "function", "if", "select", "then", "until", "while"),
    )
)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command name with its arguments.

    Attributes:
        assignments: `NAME=value` before the name; `NAME=?` for a value that is not literal.
        writes_file: Whether its output is redirected to a file.
    """

    words: tuple[Word, ...]
    assignments: tuple[str, ...] = ()
    writes_file: bool = False


def simple_commands(text: str, *, is_nested: bool = False) -> tuple[SimpleCommand, ...]:
    """Return all simple commands of a text, those of substitutions included.

    Args:
        text: The shell text.
        is_nested: Whether variables have values that another text gave them.

    Raises:
        Unreadable: what it would run cannot be determined.
    """
    if len(text) > TEXT_CHARACTERS_MAX or "\0" in text:
        raise Unreadable("it is too long or holds a NUL character")
    found: list[SimpleCommand] = []
    evaluations = Evaluations()
    try:
        _Parser(text, found, evaluations, 0).parse_all()
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    is_run = evaluations.may_run(command.words for command in found)
    if is_run or (is_nested and evaluations.evaluated):
        raise Unreadable("an arithmetic expression may evaluate a text")
    return tuple(found)


@dataclass(slots=True)
class _HereDocument:
    delimiter: str
    is_quoted: bool
    has_tabs_removed: bool


class _Parser:
    """Reads one text; nested texts get parsers of their own that add to the same list."""

    def __init__(
        self, text: str, found: list[SimpleCommand], evaluations: Evaluations, depth: int
    ) -> None:
        self._cursor = Cursor(text)
        self._words = WordReader(
            self._cursor,
            on_substitution=self._read_substitution,
            on_text=lambda inner: self._nested(inner).parse_all(),
            on_assignment=self._add_unknown,
            on_evaluation=evaluations.evaluated.add,
        )
        self._found = found
        self._evaluations = evaluations
        self._depth = depth
        self._documents: list[_HereDocument] = []

    def parse_all(self) -> None:
        self._parse_list(frozenset())
        if not self._cursor.is_at_end or self._documents:
            raise Unreadable("it does not end where it should")

    def parse_body(self) -> None:
        """Read the body of a here-document, in which only expansions count."""
        pieces = Pieces()
        while not self._cursor.is_at_end:
            self._words.read_quoted_piece(pieces)

    # Lists and compound commands.

    def _parse_list(self, ends: frozenset[str]) -> str:
        """Read commands up to a reserved word or `)`, and return that; empty for the end."""
        self._enter()
        while True:
            self._skip_blank_lines()
            if self._cursor.is_at_end:
                self._depth -= 1
                return self._expected("", ends)
            if self._peek() == ")" or self._cursor.starts_with(_CASE_OPERATORS):
                self._depth -= 1
                return self._expected(")" if self._peek() == ")" else ";;", ends)
            word = self._reserved_ahead()
            if word in ends:
                self._cursor.at += len(word)
                self._depth -= 1
                return word
            self._parse_command(word)
            self._after_command()

    def _expected(self, end: str, ends: frozenset[str]) -> str:
        if end not in ends and (end or ends):
            raise Unreadable(f"{end or 'its end'} was not expected")
        return end

    def _after_command(self) -> None:
        self._cursor.skip_blanks()
        if self._peek() in "\n)#":
            return
        if self._cursor.starts_with(_CASE_OPERATORS):
            return
        operator = self._cursor.starts_with(_LIST_OPERATORS)
        if not operator:
            # A compound command may be followed by the word that ends its list.
            if self._reserved_ahead():
                return
            raise Unreadable("two commands follow one another")
        self._cursor.at += len(operator)
        self._cursor.skip_blanks()
        if self._cursor.starts_with(_LIST_OPERATORS) or (
            operator not in ("&", ";") and self._is_at_end_of_list()
        ):
            raise Unreadable("an operator has no command")

    def _is_at_end_of_list(self) -> bool:
        return self._peek() in ")"

    def _parse_command(self, reserved: str) -> None:
        if self._peek() == "(":
            self._parse_subshell()
            return
        if reserved:
            self._cursor.at += len(reserved)
        match reserved:
            case "":
                self._parse_simple()
                return
            case "!":
                self._cursor.skip_blanks()
                following = self._reserved_ahead()
                if self._peek() in "\n;&|)" or following == "!":
                    raise Unreadable("! has no command")
                self._parse_command(following)
                return
            case "{":
                self._parse_list(frozenset("}"))
            case "if":
                self._parse_if()
            case "while" | "until":
                self._parse_list(frozenset(("do",)))
                self._parse_list(frozenset(("done",)))
            case "for":
                self._parse_for()
            case "case":
                self._parse_case()
            case _:
                raise Unreadable(f"{reserved} was not expected")
        self._parse_redirections()

    def _parse_subshell(self) -> None:
        if self._cursor.text.startswith("((", self._cursor.at):
            raise Unreadable("(( is read differently by shells")
        self._cursor.at += 1
        self._parse_list(frozenset(")"))
        self._cursor.at += 1
        self._parse_redirections()

    def _parse_if(self) -> None:
        end = "elif"
        while end == "elif":
            self._parse_list(frozenset(("then",)))
            end = self._parse_list(frozenset(("elif", "else", "fi")))
        if end == "else":
            self._parse_list(frozenset(("fi",)))

    def _parse_for(self) -> None:
        self._cursor.skip_blanks()
        name = NAME.match(self._cursor.text, self._cursor.at)
        if name is None:
            raise Unreadable("for has no variable")
        self._cursor.at = name.end()
        start = self._cursor.at
        self._skip_blank_lines()
        if self._cursor.word_ahead() == "in":
            self._cursor.at += 2
            self._cursor.skip_blanks()
            while self._peek() not in "\n;":
                self._cursor.require_word_start()
                self._words.read_word()
                self._cursor.skip_blanks()
        words = self._cursor.text[start : self._cursor.at]
        self._add_unknown(name[0], is_number=_NUMBERS.fullmatch(words) is not None)
        if self._cursor.text.startswith(";", self._cursor.at):
            self._cursor.at += 1
        self._skip_blank_lines()
        if self._cursor.word_ahead() != "do":
            raise Unreadable("for has no do")
        self._cursor.at += 2
        self._parse_list(frozenset(("done",)))

    def _parse_case(self) -> None:
        self._cursor.skip_blanks()
        self._cursor.require_word_start()
        self._words.read_word()
        self._skip_blank_lines()
        if self._cursor.word_ahead() != "in":
            raise Unreadable("case has no in")
        self._cursor.at += 2
        while True:
            self._skip_blank_lines()
            if self._cursor.word_ahead() == "esac":
                self._cursor.at += 4
                return
            self._parse_patterns()
            if self._parse_list(frozenset((";;", "esac"))) == "esac":
                return
            self._cursor.at += len(self._cursor.starts_with(_CASE_OPERATORS))

    def _parse_patterns(self) -> None:
        if self._cursor.text.startswith("(", self._cursor.at):
            self._cursor.at += 1
            self._cursor.skip_blanks()
        while True:
            self._cursor.require_word_start()
            self._words.read_word()
            self._cursor.skip_blanks()
            if self._cursor.text.startswith("|", self._cursor.at):
                self._cursor.at += 1
                self._cursor.skip_blanks()
            elif self._cursor.text.startswith(")", self._cursor.at):
                self._cursor.at += 1
                return
            else:
                raise Unreadable("a pattern of case has no end")

    # Simple commands.

    def _parse_simple(self) -> None:
        words: list[Word] = []
        assignments: list[str] = []
        writes_file = False
        start = self._cursor.at
        while True:
            self._cursor.skip_blanks()
            if self._cursor.is_at_end:
                break
            character = self._peek()
            if self._is_redirection():
                writes_file = self._read_redirection() or writes_file
            elif character == "(":
                self._parse_function(words, is_alone=not assignments and not writes_file)
                return
            elif character in "\n;&|)":
                break
            elif not words and (assigned := self._assignment_ahead()):
                assignments.append(assigned)
            else:
                if not words and start != self._cursor.at and self._reserved_ahead():
                    raise Unreadable("a reserved word follows an assignment or a redirection")
                words.append(self._read_argument())
        if not (words or assignments or self._cursor.at > start):
            raise Unreadable("a command is missing")
        self._add(SimpleCommand(tuple(words), tuple(assignments), writes_file))

    def _read_argument(self) -> Word:
        is_braced = self._peek() == "{"
        word = self._words.read_word()
        if is_braced and self._peek() in ("<", ">"):
            raise Unreadable("a name of a file descriptor is read differently by shells")
        return word

    def _parse_function(self, words: list[Word], *, is_alone: bool) -> None:
        name = words[0] if len(words) == 1 and is_alone else ANYTHING
        closing = re.compile(r"\([ \t]*\)").match(self._cursor.text, self._cursor.at)
        if closing is None or not name.is_literal or not NAME.fullmatch(name.text):
            raise Unreadable("a parenthesis was not expected")
        self._cursor.at = closing.end()
        self._skip_blank_lines()
        if self._cursor.is_at_end:
            raise Unreadable("a function has no body")
        reserved = self._reserved_ahead()
        if not reserved and self._peek() != "(":
            raise Unreadable("a function has no body")
        self._parse_command(reserved)

    def _assignment_ahead(self) -> str:
        """Read an assignment, if one follows; empty if not."""
        found = _ASSIGNMENT.match(self._cursor.text, self._cursor.at)
        if found is None:
            return ""
        if found[2]:
            raise Unreadable("+= is read differently by shells")
        self._cursor.at = found.end()
        if self._peek() == "(":
            raise Unreadable("an array is read differently by shells")
        value = self._words.read_word()
        if not _NUMBER.fullmatch(self._cursor.text[found.end() : self._cursor.at]):
            self._evaluations.texts.add(found[1])
        return f"{found[1]}={'?' if value.kind is WordKind.DYNAMIC else value.text}"

    def _parse_redirections(self) -> None:
        """Read the redirections after a compound command."""
        self._cursor.skip_blanks()
        writes_file = False
        while not self._cursor.is_at_end and self._is_redirection():
            writes_file = self._read_redirection() or writes_file
            self._cursor.skip_blanks()
        if writes_file:
            self._add(SimpleCommand((), (), writes_file=True))

    def _is_redirection(self) -> bool:
        at = self._cursor.at
        while at < len(self._cursor.text) and self._cursor.text[at] in "0123456789":
            at += 1
        if self._cursor.text.startswith("&>", self._cursor.at):
            return True
        return at < len(self._cursor.text) and self._cursor.text[at] in "<>"

    def _read_redirection(self) -> bool:
        """Read a redirection, and return whether it writes a file."""
        while self._cursor.text[self._cursor.at] in "0123456789":
            self._cursor.at += 1
        if self._cursor.text.startswith("&>", self._cursor.at):
            return self._read_joint_redirection()
        operator = self._cursor.starts_with(_REDIRECTIONS)
        self._cursor.at += len(operator)
        if self._peek() in "<>(&|":
            raise Unreadable("a redirection is read differently by shells")
        self._cursor.skip_blanks()
        self._cursor.require_word_start()
        if operator.startswith("<<"):
            self._documents.append(self._read_delimiter(operator))
            return False
        target = self._words.read_word()
        return operator in _WRITES and not self._is_discarded(target)

    def _read_joint_redirection(self) -> bool:
        """Read `&>`, which is `&` and `>` for some shells: the command must end behind it."""
        self._cursor.at += 3 if self._cursor.text.startswith("&>>", self._cursor.at) else 2
        self._cursor.skip_blanks()
        self._cursor.require_word_start()
        target = self._words.read_word()
        self._cursor.skip_blanks()
        if self._peek() not in "\n;&|)":
            raise Unreadable("&> is read differently by shells")
        return not self._is_discarded(target)

    def _is_discarded(self, target: Word) -> bool:
        return target.is_literal and target.text in _DISCARDED

    def _read_delimiter(self, operator: str) -> _HereDocument:
        pieces = Pieces()
        self._words.read_pieces(pieces)
        word = pieces.word()
        if word.kind is WordKind.DYNAMIC or "\n" in word.text:
            raise Unreadable("the end of a here-document is not known")
        return _HereDocument(word.text, pieces.is_quoted, operator == "<<-")

    def _read_documents(self) -> None:
        """Read the here-documents whose bodies begin on this line."""
        documents, self._documents = self._documents, []
        for document in documents:
            lines: list[str] = []
            while True:
                if self._cursor.is_at_end:
                    raise Unreadable("a here-document has no end")
                end = self._cursor.text.find("\n", self._cursor.at)
                end = len(self._cursor.text) if end < 0 else end
                line = self._cursor.text[self._cursor.at : end]
                self._cursor.at = min(end + 1, len(self._cursor.text))
                if document.has_tabs_removed:
                    line = line.lstrip("\t")
                if line == document.delimiter:
                    break
                lines.append(line)
            if not document.is_quoted:
                self._read_body("\n".join(lines))

    def _read_body(self, body: str) -> None:
        if "\\\n" in body or body.endswith("\\"):
            raise Unreadable("a here-document joins its lines")
        self._nested(body).parse_body()

    def _read_substitution(self) -> None:
        outer, self._documents = self._documents, []
        start = self._cursor.at
        self._cursor.at += 1
        self._parse_list(frozenset(")"))
        if self._documents or (outer and "\n" in self._cursor.text[start : self._cursor.at]):
            raise Unreadable("a here-document crosses a substitution")
        self._cursor.at += 1
        self._documents = outer

    def _skip_blank_lines(self) -> None:
        self._cursor.skip_blanks()
        while self._cursor.text.startswith("\n", self._cursor.at):
            self._cursor.at += 1
            if self._documents:
                self._read_documents()
            self._cursor.skip_blanks()

    def _reserved_ahead(self) -> str:
        word = self._cursor.word_ahead()
        if "\\\n" in self._cursor.text[self._cursor.at : self._cursor.at + len(word) + 2]:
            raise Unreadable("a word is split over two lines")
        return word if word in _RESERVED else ""

    def _peek(self) -> str:
        """Return the next character; empty at the end, which is in every string."""
        return self._cursor.text[self._cursor.at : self._cursor.at + 1]

    def _nested(self, text: str) -> "_Parser":
        self._enter()
        self._depth -= 1
        return _Parser(text, self._found, self._evaluations, self._depth + 1)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise Unreadable("it is nested too deeply")

    def _add(self, command: SimpleCommand) -> None:
        if len(self._found) >= COMMANDS_MAX:
            raise Unreadable("it has too many commands")
        self._found.append(command)

    def _add_unknown(self, name: str, *, is_number: bool = False) -> None:
        """Add a variable whose value is not known."""
        self._add(SimpleCommand((), (f"{name}=?",)))
        if not is_number:
            self._evaluations.texts.add(name)
