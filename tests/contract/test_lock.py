import json
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
NODE_LOCKS = [
    *sorted((ROOT / "tests" / "clients").glob("*/package-lock.json")),
    ROOT / "services" / "gateway" / "web" / "page" / "package-lock.json",
]
OUR_NAMES = ("parley", "chatd", "gateway", "mcpgateway", "toolrunner")


def test_the_lock_names_no_address() -> None:
    assert "://" not in LOCK


def test_every_locked_version_is_hashed() -> None:
    pins = [line for line in LOCK.splitlines() if "==" in line]
    assert pins
    assert all(line.endswith("\\") for line in pins)
    assert LOCK.count("--hash=sha256:") >= len(pins)


@pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda path: path.parent.name)
def test_the_lock_of_node_packages_names_no_address_and_every_version_is_hashed(
    lock: Path,
) -> None:
    found = json.loads(lock.read_text())["packages"]
    packages = {name: each for name, each in found.items() if name}

    assert packages
    assert [name for name, each in packages.items() if "resolved" in each] == []
    assert [
        name for name, each in packages.items() if not each["integrity"].startswith("sha512-")
    ] == []


def test_no_other_distribution_provides_one_of_our_names() -> None:
    owners = packages_distributions()
    assert {
        name: owners.get(name) for name in OUR_NAMES if owners.get(name, ["parley"]) != ["parley"]
    } == {}
