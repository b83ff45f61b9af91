"""Redacts secrets from text before it leaves the process."""

import json
import re
from urllib.parse import quote

REPLACEMENT = "[redacted]"

# Shorter values would also redact ordinary words and numbers.
REGISTERED_CHARACTERS_MIN = 6

# No pattern matches a quote or a lone backslash, so that JSON inside a text stays readable.
KNOWN_SHAPES = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?:(?!-----)(?:[^\"\\]|\\[nrt]))*"
    r"(?:-----END [A-Z0-9 ]*-----)?",
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}",
    r"(?<![A-Za-z0-9])gh[oprsu]_[A-Za-z0-9]{16,}",
    r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{16,}",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}",
    r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{8,}",
    r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*",
    # A database constraint may be called pk_something; a key contains a digit or a capital.
    r"(?<![A-Za-z0-9])(?:pk|ac)_(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{16,}",
)
# The prefixes of these patterns. Searching for them costs a hundredth of matching the patterns,
# which would be done for every log line of every request.
KNOWN_BEGINNINGS = (
    "-----BEGIN ",
    "sk-",
    *(f"gh{kind}_" for kind in "oprsu"),
    "github_pat_",
    "AKIA",
    "ASIA",
    "AIza",
    "xox",
    "eyJ",
    "pk_",
    "ac_",
)
KNOWN_SHAPE = re.compile("|".join(f"(?:{shape})" for shape in KNOWN_SHAPES))

# Only a part of the match is secret here; the rest is kept because it helps the reader.
CREDENTIALS_IN_PLACE = re.compile(
    r"(?P<before>\b(?i:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<login>\b[a-z][a-z0-9+.-]*://[^\s:/@\"\\]*:)[^\s/@\"\\]+(?=@)"
)


# Escaped as in Python, so that a message can neither forge a line nor control a terminal.
CONTROL_CHARACTERS = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}


class Redactor:
    """Replaces secrets in text: known patterns, and the exact values that were registered."""

    def __init__(self) -> None:
        self._spellings: set[str] = set()
        self._registered: re.Pattern[str] | None = None

    def register(self, value: str) -> None:
        """Redact `value` from now on, as it is and as JSON, Python or a URL encodes it.

        Values of fewer than six characters are not registered.
        """
        if len(value.strip()) < REGISTERED_CHARACTERS_MIN:
            return
        known = len(self._spellings)
        self._spellings |= _spellings(value.strip())
        if len(self._spellings) == known:
            return
        # The longest first, so that a secret that contains another one is redacted as a whole.
        longest_first = sorted(self._spellings, key=len, reverse=True)
        self._registered = re.compile("|".join(map(re.escape, longest_first)))

    def clean(self, text: str) -> str:
        """Return `text` with its secrets redacted."""
        if self._registered is not None:
            text = self._registered.sub(REPLACEMENT, text)
        for beginning in KNOWN_BEGINNINGS:
            if beginning in text:
                text = KNOWN_SHAPE.sub(REPLACEMENT, text)
                break
        small = text.lower()
        if "://" in small or "bearer" in small or "basic" in small:
            text = CREDENTIALS_IN_PLACE.sub(_keep_the_label, text)
        return text


def on_one_line(text: str) -> str:
    """Return `text` with its control characters escaped."""
    # Hardly any text has such characters, and looking each one up costs far more than this.
    return text if text.isprintable() else text.translate(CONTROL_CHARACTERS)


def _spellings(value: str) -> set[str]:
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        quote(value, safe=""),
        on_one_line(value),
    }


def _keep_the_label(match: re.Match[str]) -> str:
    return f"{match['before'] or match['login']}{REPLACEMENT}"
