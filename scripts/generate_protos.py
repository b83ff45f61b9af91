"""Generates `libs/parley/api` and `libs/buf` from `protos/`, or checks that they are up to date."""

import filecmp
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from google.api import http_pb2
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
#: Generated packages, below `libs/`.
PACKAGES = ("parley/api", "buf")
DOCSTRING = '"""Generated from protos/ by scripts/protos; never edited."""\n'


def main() -> int:
    """Generate into a scratch directory, then compare with or replace the committed code."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        stale = False
        for package in PACKAGES:
            fresh, committed = Path(scratch) / package, ROOT / "libs" / package
            if "--check" in sys.argv[1:]:
                for path in different_files(fresh, committed):
                    print(f"libs/{package}/{path} is stale; run scripts/protos", file=sys.stderr)
                    stale = True
                continue
            shutil.rmtree(committed, ignore_errors=True)
            shutil.copytree(fresh, committed)
    return int(stale)


def generate(output: Path) -> None:
    """Run protoc over every proto, with type stubs, and make packages of the directories."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    run_protoc(f"--python_out={output}", f"--mypy_out=quiet:{output}", *sources)
    # Only these declare services; elsewhere the gRPC plugins would write empty modules.
    services = [name for name in sources if name.endswith("_service.proto")]
    typed = f"--mypy_grpc_out=quiet,only_async,generate_concrete_servicer_stubs:{output}"
    run_protoc(f"--grpc_python_out={output}", typed, *services)
    for package in PACKAGES:
        for directory in [output / package, *(output / package).rglob("*")]:
            if directory.is_dir():
                (directory / "__init__.py").write_text(DOCSTRING)


def run_protoc(*arguments: str) -> None:
    """Run the compiler that grpcio-tools carries, with the typing plugins of this environment."""
    binaries = Path(sys.executable).parent
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={PROTOS}",
            f"--proto_path={files('grpc_tools') / '_proto'}",
            f"--proto_path={Path(http_pb2.__file__).parents[2]}",
            f"--plugin=protoc-gen-mypy={binaries / 'protoc-gen-mypy'}",
            f"--plugin=protoc-gen-mypy_grpc={binaries / 'protoc-gen-mypy_grpc'}",
            *arguments,
        ]
    )
    if status != 0:
        raise SystemExit(status)


def different_files(fresh: Path, committed: Path) -> list[str]:
    """Return the relative paths that are missing, extra or different."""
    names = {
        str(path.relative_to(tree))
        for tree in (fresh, committed)
        for path in tree.rglob("*.py*")
        if path.is_file() and path.suffix != ".pyc"
    }
    return sorted(
        name
        for name in names
        if not (fresh / name).exists()
        or not (committed / name).exists()
        or not filecmp.cmp(fresh / name, committed / name, shallow=False)
    )


if __name__ == "__main__":
    raise SystemExit(main())
