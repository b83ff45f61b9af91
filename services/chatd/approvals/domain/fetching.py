"""Commands that get content from other hosts, as far as their texts show it.

Theory: a command gets content if it names a program that does, or has code that does, or runs a
file with such code that the chat wrote itself. Programs that were there before, and what they read,
are not known: what a workspace may reach at all is decided by its network.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

_PROGRAMS: Final = (
    "aria2c|axel|curl|drill|elinks|lftp|lynx|ncat|netcat|nslookup|rclone|rsync|scp|sftp|socat|ssh|"
    "telnet|tftp|w3m|wget|whois|yt-dlp"
)
#: Names that are also words of other texts, and the beginnings of addresses.
_SHORT_PROGRAMS: Final = "dig|ftp|gh|glab|https?|links|nc|xh"
_CODE: Final = (
    r"/dev/(?:tcp|udp)/|openssl\s+s_client|\bfetch\s*\(|\brequests\.\w|\bsocket\.socket\b|"
    r"\bhttps?\.(?:client|get|request|Get|Post)\b|\bnet\.(?:connect|createConnection|Dial)\b|"
    r"\b(?:aiohttp|axios|create_connection|file_get_contents|fsockopen|ftplib|HTTP::Tiny|httpx|"
    r"HTTPS?Connection|LWP|Net::\w+|IO::Socket|open-uri|open_connection|TCPSocket|urllib\w*|urlopen|"
    r"WebSocket|XMLHttpRequest)\b"
)
_FETCH: Final = re.compile(rf"\b(?:{_PROGRAMS}|{_SHORT_PROGRAMS})\b|{_CODE}")
_FETCH_IN_FILE: Final = re.compile(rf"\b(?:{_PROGRAMS})\b|{_CODE}")
_COMMAND: Final = re.compile(r"[^\n;&|]+")
_GIT: Final = re.compile(r"[\s({]*(?:\w+=\S*\s+)*git\s")
#: Subcommands of git that talk to other hosts, among the first words of a command.
_CLONES: Final = frozenset(("clone", "fetch", "ls-remote", "pull", "push", "remote", "submodule"))
_WORDS_MAX: Final = 12
#: What may stand before or after a word in a shell.
_AROUND_WORDS: Final[str] = "(){}<>!`'\"\\"
_BETWEEN_WORDS: Final = str.maketrans(dict.fromkeys(_AROUND_WORDS, " "))
_ADDRESS: Final = re.compile(r"\b(?:git|https?|ssh)://[^\s'\";&|$`()]*")
_WORD: Final = re.compile(r"[\w./+@-]+")
_INTERPRETER: Final = re.compile(
    r"(?:bun|deno|lua|node|npx|perl|php|poetry|pypy|python|Rscript|ruby|source|ts-node|tsx|uvx?|"
    r"(?:ba|da|k|z)?sh)[\d.]*"
)
#: A file that is run by its path, or read by a shell.
_STARTED: Final = re.compile(
    r"(?:^|[;&|({`]|\b(?:do|else|exec|then|time)\b|(?:^|\s)\.(?=\s))"
    r"[ \t]*((?:\.{1,2}|~)?/[\w./+@-]+)",
    re.MULTILINE,
)
#: Arguments that are paths of files that a call writes.
_PATH_FIELDS: Final = frozenset(("path", "new_path"))
_PATCHED_PATH: Final = re.compile(r"\*\*\* (?:Add File|Update File|Move to): (.+)")


def texts_of(args_json: str) -> Iterator[str]:
    """Return the texts in arguments, without escapes, which would hide the beginnings of words."""
    return (text for _, text in _fields_of(args_json))


def _fields_of(args_json: str) -> Iterator[tuple[str, str]]:
    """Return the texts in arguments with the names of their fields."""
    try:
        found: list[tuple[str, object]] = [("", json.loads(args_json))]
    except (ValueError, RecursionError):
        found = [("", args_json)]
    while found:
        match found.pop():
            case name, str() as text:
                yield name, text
            case name, list() as items:
                found.extend((name, item) for item in items)
            case _, dict() as fields:
                found.extend(fields.items())


def is_fetching(text: str) -> bool:
    """Return whether a command may get content from another host, repositories of git aside."""
    plain = _COMMAND.sub(_without_addresses, text) if "git" in text else text
    return _FETCH.search(plain) is not None


def is_cloning(text: str) -> bool:
    """Return whether a command may get files of a repository from another host."""
    return "git" in text and any(map(_is_git_named, _COMMAND.findall(text)))


def _is_git_named(command: str) -> bool:
    """Return whether git is named with such a subcommand, by whatever program it is started."""
    words_left = 0
    for word in command.translate(_BETWEEN_WORDS).split():
        if word == "git" or word.endswith("/git"):
            words_left = _WORDS_MAX
        elif words_left:
            if word in _CLONES:
                return True
            words_left -= 1
    return False


def _without_addresses(command: re.Match[str]) -> str:
    return _ADDRESS.sub("", command[0]) if _is_of_git(command[0]) else command[0]


def _is_of_git(command: str) -> bool:
    """Return whether a command begins with git: another program may get what is at an address."""
    begun = _GIT.match(command)
    if begun is None:
        return False
    words = command[begun.end() :].split(maxsplit=_WORDS_MAX)[:_WORDS_MAX]
    return not _CLONES.isdisjoint(words)


def files_run_by(text: str) -> frozenset[str]:
    """Return the names of files that a command may run: by their paths, or by an interpreter."""
    names = [word.rpartition("/")[2] for word in _WORD.findall(text)]
    if not any(map(_INTERPRETER.fullmatch, names)):
        return frozenset(path.rpartition("/")[2] for path in _STARTED.findall(text))
    # `python -m package.module` runs `module.py`.
    modules = (f"{name.rpartition('.')[2]}.py" for name in names)
    return frozenset((*names, *modules))


def files_written(args_json: str) -> frozenset[str]:
    """Return the names of the files that a call writes."""
    paths = list[str]()
    for name, text in _fields_of(args_json):
        paths += (text,) if name in _PATH_FIELDS else _PATCHED_PATH.findall(text)
    return frozenset(path.strip().rpartition("/")[2] for path in paths)


def is_fetching_file(args_json: str) -> bool:
    """Return whether a call writes code that gets content from other hosts."""
    return any(map(_FETCH_IN_FILE.search, texts_of(args_json)))
