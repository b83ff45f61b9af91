from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOCK = (ROOT / "requirements.lock").read_text()
OUR_NAMES = ("parley", "chatd", "gateway", "mcpgateway", "toolrunner")


def test_the_lock_names_no_address() -> None:
    assert "://" not in LOCK


def test_every_locked_version_is_hashed() -> None:
    pins = [line for line in LOCK.splitlines() if "==" in line]
    assert pins
    assert all(line.endswith("\\") for line in pins)
    assert LOCK.count("--hash=sha256:") >= len(pins)


def test_no_other_distribution_provides_one_of_our_names() -> None:
    owners = packages_distributions()
    assert {
        name: owners.get(name) for name in OUR_NAMES if owners.get(name, ["parley"]) != ["parley"]
    } == {}
