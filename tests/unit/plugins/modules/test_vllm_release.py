# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""vllm_release with a fake uv and a fake engine: what is built, proven, switched, refused and removed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import types
import zipfile

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils._lock import locked
from ansible_collections.gb10.fleet.plugins.modules import vllm_release

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
# Stands for uv: makes an environment whose Python answers the proof with what the wheelhouse's answer.json says.
UV = r"""#!/bin/sh
set -eu
echo "$UV_OFFLINE $UV_LINK_MODE $*" >> "@LOG@"
case "$1" in
venv)
    for target; do :; done
    mkdir -p "$target/bin" "$target/lib/python/site-packages/pack"
    echo 'x = 1' > "$target/lib/python/site-packages/pack/module.py"
    cp "@WHEELHOUSE@/python" "$target/bin/python"
    chmod 755 "$target/bin/python" ;;
pip)
    if [ -e "@WHEELHOUSE@/broken" ]; then echo 'error: Hash mismatch for ray==2.60.0' >&2; exit 2; fi ;;
esac
"""
ANSWER = {"vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "ray": "2.60.0", "nccl": None, "python": "3.11.2", "kernels": True}
TOOLCHAIN = {"name": "cpu", "vllm": "0.32.0", "torch": "2.13.0", "ray": "2.60.0", "python": VERSION, "device": "cpu", "environment": {"A": 1}}


class Node:
    """A wheelhouse, the place of the releases, and a way to call the module."""

    def __init__(self, tmp_path, capsys, monkeypatch):
        self.root, self.wheelhouse, self.log = tmp_path / "opt", tmp_path / "wheelhouse", tmp_path / "uv.log"
        self.capsys = capsys
        self.releases = self.root / "releases"
        self.releases.mkdir(parents=True)
        self.wheelhouse.mkdir()
        monkeypatch.setattr(vllm_release, "ROOT", str(self.root))
        self.fill()
        self.answer()

    def fill(self, uv=UV, member="uv-1.data/scripts/uv"):
        pins = []
        for name, version in (("vllm", "0.32.0+cpu"), ("torch", "2.13.0+cpu"), ("ray", "2.60.0"), ("uv", "1")):
            file = self.wheelhouse / f"{name}-{version}-py3-none-any.whl"
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr(f"{name}.py", "")
                if name == "uv":
                    archive.writestr(member, uv.replace("@LOG@", str(self.log)).replace("@WHEELHOUSE@", str(self.wheelhouse)))
            pins.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n")
        (self.wheelhouse / "requirements.txt").write_text("".join(pins))

    def answer(self, text=None, status=0, **fields):
        text = json.dumps({**ANSWER, **fields}) if text is None else text
        (self.wheelhouse / "python").write_text(f"#!/bin/sh\necho 'A warning.'\ncat <<'END'\n{text}\nEND\nexit {status}\n")

    def run(self, check=False, **arguments):
        arguments = {"wheelhouse": str(self.wheelhouse), "toolchain": TOOLCHAIN, **arguments} if "state" not in arguments else arguments
        with patch_module_args({**arguments, "_ansible_check_mode": check, "_ansible_diff": True}), pytest.raises(SystemExit):
            vllm_release.main()
        return json.loads(self.capsys.readouterr().out)

    def tree(self):
        return sorted(os.listdir(self.releases))


@pytest.fixture(name="node")
def node_fixture(tmp_path, capsys, monkeypatch):
    real = vllm_release.AnsibleModule.get_bin_path
    setpriv = tmp_path / "setpriv"
    setpriv.write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    setpriv.chmod(0o755)

    def get_bin_path(module, name, *arguments, **options):
        return str(setpriv) if name == "setpriv" else real(module, name, *arguments, **options)

    monkeypatch.setattr(vllm_release.AnsibleModule, "get_bin_path", get_bin_path)
    return Node(tmp_path, capsys, monkeypatch)


def test_build_then_nothing(node):
    check = node.run(check=True)
    assert node.tree() == []
    first = node.run()
    assert (check["changed"], check["steps"], check["key"], check["release"]) == (True, ["build", "switch"], first["key"], None)
    assert check["diff"] == first["diff"]
    key = first["key"]
    assert key.startswith("cpu-0.32.0-")
    assert first["steps"] == ["build", "switch"]
    assert set(first["seconds"]) == {"install", "compile", "proof"}
    assert node.tree() == [key]
    assert os.readlink(node.root / "current") == f"releases/{key}"
    record = json.loads((node.root / "current/release.json").read_text())
    assert record == first["release"]
    assert record == {
        "key": key, "toolchain": "cpu", "cuda": None, "vllm": "0.32.0+cpu", "torch": "2.13.0+cpu", "ray": "2.60.0", "nccl": None,
        "python": "3.11.2",
    }
    compiled = list((node.root / "current/lib").rglob("*.pyc"))
    assert [path.name for path in compiled] == [f"module.{sys.implementation.cache_tag}.pyc"]
    assert stat.S_IMODE((node.root / "current/release.json").stat().st_mode) == 0o644
    venv, install = node.log.read_text().splitlines()
    assert venv.startswith("1 hardlink venv --quiet --relocatable --python ")
    for word in ("--require-hashes", "--no-deps", "--no-index", f"--find-links {node.wheelhouse}"):
        assert word in install
    second = node.run()
    assert (second["changed"], second["steps"], second["release"], second["previous"]) == (False, [], record, key)
    assert len(node.log.read_text().splitlines()) == 2


def test_going_back_builds_nothing(node):
    old = node.run()["key"]
    requirements = node.wheelhouse / "requirements.txt"
    text = requirements.read_text()
    requirements.write_text(text + "# new\n")
    new = node.run()
    assert (new["previous"], new["steps"]) == (old, ["build", "switch"])
    requirements.write_text(text)
    back = node.run()
    assert (back["key"], back["previous"], back["steps"]) == (old, new["key"], ["switch"])
    assert os.readlink(node.root / "current") == f"releases/{old}"
    assert back["diff"] == {"before": f"{node.root}/current -> {new['key']}\n", "after": f"{node.root}/current -> {old}\n"}


def test_an_unfinished_release_is_built_again(node):
    key = node.run()["key"]
    (node.releases / key / "release.json").unlink()
    (node.releases / f"{key}.partial").mkdir()
    assert node.run()["steps"] == ["build"]
    assert node.tree() == [key]
    (node.releases / key / "bin/python").unlink()
    assert node.run(check=True)["steps"] == ["build"]


@pytest.mark.parametrize(
    "break_it, words",
    [
        (lambda node: (node.wheelhouse / "broken").touch(), ["cannot be built", "Hash mismatch for ray==2.60.0", "nothing of it is in use"]),
        (lambda node: node.answer("ImportError: libnuma.so.1: cannot open", 1), ["does not load as the user gb10", "libnuma.so.1"]),
        (lambda node: node.answer("hello"), ["says nothing of its versions", "hello"]),
        (lambda node: node.answer(kernels=False), ["kernels of vLLM 0.32.0+cpu do not load"]),
        (lambda node: node.answer(torch="2.14.0"), ["has torch 2.14.0, and spark_toolchain cpu wants 2.13.0"]),
        (lambda node: node.fill(member="uv-1.data/scripts/other"), ["holds no uv program"]),
        (lambda node: (node.wheelhouse / "uv-1-py3-none-any.whl").write_bytes(
            (node.wheelhouse / "uv-1-py3-none-any.whl").read_bytes().replace(b"set -eu", b"set -ex")),
         ["uv-1-py3-none-any.whl is not the file that its requirements.txt has the hash of"]),
        (lambda node: (node.root / "current").mkdir(), ["current is no link"]),
    ],
)
def test_what_fails_leaves_nothing_in_use(node, break_it, words):
    break_it(node)
    result = node.run()
    assert result["failed"] is True
    for word in words:
        assert word in result["msg"]
    assert not (node.root / "current").is_symlink()
    assert not any(name.endswith((".partial", ".tools")) for name in node.tree())


def test_a_time_limit(node, monkeypatch):
    monkeypatch.setattr(vllm_release, "PROOF_SECONDS", 1)
    (node.wheelhouse / "python").write_text("#!/bin/sh\nexec sleep 30\n")
    assert " ... did not end within 1 s and was stopped. Mend the wheelhouse" in node.run()["msg"]


def test_one_run_at_a_time(node, monkeypatch):
    monkeypatch.setattr(vllm_release, "LIMIT_SECONDS", 0)
    with locked(str(node.releases), 0):
        assert node.run()["msg"].startswith(f"vllm_release: Another run has held the lock on {node.releases}")
    assert node.tree() == []


def test_a_full_disk(node, monkeypatch):
    monkeypatch.setattr(vllm_release.shutil, "disk_usage", lambda path: types.SimpleNamespace(free=0))
    assert "0.0 GiB free, and the release needs" in node.run()["msg"]


def test_refusals_before_any_change(node):
    assert "wants 0.33.0" in node.run(toolchain={**TOOLCHAIN, "vllm": "0.33.0"})["msg"]
    assert "needs Python 3.2 on this node" in node.run(toolchain={**TOOLCHAIN, "python": "3.2"})["msg"]
    assert "no such folder" in node.run(wheelhouse=f"{node.wheelhouse}/none")["msg"]
    node.releases.rmdir()
    assert "Run the role host on this node first" in node.run()["msg"]


def test_check_mode_on_a_bare_node(node):
    node.releases.rmdir()
    assert node.run(check=True)["steps"] == ["build", "switch"]
    result = node.run(check=True, wheelhouse=f"{node.wheelhouse}/none")
    assert (result["changed"], result["key"], result["steps"]) == (True, None, ["build", "switch"])


def test_a_system_that_refuses(node, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied", "/opt/gb10/releases")

    monkeypatch.setattr(vllm_release.os, "mkdir", refuse)
    assert "/opt/gb10/releases cannot be handled: Permission denied" in node.run()["msg"]


def test_removal(node):
    old = node.run()["key"]
    with open(node.wheelhouse / "requirements.txt", "a", encoding="utf-8") as stream:
        stream.write("# new\n")
    new = node.run()["key"]
    assert "is in use" in node.run(state="absent", key=new)["msg"]
    one = node.run(state="absent", key=old)
    assert (one["steps"], node.tree()) == ([f"remove {old}"], [new])
    (node.releases / "stray").touch()
    check = node.run(check=True, state="absent", key="all")
    assert node.tree() == [new, "stray"]
    everything = node.run(state="absent", key="all")
    assert check["steps"] == everything["steps"] == ["unlink current", f"remove {new}", "remove stray"]
    assert node.tree() == []
    assert not (node.root / "current").is_symlink()
    assert node.run(state="absent", key="all")["changed"] is False
    node.releases.rmdir()
    assert node.run(state="absent", key="all")["changed"] is False
