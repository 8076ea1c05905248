"""Files of the package are found on disk, and in an archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from kdissect.protocol import packaged as module
from kdissect.protocol.packaged import packaged

PACKAGE = Path(module.__file__).parent


def test_it_is_a_path_where_the_package_is_a_folder() -> None:
    assert packaged("errors.txt") == PACKAGE / "errors.txt"
    assert packaged("definitions").is_dir()


def test_it_is_found_in_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "kdissect.zip"
    with ZipFile(archive, "w") as file:
        for path in PACKAGE.parent.glob("*.py"):
            file.write(path, f"kdissect/{path.name}")
        for name in ("__init__.py", "packaged.py", "errors.txt"):
            file.write(PACKAGE / name, f"kdissect/protocol/{name}")
    script = (
        "from kdissect.protocol.packaged import packaged; found = packaged('errors.txt'); "
        "print(type(found).__module__, found.read_text('utf-8'))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(archive)},
    )
    assert done.stdout == "zipfile " + (PACKAGE / "errors.txt").read_text("utf-8") + "\n"
