# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import sys

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.modules import wheelhouse_info

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(name="run")
def run_fixture(capsys):
    def run(**arguments):
        with patch_module_args(arguments), pytest.raises(SystemExit):
            wheelhouse_info.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_what_a_folder_holds(run, tmp_path):
    pins = {"vllm": "0.33.0", "torch": "2.14.0+cpu", "ray": "2.60.0", "uv": "0.13.9"}
    for name, version in pins.items():
        (tmp_path / f"{name}-{version}-py3-none-any.whl").write_bytes(b"12345")
    (tmp_path / "requirements.txt").write_text("".join(f"{name}=={version} --hash=sha256:{'0' * 64}\n" for name, version in pins.items()))
    report = run(path=str(tmp_path), versions={"vllm": "0.33.0"})
    assert report["changed"] is False
    assert report["problems"] == []
    assert (report["vllm"], report["torch"], report["ray"], report["machine_ok"]) == ("0.33.0", "2.14.0+cpu", "2.60.0", True)
    assert report["wheels"][0] == {
        "name": "ray", "version": "2.60.0", "tags": "py3-none-any", "file": "ray-2.60.0-py3-none-any.whl", "size": 5
    }


def test_no_folder(run, tmp_path):
    report = run(path=str(tmp_path / "none"))
    assert (report["exists"], report["machine_ok"]) == (False, False)
    assert "no such folder" in report["problems"][0]


def test_a_python_that_the_node_lacks(run, tmp_path):
    report = run(path=str(tmp_path), python="3.2")
    assert "needs Python 3.2 on this node" in report["problems"][0]
    assert (report["machine_ok"], report["reason"]) == (False, report["problems"][0])


def test_no_python_at_all(run, tmp_path, monkeypatch):
    monkeypatch.setattr(wheelhouse_info, "find_python", lambda module, wanted: (None, "The toolchain needs Python 3.12."))
    assert run(path=str(tmp_path))["msg"] == "wheelhouse_info: The toolchain needs Python 3.12."


def test_a_folder_that_is_closed(run, tmp_path, monkeypatch):
    def closed(path, machine, versions):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(wheelhouse_info, "inspect", closed)
    assert run(path=str(tmp_path))["msg"] == (
        f"spark_wheelhouse is {tmp_path}, which cannot be read: Permission denied. Let everybody read {tmp_path}."
    )
