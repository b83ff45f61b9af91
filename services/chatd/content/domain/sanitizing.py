"""Removes from the texts of a workspace what a person does not see."""

import re
import unicodedata
from typing import Final

_ZERO_WIDTH_NON_JOINER: Final = "\u200c"  # Part of the spelling of several languages.
_KEPT_CONTROLS: Final = "\n\t"
_SELECTORS: Final = re.compile("[\U000e0100-\U000e01ef]")
_MANY_BREAKS: Final = re.compile(r"\n{3,}")
#: Tags that mark blocks of prompts; a file or a report must not be able to end its block.
#: Possessive, so that a long run of spaces is read once.
_BLOCK_TAGS: Final = re.compile(
    r"<(?=\s*+/?\s*+(?:(?:user_)?instructions|agent_report|hook_context|not_finished))",
    re.IGNORECASE,
)


def sanitized(text: str) -> str:
    """Remove what a person does not see in a text, and what would end its block in a prompt."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    # A text has few different characters, so each of them is judged once.
    removed = {ord(character): None for character in set(lines) if not _is_visible(character)}
    visible = lines.translate(removed) if removed else lines
    plain = _BLOCK_TAGS.sub("&lt;", _SELECTORS.sub("", visible))
    return _MANY_BREAKS.sub("\n\n", plain).strip()


def _is_visible(character: str) -> bool:
    if character.isascii():
        return character.isprintable() or character in _KEPT_CONTROLS
    is_format = unicodedata.category(character) in ("Cf", "Cc", "Co", "Cn", "Cs")
    return not is_format or character == _ZERO_WIDTH_NON_JOINER
