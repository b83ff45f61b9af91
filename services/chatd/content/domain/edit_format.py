"""How a model changes files: which manner it was trained on decides which tool it is offered."""

import re
from enum import StrEnum
from typing import Final


class EditStyle(StrEnum):
    """A manner of changing files."""

    REPLACEMENT = "replacement"  # Old text and new text.
    PATCH = "patch"  # One text with the changes of all files.


# The GPT-5 family and the models made for coding, however a gateway prefixes or dates their names.
_PATCHERS: Final = re.compile(r"(?:^|[/.:])(?:gpt-5(?:$|[.\-@:])|(?:[\w.]+-)*codex(?:$|[.\-@:]))")


def edit_style_of(model_name: str) -> EditStyle:
    """Return the manner of a model, by the name that its provider knows it by."""
    is_patcher = _PATCHERS.search(model_name.strip().lower()) is not None
    return EditStyle.PATCH if is_patcher else EditStyle.REPLACEMENT
