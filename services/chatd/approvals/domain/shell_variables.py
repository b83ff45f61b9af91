"""Variables by which shells and programs run something: what an assignment may run."""

import re
from typing import Final

#: Shells expand or read them, the loader of programs loads them, programs take options from them.
_OPAQUE: Final = re.compile(
    r"BASH_ENV|PS[0-4]|BASH_FUNC_.*|SHELLOPTS|BASHOPTS"
    r"|(?:LD|DYLD)_(?:PRELOAD|AUDIT|LIBRARY_PATH|INSERT_LIBRARIES)|GCONV_PATH"
    r"|GIT_CONFIG.*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR|TAR_OPTIONS|LESSOPEN|LESSCLOSE"
    r"|PYTHONSTARTUP|PERL5OPT|PERL5DB|RUBYOPT"
)
#: Their values are commands.
_COMMAND: Final = re.compile(
    r"(?:.*_)?(?:ASKPASS|BROWSER|COMMAND|CONNECT_PROG|RSH|SSH|VISUAL)|.*(?:EDITOR|PAGER)|FCEDIT"
    r"|GIT_EXTERNAL_DIFF"
)
#: A substitution in an index, which bash runs where it evaluates a value.
_INDEXED: Final = re.compile(r"\[.*(?:\$[({]|`)", re.DOTALL)
UNKNOWN: Final = "?"
_NO_FILE: Final = "/dev/null"


def is_evaluated(text: str) -> bool:
    """Return whether bash may run something if it evaluates a text as a name or a number."""
    return _INDEXED.search(text) is not None


def may_run_anything(assignment: str) -> bool:
    """Return whether an assignment lets a shell or a program run what cannot be read."""
    name, _, value = assignment.partition("=")
    if _OPAQUE.fullmatch(name):
        return value != _NO_FILE
    if name == "ENV":
        # A shell expands it and reads that file; often it is a word for programs.
        return any(each in value for each in "$`/?")
    return is_evaluated(value) or (command_in(assignment) != "" and value.endswith(UNKNOWN))


def command_in(assignment: str) -> str:
    """Return the command that a variable names for programs; empty for other variables."""
    name, _, value = assignment.partition("=")
    return value if _COMMAND.fullmatch(name) else ""
