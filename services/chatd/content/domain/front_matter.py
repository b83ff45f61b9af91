"""Markdown files of a workspace that begin with fields between two lines of dashes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from chatd.content.domain.sanitizing import sanitized

_HEAD: Final = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.M)
_FIELD: Final = re.compile(r"^(?P<key>[\w-]+):[ \t]*(?P<value>.*(?:\n[ \t]+.*)*)", re.M)


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """A file with fields before its text, both sanitized."""

    fields: Mapping[str, str]
    body: str


def parsed_file(content: str) -> MarkdownFile | None:
    """Return the fields and the text of a file; None if it does not begin with fields."""
    text = content.replace("\r\n", "\n").lstrip("\ufeff")
    head = _HEAD.match(text)
    if head is None:
        return None
    fields = {each["key"]: _value(each["value"]) for each in _FIELD.finditer(head["fields"])}
    return MarkdownFile(fields, sanitized(_without_comments(text[head.end() :])))


def _without_comments(text: str) -> str:
    kept, start = "", 0
    while (begin := text.find("<!--", start)) >= 0 and (end := text.find("-->", begin + 4)) >= 0:
        kept += text[start:begin]
        start = end + len("-->")
    return kept + text[start:]


def _value(text: str) -> str:
    first, _, rest = text.partition("\n")
    if first.strip() in (">", "|", ">-", "|-"):
        first = ""
    plain = " ".join(sanitized(f"{first} {rest}").split())
    is_quoted = len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "'\""
    return plain[1:-1] if is_quoted else plain
