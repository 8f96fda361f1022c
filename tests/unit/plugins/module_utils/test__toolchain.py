# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _toolchain

KEY = "cuda-12.8-0.32.0-0123456789ab"


@pytest.fixture
def warnings():
    return []


def install(tree, *distributions, python="python3.12"):
    tree.link("opt/gb10/current", f"releases/{KEY}")
    for distribution in distributions:
        tree.write(f"opt/gb10/releases/{KEY}/lib/{python}/site-packages/{distribution}/METADATA", "")


def test_nvcc(recorded):
    assert _toolchain.parse_nvcc(recorded("nvcc_version__cuda_13.0.88__h200.txt")) == "13.0.88"
    assert _toolchain.parse_nvcc("nvcc: command not found") is None


def test_cuda_each_toolkit_once(tree, warnings):
    tree.write("usr/local/cuda-13.0/version.json", json.dumps({"cuda": {"name": "CUDA SDK", "version": "13.0.2"}, "cuda_nvcc": {"version": "13.0.88"}}))
    tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    tree.write("usr/local/cuda-12.8/version.json", json.dumps({"cuda": {"version": "12.8.1"}, "cuda_nvcc": {"version": "12.8.93"}}))
    tree.link("usr/local/cuda-13", "cuda-13.0")
    tree.link("usr/local/cuda", "../../etc/alternatives/cuda")
    tree.link("etc/alternatives/cuda", "../../usr/local/cuda-13.0")
    tree.write("usr/local/cuda-keyring.txt", "")
    assert _toolchain.read_cuda(tree.root, warnings.append) == [
        {"path": "/usr/local/cuda-12.8", "version": "12.8.1", "compiler": None, "has_compiler": False},
        {"path": "/usr/local/cuda-13.0", "version": "13.0.2", "compiler": "13.0.88", "has_compiler": True},
    ]
    assert warnings == []


@pytest.mark.parametrize("text, warned", [("{", True), ("[]", True), ('{"cuda": "13"}', False), (None, False)])
def test_cuda_without_readable_version(tree, warnings, text, warned):
    tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    tree.link("usr/local/cuda", "cuda-13.0")
    if text is not None:
        tree.write("usr/local/cuda-13.0/version.json", text)
    assert _toolchain.read_cuda(tree.root, warnings.append) == [
        {"path": "/usr/local/cuda-13.0", "version": None, "compiler": None, "has_compiler": True}
    ]
    assert len(warnings) == warned


def test_release_from_names_of_installed_packages(tree, warnings):
    install(
        tree, "vllm-0.32.0+cpu.dist-info", "torch-2.13.0.dist-info", "ray-2.60.0.dist-info", "nvidia_nccl_cu13-2.28.9.dist-info",
        "vllm_cpu_ray-1.0.dist-info", "torch", "ray-2.60.0.data",
    )
    tree.write(f"opt/gb10/releases/{KEY}/pyvenv.cfg", "home = /usr/bin\nversion_info = 3.12.3.final.0\n")
    assert _toolchain.read_release(tree.root, warnings.append) == {
        "key": KEY, "vllm": "0.32.0+cpu", "torch": "2.13.0", "ray": "2.60.0", "nccl": "2.28.9", "python": "3.12.3",
    }
    assert _toolchain.current_path(tree.root) == f"releases/{KEY}"


def test_release_record_fills_what_names_do_not_tell(tree, warnings):
    install(tree, "vllm-0.32.0.dist-info")
    tree.write(f"opt/gb10/releases/{KEY}/release.json", json.dumps({"vllm": "0.1", "ray": "2.60.0", "nccl": "2.28.9", "python": "3.12.3"}))
    release = _toolchain.read_release(tree.root, warnings.append)
    assert (release["vllm"], release["ray"], release["nccl"], release["torch"], release["python"]) == ("0.32.0", "2.60.0", "2.28.9", None, "3.12")


def test_broken_release_record_warns(tree, warnings):
    install(tree, "vllm-0.32.0.dist-info")
    tree.write(f"opt/gb10/releases/{KEY}/release.json", "{")
    assert _toolchain.read_release(tree.root, warnings.append)["vllm"] == "0.32.0"
    assert "release.json" in warnings[0]


def test_release_folder_without_python(tree, warnings):
    (tree.path / f"opt/gb10/releases/{KEY}").mkdir(parents=True)
    tree.link("opt/gb10/current", f"releases/{KEY}")
    tree.write(f"opt/gb10/releases/{KEY}/pyvenv.cfg", "version = new\n")
    release = _toolchain.read_release(tree.root, warnings.append)
    assert release == {"key": KEY, "vllm": None, "torch": None, "ray": None, "nccl": None, "python": None}


def test_no_release_and_dangling_link(tree, warnings):
    assert _toolchain.read_release(tree.root, warnings.append) is None
    assert _toolchain.current_path(tree.root) is None
    tree.link("opt/gb10/current", "releases/gone")
    assert _toolchain.read_release(tree.root, warnings.append) is None
    assert _toolchain.current_path(tree.root) == "releases/gone"


def test_units_of_ours_that_start_at_boot(tree):
    assert _toolchain.read_units(tree.root) == []
    for name in ("gb10-serve@tiny.service", "gb10-ray.service", "ssh.service"):
        tree.link(f"etc/systemd/system/multi-user.target.wants/{name}", f"/etc/systemd/system/{name}")
    assert _toolchain.read_units(tree.root) == ["gb10-ray.service", "gb10-serve@tiny.service"]
