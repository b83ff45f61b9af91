"""What the documents claim must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FEATURES = (ROOT / "docs" / "features.md").read_text()
PROOFS = re.findall(r"`([\w/]+\.py)::(test_\w+)`", FEATURES)
LINKED = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize(("path", "test"), PROOFS, ids=lambda value: str(value)[-60:])
def test_every_feature_names_a_test_that_exists(path: str, test: str) -> None:
    assert re.search(rf"def {test}\b", (ROOT / "tests" / path).read_text())


def test_every_line_of_the_features_has_a_proof() -> None:
    lines = [line for line in FEATURES.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith(("| feature", "|---"))]
    assert len(rows) == len(PROOFS)


@pytest.mark.parametrize("document", LINKED, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []


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
