from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/lock_wheelhouse.py"


def lock(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def test_every_wheel_is_pinned_by_its_hash(tmp_path):
    (tmp_path / "vllm-0.33.0+cu130-cp38-abi3-manylinux_2_28_aarch64.whl").write_bytes(b"a")
    (tmp_path / "Some_Thing-1.0-py3-none-any.whl").write_bytes(b"b")
    assert lock(str(tmp_path)).returncode == 0
    assert (tmp_path / "requirements.txt").read_text(encoding="utf-8").splitlines() == [
        f"some-thing==1.0 --hash=sha256:{hashlib.sha256(b'b').hexdigest()}",
        f"vllm==0.33.0+cu130 --hash=sha256:{hashlib.sha256(b'a').hexdigest()}",
    ]


def test_two_versions_and_an_empty_folder_are_refused(tmp_path):
    assert "no wheel in it" in lock(str(tmp_path)).stderr
    for version in ("1.0", "2.0"):
        (tmp_path / f"x-{version}-py3-none-any.whl").touch()
    refused = lock(str(tmp_path))
    assert refused.returncode == 1 and "more than one wheel of x" in refused.stderr
    assert not (tmp_path / "requirements.txt").exists()
    assert lock().returncode == 2
