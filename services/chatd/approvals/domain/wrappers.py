"""Programs that run the program in their arguments, whose options are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chatd.approvals.domain.shell_words import Word


@dataclass(frozen=True, slots=True)
class Wrapper:
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


def _wrapper(flags: str = "", valued: str = "", **given: int) -> Wrapper:
    return Wrapper(
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
WRAPPERS: Final[Mapping[str, Wrapper]] = {
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
    "time": _wrapper("-p -v", has_assignments=1),
    "timeout": _wrapper(
        "--foreground --preserve-status -v", "-k -s --kill-after --signal", operands=1
    ),
    "toybox": _wrapper(),
    # The options whose values are optional, such as --replace, are not known.
    "xargs": _wrapper(
        "-0 -r -t -x -o --null --no-run-if-empty --verbose",
        "-I -n -P -L -d -a -E -s --max-args --max-procs --delimiter --arg-file",
        adds_words=1,
    ),
}


def after_options(words: Sequence[Word], wrapper: Wrapper) -> Sequence[Word] | None:
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
            if at + 1 < len(words) and not words[at + 1].is_literal:
                return None
            at += 2
        elif text in wrapper.flags or _is_joined(text, wrapper):
            at += 1
        else:
            return None
    return ()


def _is_joined(text: str, wrapper: Wrapper) -> bool:
    """Return whether an option carries its value, or is a number as of `nice`."""
    name, has_value, _ = text.partition("=")
    return (
        (bool(has_value) and name in wrapper.valued)
        or (not text.startswith("--") and len(text) > 2 and text[:2] in wrapper.valued)
        or text[1:].isdigit()
    )
