"""The wheel of Parley ships the page as built: installed from it, no Node is needed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gateway.web.page_files import load_page_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[4]
BUILD_S_MAX = 300
BUILT = "gateway/web/built/"


def test_the_wheel_has_the_built_page_and_not_its_sources(tmp_path: Path) -> None:
    if not load_page_files().is_built:
        pytest.skip("the page is not built: run scripts/page")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)),
        ],
        check=True,
        timeout=BUILD_S_MAX,
    )
    (packed,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")

    built = ROOT / "services" / "gateway" / "web" / "built"
    expected = {path.name for path in built.rglob("*") if path.is_file() and path.name != ".stamp"}
    shipped = {Path(name).name for name in names if name.startswith(BUILT)} - {".stamp"}
    assert shipped == expected
    assert [name for name in names if "node_modules" in name or name.endswith(".tsx")] == []
    assert load_page_files(tmp_path / "installed" / BUILT).is_built
