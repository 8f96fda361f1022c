"""Write requirements.txt with hashes for the wheels of a folder, which makes it a wheelhouse.

usage: lock_wheelhouse.py FOLDER

Every wheel in the folder is pinned: leave in it what shall be installed, and nothing else.
"""
from __future__ import annotations

import hashlib
import sys
from pathlib import Path


def requirement(wheel: Path) -> str:
    """The line that pins a wheel: name, version and SHA-256."""
    name, version = wheel.name.split("-")[:2]
    with wheel.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return f"{name.lower().replace('_', '-')}=={version} --hash=sha256:{digest}\n"


def main() -> int:
    """Lock the folder."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    wheels = sorted(folder.glob("*.whl"))
    names = [wheel.name.split("-")[0].lower() for wheel in wheels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not wheels or twice:
        print(f"{folder}: {'no wheel in it' if not wheels else 'more than one wheel of ' + ', '.join(twice)}.", file=sys.stderr)
        return 1
    (folder / "requirements.txt").write_text("".join(map(requirement, wheels)), encoding="utf-8")
    print(f"{folder}/requirements.txt pins {len(wheels)} wheels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
