"""The file editing format of a model: it decides which editing tool is offered."""

import re
from enum import StrEnum
from typing import Final


class EditStyle(StrEnum):
    """A format in which a model edits files."""

    REPLACEMENT = "replacement"  # Old text and new text.
    PATCH = "patch"  # One text with the changes of all files.


# GPT-5 models and coding models, with any prefix or date that a gateway adds to their names.
_PATCHERS: Final = re.compile(r"(?:^|[/.:])(?:gpt-5(?:$|[.\-@:])|(?:[\w.]+-)*codex(?:$|[.\-@:]))")


def edit_style_of(model_name: str) -> EditStyle:
    """Return the edit style of a model by its name at the provider."""
    is_patcher = _PATCHERS.search(model_name.strip().lower()) is not None
    return EditStyle.PATCH if is_patcher else EditStyle.REPLACEMENT
