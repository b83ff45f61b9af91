"""What an export has not, in a list of bounded length."""

from typing import Final

PROBLEMS_MAX: Final = 10_000
#: The code of the last problem, which counts those that are not listed.
MORE_PROBLEMS: Final = "MORE_PROBLEMS"
#: The code of an export that was given up.
EXPORT_FAILED: Final = "EXPORT_FAILED"


class ExportProblems:
    """The names of what is left out, each with the code of the reason."""

    def __init__(self, listed_max: int = PROBLEMS_MAX) -> None:
        self._listed_max = listed_max
        self._listed: list[object] = []
        self._unlisted = 0

    def add(self, name: str, code: str) -> None:
        """Note a problem."""
        if len(self._listed) < self._listed_max:
            self._listed.append({"name": name, "code": code})
        else:
            self._unlisted += 1

    def document(self) -> list[object]:
        """Return the problems, and last how many more there are, if there are more."""
        if not self._unlisted:
            return [*self._listed]
        return [*self._listed, {"name": "", "code": MORE_PROBLEMS, "count": self._unlisted}]
