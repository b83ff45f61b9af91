"""One stack of three chatd for all faults; each row leaves it whole again.

Without `--repeats` only the short rows run, each with one fault. With it every row runs: as many
trials as it says for the rows of processes and the database (A), a quarter for the others, shared
among the variants of a row. A trial is one chat that was in the row's phase when the fault hit.
"""

import math
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from support.faults.lab import FaultLab, issue_token, lab_of
from support.faults.report import FaultReport
from support.host.ports import free_ports
from support.session.shared_programs import stop_when_left
from support.session.told_results import FAULT_ROW
from support.stack.local_stack import LocalStack

ROOT = Path(__file__).resolve().parent.parent.parent
REPORT = pytest.StashKey[FaultReport]()
SHORT_CHATS = 5


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--repeats", type=int, default=None, help="trials of each row (200 in full)")
    group.addoption("--chats-per-fault", type=int, default=10, help="trials that one fault makes")
    group.addoption("--lease-s", type=float, default=6.0, help="lease of chatd (15 as shipped)")
    group.addoption("--lives", type=int, default=1, help="workspaces in each state at a crash")
    group.addoption("--fault-report", type=Path, default=None, help="file for one line per row")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(name): the row of the fault matrix that a test is")
    config.addinivalue_line("markers", "short: runs also without --repeats")
    config.stash[REPORT] = FaultReport()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--repeats") is not None:
        return
    left_out = [
        item
        for item in items
        if item.get_closest_marker("row") and not item.get_closest_marker("short")
    ]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def faulty_stack(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[LocalStack]:
    home = tmp_path_factory.mktemp("faults")
    points = tmp_path_factory.mktemp("points") / "armed"
    points.mkdir()
    lease_s = pytestconfig.getoption("--lease-s")
    metrics_port, mcp_port = free_ports(2)
    stack = LocalStack.at(
        home,
        PARLEY_ENVIRONMENT="development",
        # Rows kill the same processes again and again; the pauses are tested by themselves.
        PARLEY_RESTART_PAUSE_MAX_S="0.5",
        CHATD_FAULTPOINTS_DIRECTORY=str(points),
        CHATD_ALLOWED_HOSTS="127.0.0.0/8",
        CHATD_LEASE_S=str(lease_s),
        CHATD_LEASE_RENEW_S=str(min(4.0, lease_s / 6)),
        CHATD_RUNNING_CHATS_PER_USER_MAX="400",
        CHATD_LIVE_WORKSPACES_PER_USER_MAX="1000",
        CHATD_WORKSPACES_PER_USER_MAX="10000",
        CHATD_NEW_WORKSPACES_PER_USER_MAX="0",
        TOOLRUNNER_FAULTPOINTS_DIRECTORY=str(points),
        # Many chats at once have tools; what happens where there is no room is tested elsewhere.
        TOOLRUNNER_WORKSPACES_MAX="10000",
        GATEWAY_METRICS_LISTEN=f"127.0.0.1:{metrics_port}",
        MCPGATEWAY_ALLOWED_HOSTS=f"127.0.0.1:{mcp_port}",
    )
    started = stack.up("--chatd", "3")
    assert started.returncode == 0, started.stdout + started.stderr
    stop_when_left(pytestconfig.stash, Path(__file__).parent, lambda: stack.parley("down"))
    yield stack
    assert stack.parley("down").returncode == 0


@pytest.fixture(scope="session")
def client_token(faulty_stack: LocalStack) -> str:
    return issue_token(faulty_stack)


@pytest.fixture
async def lab(
    faulty_stack: LocalStack,
    client_token: str,
    request: pytest.FixtureRequest,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> AsyncIterator[FaultLab]:
    marker = request.node.get_closest_marker("row")
    name: str = marker.args[0]
    if variant := getattr(request.node, "callspec", None):
        name = f"{name}/{variant.id}"
    repeats = pytestconfig.getoption("--repeats")
    wanted = SHORT_CHATS if repeats is None else repeats
    if repeats is not None and not name.startswith("A"):
        wanted = math.ceil(repeats / 4)
    test = getattr(request.node, "originalname", "")
    variants = [item for item in request.session.items if getattr(item, "originalname", "") == test]
    wanted = math.ceil(wanted / len(variants))
    report = pytestconfig.stash[REPORT]
    options = {
        "trials_wanted": wanted,
        "chats_per_fault": pytestconfig.getoption("--chats-per-fault"),
        "lease_s": pytestconfig.getoption("--lease-s"),
        "is_short": repeats is None,
    }
    row = report.begin(name)
    async with lab_of(faulty_stack, client_token, row, options) as opened:
        yield opened
    record_property(FAULT_ROW, row.dump())
    path = pytestconfig.getoption("--fault-report")
    if path is not None:
        report.write(path, commit=commit_of(ROOT), lease_s=options["lease_s"])


def commit_of(root: Path) -> str:
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip()
