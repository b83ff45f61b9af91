"""Every action of the audit log is documented, and recorded somewhere."""

import re

from parley.audit_log import AuditAction
from support.source.modules import ROOT

DOCUMENT = ROOT / "docs" / "audit-log.md"
ROW = re.compile(r"^\| (`[a-z_]+\.[a-z_]+`.*?) \|", re.MULTILINE)


def test_the_document_lists_all_actions() -> None:
    rows = ROW.findall(DOCUMENT.read_text())
    listed = [name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row)]

    assert sorted(listed) == sorted(AuditAction)


def test_every_action_is_recorded_by_a_service() -> None:
    sources = "".join(path.read_text() for path in sorted((ROOT / "services").rglob("*.py")))

    assert [
        action.name for action in AuditAction if f"AuditAction.{action.name}" not in sources
    ] == []
