"""Errors of the audit log."""

from parley.rpc import Violation


class AuditFilterInvalid(Exception):
    """A list of entries cannot be filtered like this.

    Attributes:
        violations: The fields.
    """

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{each.field} {each.description}" for each in violations))
        self.violations = violations
