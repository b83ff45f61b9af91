"""Audits a database of chats: `python -m chatd.audit`."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import asyncpg

from chatd.audit.finding import Finding
from chatd.audit.running import WrongDatabase, audit
from parley.postgres import DatabaseError

CLEAN, VIOLATED, UNUSABLE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """Audit the database that the arguments name and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        url = options.database or options.database_url_file.read_text().strip()
    except (OSError, ValueError) as error:
        return _refuse(f"{options.database_url_file} cannot be read ({error})")
    if not url:
        return _refuse(f"{options.database_url_file} is empty: write the URL of a database into it")
    try:
        findings = asyncio.run(audit(url, is_live=options.live, key_ids=options.key_id))
    except (DatabaseError, WrongDatabase) as error:
        return _refuse(str(error))
    except asyncpg.PostgresError as error:
        return _refuse(f"the database refuses to be audited ({error})")
    is_clean = all(finding.count == 0 for finding in findings)
    if options.json:
        document = {"is_clean": is_clean, "invariants": [asdict(each) for each in findings]}
        print(json.dumps(document, indent=2))
    else:
        for finding in findings:
            print(line_of(finding))
        print(summary_of(findings))
    return CLEAN if is_clean else VIOLATED


def line_of(finding: Finding) -> str:
    """Return a finding as a line of text for the terminal."""
    if finding.count == 0:
        return f"✓ {finding.name}"
    more = ", ..." if finding.count > len(finding.ids) else ""
    return f"✗ {finding.name} {finding.count}: {', '.join(finding.ids)}{more} ({finding.sentence})"


def summary_of(findings: Sequence[Finding]) -> str:
    """Return how many invariants hold, as the last line."""
    broken = sum(finding.count != 0 for finding in findings)
    if not broken:
        return f"All {len(findings)} invariants hold."
    return f"{broken} of {len(findings)} invariants do not hold."


def _refuse(problem: str) -> int:
    print(f"audit: {problem}", file=sys.stderr)
    return UNUSABLE


def _given(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty; give the URL of a database")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chatd.audit",
        description="Check what must hold in a database of chats, without changing anything. "
        "Exit code 1 if something does not hold, 2 if the database cannot be audited.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--database", metavar="URL", type=_given, help="other users can see it while this runs"
    )
    source.add_argument("--database-url-file", metavar="FILE", type=Path)
    parser.add_argument("--live", action="store_true", help="services run on it: leases too")
    parser.add_argument(
        "--key-id", action="append", metavar="ID", help="a master key of the keyring; repeatable"
    )
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
