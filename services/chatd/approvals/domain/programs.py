"""The programs that a shell command runs, also through `sh -c`, `env`, `xargs`, `find -exec`.

A rule sees the text of a call, not what the programs in it do: `make` and `python` run others too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from chatd.approvals.domain.shell import SimpleCommand, simple_commands
from chatd.approvals.domain.shell_words import ANYTHING, NAME, Unreadable, Word, WordKind

DEPTH_MAX: Final = 8
#: A program by its path there is the program of that name.
STANDARD_DIRECTORIES: Final = frozenset(
    ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
)
SHELLS: Final = frozenset(("sh", "bash", "dash", "ash", "ksh"))
#: They run what cannot be read from the call.
OPAQUE: Final = frozenset(
    (
        *(".", "source", "alias", "at", "batch", "chroot", "coproc", "crontab", "csh", "docker"),
        *("expect", "fish", "flock", "nsenter", "parallel", "podman", "runuser", "script", "ssh"),
        *("su", "tcsh", "unshare", "watch", "zsh"),
    )
)
_FIND_ACTIONS: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_GIT_VALUED: Final = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
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
    """

    words: tuple[Word, ...]
    assignments: tuple[str, ...] = ()
    writes_file: bool = False
    is_opaque: bool = False
    is_carrier: bool = False

    @property
    def text(self) -> str:
        """The program as text for people; what is not known is an ellipsis."""
        words = (word.text if word.kind is not WordKind.DYNAMIC else "…" for word in self.words)
        return " ".join((*self.assignments, *words))


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """A program that runs the program in its arguments.

    Attributes:
        flags: Options without a value.
        valued: Options with a value.
        operands: How many arguments come before the program.
        has_assignments: Whether variables may come before the program.
        adds_words: Whether it adds arguments that are not known.
        is_judged: Whether it needs to be allowed itself.
    """

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    operands: int = 0
    has_assignments: bool = False
    adds_words: bool = False
    is_judged: bool = False


def _wrapper(flags: str = "", valued: str = "", **given: int) -> _Wrapper:
    return _Wrapper(
        frozenset(flags.split()),
        frozenset(valued.split()),
        operands=given.get("operands", 0),
        has_assignments=bool(given.get("has_assignments")),
        adds_words=bool(given.get("adds_words")),
        is_judged=bool(given.get("is_judged")),
    )


_SUDO: Final = _wrapper(
    "-n -E -H -k -S -b -P", "-u -g -p -C -D -T --user --group", has_assignments=1, is_judged=1
)
WRAPPERS: Final[Mapping[str, _Wrapper]] = {
    "builtin": _wrapper(),
    "busybox": _wrapper(),
    "command": _wrapper("-p"),
    "doas": _SUDO,
    "env": _wrapper("- -i --ignore-environment -v", "-u --unset -C --chdir", has_assignments=1),
    "exec": _wrapper("-c -l", "-a"),
    "ionice": _wrapper("-t", "-c -n --class --classdata"),
    "nice": _wrapper("", "-n --adjustment"),
    "nohup": _wrapper(),
    "setsid": _wrapper("-c -f -w --ctty --fork --wait"),
    "stdbuf": _wrapper("", "-i -o -e --input --output --error"),
    "sudo": _SUDO,
    "time": _wrapper("-p -v"),
    "timeout": _wrapper(
        "--foreground --preserve-status -v", "-k -s --kill-after --signal", operands=1
    ),
    "toybox": _wrapper(),
    "xargs": _wrapper(
        "-0 -r -t -x -o --null --no-run-if-empty --verbose",
        "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file --replace",
        adds_words=1,
    ),
}


def programs_of(command: str, variables: Sequence[str] = ()) -> tuple[Program, ...]:
    """Return the programs that a command runs; one that may be anything if it cannot be read.

    Args:
        command: The shell text.
        variables: Assignments that hold for all of it.
    """
    try:
        return tuple(_programs(command, tuple(variables), 0))
    except Unreadable:
        return (Program((ANYTHING,), is_opaque=True),)


def base_name(word: Word) -> str:
    """Return the name of a program without its directory."""
    return word.text.rpartition("/")[2]


def _programs(text: str, variables: tuple[str, ...], depth: int) -> Iterator[Program]:
    if depth > DEPTH_MAX:
        raise Unreadable("it is nested too deeply")
    commands = simple_commands(text)
    # A variable that is set for the shell may change what all of its commands do.
    lasting = tuple(
        assignment
        for command in commands
        if not command.words
        for assignment in command.assignments
        if not _is_local(assignment)
    )
    for command in commands:
        yield from _expanded(command, (*variables, *lasting), depth)


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
    if not first.is_literal or name in OPAQUE or not name:
        yield replace(program, is_opaque=True)
    elif name in WRAPPERS:
        yield from _wrapped(program, WRAPPERS[name], depth)
    elif name in _READERS:
        yield from _READERS[name](program, depth)
    else:
        yield program


def _wrapped(program: Program, wrapper: _Wrapper, depth: int) -> Iterator[Program]:
    rest = _after_options(program.words[1:], wrapper)
    if rest is None:
        yield replace(program, is_opaque=True)
        return
    assignments = list(program.assignments)
    rest = rest[wrapper.operands :]
    while wrapper.has_assignments and rest and _is_assignment(rest[0]):
        assignments.append(rest[0].text if rest[0].is_literal else f"{rest[0].text}?")
        rest = rest[1:]
    if not rest:
        # xargs without a program is echo, env prints its variables.
        yield program
        return
    yield replace(program, is_carrier=not wrapper.is_judged)
    words = (*rest, ANYTHING) if wrapper.adds_words else tuple(rest)
    yield from _of_words(replace(program, words=words, assignments=tuple(assignments)), depth + 1)


def _after_options(words: Sequence[Word], wrapper: _Wrapper) -> Sequence[Word] | None:
    """Return the words after the options; None if an option is not known."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.is_literal:
            # It may be an option, the program or several words.
            return None
        text = word.text
        if not text.startswith("-"):
            return words[at:]
        if text == "--":
            return words[at + 1 :]
        if text in wrapper.valued:
            at += 2
        elif text in wrapper.flags or _is_joined(text, wrapper):
            at += 1
        else:
            return None
    return ()


def _is_joined(text: str, wrapper: _Wrapper) -> bool:
    """Return whether an option carries its value, or is a number as of `nice`."""
    name, has_value, _ = text.partition("=")
    return (
        (bool(has_value) and name in wrapper.valued)
        or (not text.startswith("--") and len(text) > 2 and text[:2] in wrapper.valued)
        or text[1:].isdigit()
    )


def _is_assignment(word: Word) -> bool:
    name, has_value, _ = word.text.partition("=")
    return bool(has_value) and NAME.fullmatch(name) is not None


def _of_shell(program: Program, depth: int) -> Iterator[Program]:
    """Yield what `sh -c` runs; a shell that reads its input may run anything."""
    at, reads_text = 1, False
    words = program.words
    while at < len(words) and words[at].is_literal and words[at].text[:1] in ("-", "+"):
        option = words[at].text
        at += 1
        if option in ("--", "-"):
            break
        if option.startswith("--"):
            if option not in ("--login", "--norc", "--noprofile", "--posix"):
                yield replace(program, is_opaque=True)
                return
            continue
        reads_text = reads_text or (option.startswith("-") and "c" in option)
        if "s" in option:
            at = len(words)
        at += option.count("o")
    if at >= len(words) or not words[at].is_literal:
        yield replace(program, is_opaque=True)
        return
    yield replace(program, is_carrier=reads_text)
    if reads_text:
        yield from _programs(words[at].text, program.assignments, depth + 1)


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
    is_known = all(word.kind is not WordKind.DYNAMIC for word in words)
    yield replace(program, is_opaque=not is_known)
    at = 1
    while at < len(words):
        if words[at].text not in _FIND_ACTIONS:
            at += 1
            continue
        end = at + 1
        while end < len(words) and words[end].text not in (";", "+"):
            end += 1
        inner = tuple(ANYTHING if "{}" in word.text else word for word in words[at + 1 : end])
        if inner:
            yield from _of_words(replace(program, words=inner), depth + 1)
        at = end


def _of_git(program: Program, depth: int) -> Iterator[Program]:
    """Yield `git`, and once more without the options before its subcommand."""
    yield program
    words = program.words
    at = 1
    while at < len(words) and words[at].is_literal and words[at].text.startswith("-"):
        at += 2 if words[at].text in _GIT_VALUED else 1
    if at > 1:
        yield replace(program, words=(words[0], *words[at:]), is_carrier=True)


_READERS: Final[Mapping[str, Callable[[Program, int], Iterator[Program]]]] = {
    **dict.fromkeys(SHELLS, _of_shell),
    "eval": _of_eval,
    "find": _of_find,
    "git": _of_git,
    "trap": _of_trap,
}
