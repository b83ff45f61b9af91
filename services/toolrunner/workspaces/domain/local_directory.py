"""Directories of this node that its administrator offers to local workspaces."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME_CHARACTERS_MAX: Final = 64
OVERLAY_ONLY: Final = "overlay"


@dataclass(frozen=True, slots=True)
class LocalDirectory:
    """A directory with the name that templates use.

    Attributes:
        name: The name.
        path: Its path, which is not sent to other services.
        is_overlay_only: Whether it may be used only under an overlay.
    """

    name: str
    path: Path
    is_overlay_only: bool = False

    @classmethod
    def parse(cls, text: str) -> "LocalDirectory":
        """Parse `name=/path` or `name=/path;overlay`.

        Raises:
            ValueError: It is not valid.
        """
        name, _, rest = text.partition("=")
        path, _, flag = rest.partition(";")
        is_named = 1 <= len(name) <= NAME_CHARACTERS_MAX
        if not is_named or not path.startswith("/") or flag not in ("", OVERLAY_ONLY):
            raise ValueError(f"is {text!r}, give name=/path, or name=/path;overlay")
        return cls(name, Path(path), flag == OVERLAY_ONLY)

    def __str__(self) -> str:
        return f"{self.name}={self.path}{';overlay' if self.is_overlay_only else ''}"
