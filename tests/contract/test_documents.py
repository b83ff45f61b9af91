"""What the documents claim must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FEATURES = (ROOT / "docs" / "features.md").read_text()
PROOFS = re.findall(r"`([\w/]+\.py)::(test_\w+)`", FEATURES)
SCENARIOS = (ROOT / "docs" / "mcp-scenarios.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize(("path", "test"), PROOFS, ids=lambda value: str(value)[-60:])
def test_every_feature_names_a_test_that_exists(path: str, test: str) -> None:
    assert re.search(rf"def {test}\b", (ROOT / "tests" / path).read_text())


def test_every_scenario_of_mcp_names_tests_that_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", SCENARIOS)
    assert named
    assert [
        test
        for path, test in named
        if not re.search(rf"def {test}\b", (ROOT / "tests" / path).read_text())
    ] == []


def test_every_line_of_the_features_has_a_proof() -> None:
    lines = [line for line in FEATURES.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith(("| feature", "|---"))]
    assert len(rows) == len(PROOFS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", document.read_text())
    assert [target for target in targets if not leads_somewhere(document, target)] == []


def leads_somewhere(document: Path, target: str) -> bool:
    """Tell whether a link leads to a file, and to a heading in it if it names one."""
    name, _, anchor = target.partition("#")
    linked = document.parent / name if name else document
    if not linked.exists():
        return False
    headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE) if anchor else []
    return not anchor or anchor in map(anchor_of, headings)


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_the_index_of_decisions_lists_every_one_of_them() -> None:
    decisions = ROOT / "docs" / "adr"
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\)", (decisions / "README.md").read_text(), re.M)
    files = sorted(path.name for path in decisions.glob("[0-9]*.md"))
    assert listed == [(name[:4], name) for name in files]


def test_every_file_that_the_guide_names_exists() -> None:
    guide = (ROOT / "docs" / "extending.md").read_text()
    paths = re.findall(r"`((?:\w+/)+[\w.*]*|\w+\.(?:toml|yaml))`", guide)
    assert len(paths) > 50
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


def test_every_invariant_names_tests_that_exist() -> None:
    invariants = (ROOT / "ARCHITECTURE.md").read_text().split("## Invariants")[1].split("## ")[0]
    paths = re.findall(r"`(tests/[\w/.]+)`", invariants)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
