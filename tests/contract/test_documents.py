"""What the documents claim must be there."""

import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from support.source.modules import modules_below, source_of

ROOT = Path(__file__).resolve().parent.parent.parent
FEATURES = (ROOT / "docs" / "features.md").read_text()
PROOFS = re.findall(r"`([\w/]+\.py)::(test_\w+)`", FEATURES)
SCENARIOS = (ROOT / "docs" / "mcp-scenarios.md").read_text()
SECURITY = (ROOT / "docs" / "security.md").read_text()
SERVICES = ("chatd", "gateway", "toolrunner", "mcpgateway")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize(("path", "test"), PROOFS, ids=lambda value: str(value)[-60:])
def test_every_feature_names_a_test_that_exists(path: str, test: str) -> None:
    assert re.search(rf"def {test}\b", (ROOT / "tests" / path).read_text())


@pytest.mark.parametrize("text", [SCENARIOS, SECURITY], ids=["mcp-scenarios", "security"])
def test_every_row_of_scenarios_and_of_the_threat_model_names_tests_that_exist(text: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", text)
    assert named
    assert [
        test
        for path, test in named
        if not re.search(rf"def {test}\b", (ROOT / "tests" / path).read_text())
    ] == []


def test_every_module_that_the_threat_model_names_exists() -> None:
    named = re.findall(r"`((?:chatd|gateway|mcpgateway|toolrunner|parley)(?:\.\w+)+)`", SECURITY)
    assert len(named) > 30
    assert [name for name in named if not is_in_source(name)] == []


def is_in_source(name: str) -> bool:
    """Tell whether a dotted name is a module or a package, or something that one defines."""
    *above, last = name.split(".")
    folder = ROOT / ("libs" if above[0] == "parley" else "services")
    inside = folder.joinpath(*above)
    modules = (inside.with_suffix(".py"), inside / "__init__.py")
    return (
        (inside / last).is_dir()
        or (inside / f"{last}.py").is_file()
        or any(re.search(rf"\b{last}\b", each.read_text()) for each in modules if each.is_file())
    )


def test_every_line_of_the_features_is_there_once_and_has_a_proof() -> None:
    lines = [line for line in FEATURES.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith(("| feature", "|---"))]
    assert len(rows) == len(PROOFS)
    assert [row for row, count in Counter(rows).items() if count > 1] == []


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


def test_the_index_of_documents_links_each_of_them_once() -> None:
    documents = ROOT / "docs"
    linked = re.findall(
        r"^\| \[[^]]+\]\(([\w-]+\.md)\)", (documents / "README.md").read_text(), re.M
    )
    files = sorted(path.name for path in documents.glob("*.md") if path.name != "README.md")
    assert sorted(linked) == files


def test_the_index_of_decisions_lists_every_one_of_them() -> None:
    decisions = ROOT / "docs" / "adr"
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\)", (decisions / "README.md").read_text(), re.M)
    files = sorted(path.name for path in decisions.glob("[0-9]*.md"))
    assert listed == [(name[:4], name) for name in files]


def test_every_number_without_a_decision_is_explained() -> None:
    text = (ROOT / "docs" / "adr" / "README.md").read_text().partition("\n| ")[0]
    explained = {int(number) for number in re.findall(r"\b0\d{3}\b", text)}
    for first, last in re.findall(r"\b(0\d{3}) to (0\d{3})\b", text):
        explained |= set(range(int(first), int(last) + 1))
    given = {int(path.name[:4]) for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}
    assert set(range(1, max(given))) - given == explained


def test_every_file_that_the_guide_names_exists() -> None:
    guide = (ROOT / "docs" / "extending.md").read_text()
    paths = re.findall(r"`((?:\w+/)+[\w.*]*|\w+\.(?:toml|yaml))`", guide)
    assert len(paths) > 50
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


def test_every_commit_that_the_guide_names_is_in_the_history() -> None:
    if git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("there is no complete history of git here")
    commits = re.findall(r"ommit `([0-9a-f]{8})`", (ROOT / "docs" / "extending.md").read_text())
    assert len(commits) >= 5
    assert [
        commit for commit in commits if git("merge-base", "--is-ancestor", commit, "HEAD") is None
    ] == []


def git(*arguments: str) -> str | None:
    """Return what a command of git prints, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def test_every_invariant_names_tests_that_exist() -> None:
    invariants = (ROOT / "ARCHITECTURE.md").read_text().split("## Invariants")[1].split("## ")[0]
    paths = re.findall(r"`(tests/[\w/.]+)`", invariants)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("drawn", "package"),
    [("libs/parley", "parley"), *((name, name) for name in SERVICES)],
)
def test_the_drawn_slices_are_those_of_the_import_contracts(drawn: str, package: str) -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        each["layers"]
        for each in linter["contracts"]
        if each["type"] == "layers" and each.get("containers") == [package]
    )
    depths = {
        name: depth for depth, layer in enumerate(layers) for name in re.findall(r"\w+", layer)
    }
    names = drawn_slices()[drawn]
    assert sorted(names) == sorted(depths)
    # From the highest layer to the lowest.
    assert [depths[name] for name in names] == sorted(depths.values())


def test_the_drawn_services_are_those_of_the_import_contracts() -> None:
    assert sorted(drawn_slices()["services"]) == sorted(SERVICES)


def drawn_slices() -> dict[str, list[str]]:
    """Return what is drawn for each label of the picture of slices, as it is read."""
    block = (ROOT / "ARCHITECTURE.md").read_text().split("\n## Slices\n")[1].split("```")[1]
    rows = re.split(r"^([a-z/]+):", re.sub(r"\([^)]*\)", "", block), flags=re.MULTILINE)[1:]
    return {
        label: re.findall(r"\w+", text) for label, text in zip(rows[::2], rows[1::2], strict=True)
    }


def test_every_metric_of_the_table_exists() -> None:
    table = (ROOT / "docs" / "operations.md").read_text().split("## Metrics")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    # Names that begin with gen_ai are those of a package with semantic conventions.
    named = {name for row in rows for name in re.findall(r"`((?!gen_ai)[a-z_]+)`", row)}
    texts = map(source_of, modules_below("libs", "services"))
    made = {name for text in texts for name in re.findall(r'"([a-z_]+(?:[._][a-z_]+)+)"', text)}
    known = {name.replace(".", "_") for name in made}
    assert len(named) > 15
    # The suffixes of the Prometheus format: counters, and units.
    assert (
        sorted(
            name
            for name in named
            if re.sub(r"(_seconds|_bytes)?(_total)?$", "", name) not in known and name not in known
        )
        == []
    )


def test_every_metric_outside_of_the_table_is_in_it() -> None:
    operations = (ROOT / "docs" / "operations.md").read_text()
    table = set(re.findall(r"`([a-z_]+)`", operations.split("## Metrics")[1]))
    texts = [document.read_text() for document in DOCUMENTS]
    named = {
        name
        for text in texts
        for name in re.findall(
            r"`((?:parley|gateway|chatd)_[a-z_]+_(?:total|seconds|bytes))`", text
        )
    }
    assert named - table == set()
