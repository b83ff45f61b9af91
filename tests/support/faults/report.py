"""What a fault suite found, row by row: trials, losses, and the bound that zero failures allow."""

import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

CONFIDENT_FAILURES = 3.0  # With none in n trials, at most 3/n fail, with 95 % confidence.


@dataclass(slots=True)
class RowReport:
    """One row of the fault matrix.

    Attributes:
        faults: How often the fault was injected.
        trials: Chats, or whatever the row counts, that were in the row's phase when it hit.
        acknowledged: Messages that were answered with success.
        lost: Acknowledged messages that are not in the history.
        duplicates: Messages that are in the history more than once.
        double_executions: Tool calls whose effect happened more than once.
        violations: Findings of the auditor.
        counts: Further things that were counted.
        figures: Measured numbers by name.
        problems: Everything that must not be, in words.
    """

    row: str
    faults: int = 0
    trials: int = 0
    acknowledged: int = 0
    lost: int = 0
    duplicates: int = 0
    double_executions: int = 0
    violations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> "RowReport":
        """Return the row that a text of `dump` holds."""
        return cls(**json.loads(text))

    def dump(self) -> str:
        """Return everything there is to know of the row as one text."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)})

    @property
    def bound(self) -> float | None:
        """Return the largest rate of failures that is still believable, None if some failed."""
        return None if self.problems or not self.trials else CONFIDENT_FAILURES / self.trials

    def document(self) -> dict[str, Any]:
        """Return the row as JSON shows it."""
        return {
            "row": self.row,
            "faults": self.faults,
            "trials": self.trials,
            "acknowledged": self.acknowledged,
            "lost": self.lost,
            "duplicates": self.duplicates,
            "double_executions": self.double_executions,
            "auditor_violations": self.violations,
            "bound_95": None if self.bound is None else round(self.bound, 5),
            "counts": dict(self.counts),
            "figures": {name: spread(values) for name, values in sorted(self.figures.items())},
            "problems": self.problems[:20],
        }

    def require_clean(self) -> None:
        """Fail with everything that must not be."""
        print(json.dumps(self.document()))
        assert not self.problems, f"{self.row}: " + "\n".join(self.problems[:20])


@dataclass(slots=True)
class FaultReport:
    """All rows of a run."""

    rows: list[RowReport] = field(default_factory=list)

    def begin(self, row: str) -> RowReport:
        """Return a new row."""
        report = RowReport(row)
        self.rows.append(report)
        return report

    def total(self) -> dict[str, Any]:
        """Return the sums over all rows."""
        names = ("faults", "trials", "acknowledged", "lost", "duplicates", "double_executions")
        sums: dict[str, Any] = {
            name: sum(getattr(row, name) for row in self.rows) for name in names
        }
        sums["auditor_violations"] = sum(row.violations for row in self.rows)
        sums["problems"] = sum(len(row.problems) for row in self.rows)
        return {"row": "total", "rows": len(self.rows), **sums}

    def write(self, path: Path, **circumstances: object) -> None:
        """Write one line of JSON per row, and the total with its circumstances."""
        documents = [*(row.document() for row in self.rows), self.total() | circumstances]
        path.write_text("".join(json.dumps(document) + "\n" for document in documents))

    def table(self) -> list[str]:
        """Return the rows as lines of text."""
        heads = ("row", "faults", "trials", "acked", "lost", "dup", "double", "audit", "3/n")
        lines: list[str] = ["  ".join(head.rjust(7) for head in heads)]
        for row in self.rows:
            bound = "failed" if row.bound is None else f"{row.bound:.4f}"
            cells = (
                row.row, row.faults, row.trials, row.acknowledged, row.lost, row.duplicates,
                row.double_executions, row.violations, bound,
            )  # fmt: skip
            figures = ", ".join(
                f"{name} {values[len(values) // 2]:.2f}..{values[-1]:.2f}"
                for name, values in ((n, sorted(v)) for n, v in row.figures.items())
            )
            lines.append("  ".join(str(cell).rjust(7) for cell in cells) + f"  {figures}")
        return lines


def spread(values: list[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the largest of some numbers."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "n": len(ordered),
        "p50": round(ordered[last // 2], 3),
        "p99": round(ordered[math.ceil(last * 0.99)], 3),
        "max": round(ordered[last], 3),
    }
