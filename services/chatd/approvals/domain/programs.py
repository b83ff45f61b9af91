"""The programs that a shell command runs, also through `sh -c`, `env`, `xargs`, `find -exec`.

A rule sees the text of a call, not what the programs in it do: `make` and `python` run others too.
What a shell, a wrapper or a variable runs is read exactly, or it may be anything.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from chatd.approvals.domain import shell_builtins, shell_variables
from chatd.approvals.domain.program_names import PLAIN, PLAIN_GIT, SHELLS, may_run_anything
from chatd.approvals.domain.shell import SimpleCommand, simple_commands
from chatd.approvals.domain.shell_words import ANYTHING, Unreadable, Word, WordKind
from chatd.approvals.domain.wrappers import WRAPPERS, Wrapper, after_options

DEPTH_MAX: Final = 8
#: So many arguments of an unknown program are read as commands.
TEXTS_MAX: Final = 500
#: A program by its path there is the program of that name.
STANDARD_DIRECTORIES: Final = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
)
_FIND_ACTIONS: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_GIT_VALUED: Final = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
)
_GIT_FLAGS: Final = frozenset(
    (
        *("-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--version"),
        *("--help", "--html-path", "--man-path", "--info-path", "--no-optional-locks"),
        *("--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs"),
    )
)
#: Settings of `git` that run nothing.
_GIT_PLAIN: Final = re.compile(
    r"(?:user|color|advice|safe|gc|pull|fetch\.prune|init\.defaultbranch)(?:\..*)?"
    r"|(?:commit|tag)\.gpgsign|core\.(?:autocrlf|quotepath|filemode|abbrev)|http\.postbuffer"
)
#: Settings of `git` that are commands.
_GIT_COMMAND: Final = re.compile(
    r"core\.(?:pager|editor|sshcommand|askpass)|sequence\.editor|diff\.external|pager\..*"
)
_SHELL_OPTIONS: Final = ("--login", "--norc", "--noprofile", "--posix")
#: Letters of options that shells have in common; `o` and, in bash, `O` take the next word.
_SHELL_LETTERS: Final = re.compile(r"-[abefhmnpuvxlBCEPTcs]*[oO]?|\+[abefhmnpuvxBCEPT]*[oO]?")
_WORD: Final = re.compile(r"[\w./+-]+")
_OPTION_NAME: Final = re.compile(r"(?!keyword|hist)[a-z_0-9]+")
#: A script there is the input of the shell.
_INPUT: Final = re.compile(
    r"(?:.*/)?(?:stdin|[0-9]+)|/[./]*(?:dev|proc)/.*|.*\.\./(?:.*/)?(?:dev|proc)/.*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a command runs.

    Attributes:
        words: Its name and arguments.
        assignments: Variables that are set for it.
        writes_file: Whether its output goes to a file.
        is_opaque: Whether it may run anything.
        is_carrier: Whether it is listed beside the program that it runs: only what asks or denies
            looks at it.
        is_indirect: Whether it stands for the programs that its arguments may name.
    """

    words: tuple[Word, ...]
    assignments: tuple[str, ...] = ()
    writes_file: bool = False
    is_opaque: bool = False
    is_carrier: bool = False
    is_indirect: bool = False

    @property
    def text(self) -> str:
        """The program as text for people; what is not known is an ellipsis."""
        words = (word.text if word.kind is not WordKind.DYNAMIC else "…" for word in self.words)
        return " ".join((*self.assignments, *words))


#: A program of which nothing is known.
UNKNOWN_PROGRAM: Final = Program((ANYTHING,), is_opaque=True)


def programs_of(command: str, variables: Sequence[str] = ()) -> tuple[Program, ...]:
    """Return the programs that a command runs; one that may be anything if it cannot be read.

    Args:
        command: The shell text.
        variables: Assignments that hold for all of it.
    """
    try:
        return (*_of_variables(variables, 0), *_programs(command, tuple(variables), 0))
    except Unreadable:
        return (UNKNOWN_PROGRAM,)


@lru_cache(maxsize=16)
def programs_in(program: Program) -> tuple[Program, ...]:
    """Return the programs of the texts in arguments, values of options, and variables.

    Any word of a text that cannot be read may be the name of one.
    """
    found: list[Program] = []
    for text in _texts_in(program):
        try:
            found.extend(_programs(text, (), 1))
        except Unreadable:
            words = tuple(Word(each) for each in _WORD.findall(text))
            found.append(Program((ANYTHING, *words), is_opaque=True))
    return tuple(found)


def _texts_in(program: Program) -> frozenset[str]:
    arguments = (word.text for word in program.words[1:] if word.is_literal)
    return frozenset(
        found.lstrip("!|:+@")
        for text in (*arguments, *program.assignments)
        for found in _texts_of(text)
    )


def _texts_of(text: str) -> Iterator[str]:
    if any(each.isspace() for each in text):
        yield text
    _, has_value, value = text.partition("=")
    if has_value:
        yield value
        yield value.rpartition("=")[2]
    if text.startswith("-") and not text.startswith("--"):
        yield text[2:]


def base_name(word: Word) -> str:
    """Return the name of a program without its directory."""
    return word.text.rpartition("/")[2]


def _is_standard(program: Program) -> bool:
    """Return whether a program is the one of its name, not a file of the workspace."""
    directory, has_directory, _ = program.words[0].text.rpartition("/")
    return not has_directory or directory in STANDARD_DIRECTORIES


def _programs(text: str, variables: tuple[str, ...], depth: int) -> Iterator[Program]:
    if depth > DEPTH_MAX:
        raise Unreadable("it is nested too deeply")
    commands = simple_commands(text, is_nested=depth > 0)
    # A variable that is set for the shell may change what all of its commands do.
    lasting = tuple(
        assignment
        for command in commands
        if not command.words
        for assignment in command.assignments
        if not _is_local(assignment)
    )
    for command in commands:
        yield from _of_variables(command.assignments, depth)
        yield from _expanded(command, (*variables, *lasting), depth)


def _of_variables(assignments: Sequence[str], depth: int) -> Iterator[Program]:
    """Yield what shells and programs run because of the variables that are set."""
    for assignment in assignments:
        if shell_variables.may_run_anything(assignment):
            yield Program((), (assignment,), is_opaque=True, is_carrier=True)
        elif text := shell_variables.command_in(assignment):
            yield from _of_text(text, depth)


def _of_text(text: str, depth: int) -> Iterator[Program]:
    """Yield what a text runs that a program gets as a command, with arguments of its own."""
    for each in _programs(f'{text} "$@"' if text.strip() else "", (), depth + 1):
        yield replace(each, is_carrier=True)


def _is_local(assignment: str) -> bool:
    """Return whether a variable is the shell's own by its name, which programs do not read."""
    name = assignment.partition("=")[0]
    return name.islower() and not name.endswith("_proxy")


def _expanded(command: SimpleCommand, variables: tuple[str, ...], depth: int) -> Iterator[Program]:
    if not command.words:
        if command.writes_file:
            yield Program((), variables, writes_file=True)
        return
    assignments = (*variables, *command.assignments)
    yield from _of_words(
        Program(command.words, assignments, writes_file=command.writes_file), depth
    )


def _of_words(program: Program, depth: int) -> Iterator[Program]:
    """Yield a program and those that it runs."""
    if depth > DEPTH_MAX:
        raise Unreadable("it is nested too deeply")
    first = program.words[0]
    name = base_name(first)
    if not first.is_literal or not name or may_run_anything(name):
        yield replace(program, is_opaque=True)
    elif name in WRAPPERS:
        yield from _wrapped(program, WRAPPERS[name], depth)
    elif name in _READERS:
        yield from _READERS[name](program, depth)
    elif name in PLAIN and _is_standard(program):
        yield program
        yield from _of_variables(tuple(shell_builtins.assignments_in(program.words)), depth)
        if shell_builtins.may_run_anything(program.words):
            yield _opaque_beside(program)
        if name in shell_builtins.KEEPING:
            yield from _indirect(program)
    else:
        yield program
        yield from _indirect(program)


def _opaque_beside(program: Program) -> Program:
    """Return what stands beside a program that may run anything and can be allowed."""
    return replace(program, is_opaque=True, is_carrier=True)


def _indirect(program: Program) -> Iterator[Program]:
    """Yield what stands for the programs that an unknown program may run from its arguments."""
    if len(_texts_in(program)) > TEXTS_MAX:
        yield _opaque_beside(program)
    elif program.assignments or any(word.is_literal for word in program.words[1:]):
        yield replace(program, is_carrier=True, is_indirect=True)


def _wrapped(program: Program, wrapper: Wrapper, depth: int) -> Iterator[Program]:
    rest = after_options(program.words[1:], wrapper)
    if rest is None or not all(word.is_literal for word in rest[: wrapper.operands]):
        yield replace(program, is_opaque=True)
        return
    added: list[str] = []
    rest = rest[wrapper.operands :]
    # Programs such as env take any word with = for one, whatever its name is.
    while wrapper.has_assignments and rest and "=" in rest[0].text:
        added.append(rest[0].text if rest[0].is_literal else f"{rest[0].text}?")
        rest = rest[1:]
    yield from _of_variables(added, depth)
    if not rest:
        # xargs without a program is echo, env prints its variables.
        yield program
        return
    yield replace(program, is_carrier=not wrapper.is_judged and _is_standard(program))
    words = tuple(_with_input(program.words, rest)) if wrapper.adds_words else tuple(rest)
    assignments = (*program.assignments, *added)
    yield from _of_words(replace(program, words=words, assignments=assignments), depth + 1)


def _with_input(words: Sequence[Word], rest: Sequence[Word]) -> Iterator[Word]:
    """Yield the words that `xargs` runs, in which its input replaces a text or is added."""
    options = words[1 : len(words) - len(rest)]
    replaced = [
        word.text[2:] or after.text
        for word, after in pairwise((*options, ANYTHING))
        if word.text.startswith("-I")
    ]
    for word in rest:
        yield ANYTHING if any(each in word.text for each in replaced) else word
    yield ANYTHING


def _of_shell(program: Program, depth: int) -> Iterator[Program]:
    """Yield what `sh -c` runs; a shell that reads its input may run anything."""
    words = program.words
    at, reads_text = _after_shell_options(words)
    if at >= len(words) or not words[at].is_literal:
        yield replace(program, is_opaque=True)
    elif reads_text:
        yield replace(program, is_carrier=_is_standard(program))
        yield from _programs(words[at].text, program.assignments, depth + 1)
        yield from _indirect(replace(program, words=(words[0], *words[at + 1 :])))
    else:
        yield replace(program, is_opaque=_INPUT.fullmatch(words[at].text) is not None)
        yield from _indirect(program)


def _after_shell_options(words: Sequence[Word]) -> tuple[int, bool]:
    """Return where the text or the script is, and whether it is a text; the end if not known."""
    unknown = (len(words), False)
    at, reads_text = 1, False
    while at < len(words) and words[at].is_literal and words[at].text[:1] in ("-", "+"):
        option = words[at].text
        at += 1
        if option == "--":
            break
        if option in _SHELL_OPTIONS:
            continue
        if not _SHELL_LETTERS.fullmatch(option) or len(option) < 2 or "s" in option:
            return unknown
        reads_text = reads_text or "c" in option
        if option[-1] in "oO":
            if at >= len(words) or not _is_shell_option(words, at):
                return unknown
            at += 1
    return at, reads_text


def _is_shell_option(words: Sequence[Word], at: int) -> bool:
    """Return whether a word is the name of an option, and the shell has options of that kind."""
    is_bash = base_name(words[0]) in ("bash", "rbash")
    has_option = is_bash or words[at - 1].text.endswith("o")
    is_name = words[at].is_literal and _OPTION_NAME.fullmatch(words[at].text) is not None
    return has_option and is_name


def _of_eval(program: Program, depth: int) -> Iterator[Program]:
    words = program.words[1:]
    if not all(word.is_literal for word in words):
        yield replace(program, is_opaque=True)
        return
    yield replace(program, is_carrier=True)
    yield from _programs(" ".join(word.text for word in words), program.assignments, depth + 1)


def _of_trap(program: Program, depth: int) -> Iterator[Program]:
    words = program.words[1:]
    if not all(word.is_literal for word in words):
        yield replace(program, is_opaque=True)
        return
    yield program
    text = next((word.text for word in words if word.text != "--"), "")
    if len(words) > 1 and text != "-":
        yield from _programs(text, program.assignments, depth + 1)


def _of_find(program: Program, depth: int) -> Iterator[Program]:
    """Yield `find` and what its actions run; a word that is not known may be such an action."""
    words = program.words
    is_known = all(word.is_literal or word.text[:1] not in ("", "-") for word in words)
    yield replace(program, is_opaque=not is_known)
    at = 1
    while at < len(words):
        if words[at].text not in _FIND_ACTIONS:
            at += 1
            continue
        end = at + 1
        # A + only ends the words after the names of the files.
        while end < len(words) and words[end].text != ";":
            if words[end].text == "+" and words[end - 1].text == "{}":
                break
            end += 1
        inner = tuple(ANYTHING if "{}" in word.text else word for word in words[at + 1 : end])
        if inner:
            yield from _of_words(replace(program, words=inner), depth + 1)
        at = end


def _of_git(program: Program, depth: int) -> Iterator[Program]:
    """Yield `git`, what its settings run, and `git` without the options before its subcommand."""
    yield program
    words = program.words
    at = 1
    while at < len(words) and words[at].is_literal and words[at].text.startswith("-"):
        option = words[at].text
        value = words[at + 1] if at + 1 < len(words) else ANYTHING
        if option == "-c":
            yield from _of_git_setting(program, value, depth)
        elif not _is_plain_git_option(option):
            yield _opaque_beside(program)
        at += 2 if option in _GIT_VALUED else 1
    if at > 1:
        yield replace(program, words=(words[0], *words[at:]), is_carrier=True)
    if at < len(words) and words[at].text not in PLAIN_GIT:
        yield from _indirect(replace(program, words=words[at:]))


def _is_plain_git_option(option: str) -> bool:
    """Return whether an option is known, and no other program runs because of it."""
    name, has_value, _ = option.partition("=")
    if name in ("--config-env", "--exec-path"):
        return name == "--exec-path" and not has_value
    return option in _GIT_FLAGS or name in _GIT_VALUED


def _of_git_setting(program: Program, setting: Word, depth: int) -> Iterator[Program]:
    key, _, value = setting.text.partition("=")
    if setting.is_literal and _GIT_COMMAND.fullmatch(key.lower()):
        yield from _of_text(value, depth)
    elif setting.is_literal and key.lower().startswith("alias.") and value.startswith("!"):
        yield from _of_text(value[1:], depth)
    elif not setting.is_literal or not _GIT_PLAIN.fullmatch(key.lower()):
        yield _opaque_beside(program)


_READERS: Final[Mapping[str, Callable[[Program, int], Iterator[Program]]]] = {
    **dict.fromkeys(SHELLS, _of_shell),
    "eval": _of_eval,
    "find": _of_find,
    "git": _of_git,
    "trap": _of_trap,
}
