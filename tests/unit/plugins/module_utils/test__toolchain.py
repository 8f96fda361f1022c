# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _toolchain

KEY = "cuda-12.8-0.32.0-0123456789ab"


class Notes(list):
    def __call__(self, source, reason, evidence):
        self.append((source, reason, evidence))


@pytest.fixture
def notes():
    return Notes()


def install(tree, *distributions, key=KEY, python="python3.12"):
    for distribution in distributions:
        tree.write(f"opt/gb10/releases/{key}/lib/{python}/site-packages/{distribution}/METADATA", "")


def read(tree, notes, home="/home/user", **answers):
    return _toolchain.read_toolchain(tree.root, answers, "3.12.3", home, notes)


def answer(output, status=0):
    return SimpleNamespace(status=status, output=output, error="", seconds=0.1)


def test_nvcc(recorded):
    assert _toolchain.parse_nvcc(recorded("nvcc_version__cuda_13.0.88__h200.txt")) == "13.0.88"
    assert _toolchain.parse_nvcc("nvcc: command not found") is None


def test_cuda_each_toolkit_once(tree, notes):
    tree.write("usr/local/cuda-13.0/version.json", json.dumps({"cuda": {"name": "CUDA SDK", "version": "13.0.2"}, "cuda_nvcc": {"version": "13.0.88"}}))
    tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    tree.write("usr/local/cuda-12.8/version.json", json.dumps({"cuda": {"version": "12.8.1"}, "cuda_nvcc": {"version": "12.8.93"}}))
    tree.link("usr/local/cuda-13", "cuda-13.0")
    tree.link("usr/local/cuda", "/etc/alternatives/cuda")
    tree.link("etc/alternatives/cuda", "/usr/local/cuda-13.0")
    tree.link("usr/local/cuda-12", "/gone")
    tree.write("usr/local/cuda-keyring.txt", "")
    facts = read(tree, notes)
    assert facts["cuda"] == [{"path": "/usr/local/cuda-12.8", "version": "12.8.1"}, {"path": "/usr/local/cuda-13.0", "version": "13.0.2"}]
    assert (facts["default_cuda"], facts["nvcc"], facts["python"]) == ("/usr/local/cuda-13.0", "13.0.88", "3.12.3")
    assert _toolchain.more_probes(tree.root) == {}
    assert notes == []


@pytest.mark.parametrize(
    "text, noted",
    [("{", True), ("[]", True), ("[" * 100000, True), ('{"cuda": "13"}', False), ('{"cuda": {"version": 13}}', False), (None, False)],
)
def test_cuda_without_readable_version_asks_its_compiler(tree, notes, recorded, text, noted):
    tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    tree.link("usr/local/cuda", "cuda-13.0")
    if text is not None:
        tree.write("usr/local/cuda-13.0/version.json", text)
    assert _toolchain.more_probes(tree.root) == {"nvcc": ("/usr/local/cuda-13.0/bin/nvcc", "--version")}
    facts = read(tree, notes, nvcc=answer(recorded("nvcc_version__cuda_13.0.88__h200.txt")))
    assert (facts["cuda"], facts["nvcc"]) == ([{"path": "/usr/local/cuda-13.0", "version": None}], "13.0.88")
    assert [note[:2] for note in notes] == ([("/usr/local/cuda-13.0/version.json", "not_understood")] if noted else [])


@pytest.mark.parametrize("status, noted", [(0, [("nvcc --version", "not_understood", "odd")]), (1, [])])
def test_a_compiler_that_is_not_understood(tree, notes, status, noted):
    assert read(tree, notes, nvcc=answer("odd\n", status))["nvcc"] is None
    assert notes == noted


def test_a_node_without_anything(tree, notes):
    facts = read(tree, notes, home=None)
    assert facts.pop("python") == "3.12.3"
    assert {value for value in facts.values() if not isinstance(value, list)} == {None}
    assert [value for value in facts.values() if value] == []
    assert notes == []


def test_every_release_and_the_one_in_use(tree, notes):
    install(
        tree, "vllm-0.32.0+cpu.dist-info", "torch-2.13.0.dist-info", "ray-2.60.0.dist-info", "nvidia_nccl_cu13-2.28.9.dist-info",
        "vllm_cpu_ray-1.0.dist-info", "torch", "ray-2.60.0.data",
    )
    tree.write(f"opt/gb10/releases/{KEY}/pyvenv.cfg", "home = /usr/bin\nversion_info = 3.12.3.final.0\n")
    install(tree, "vllm-0.31.0.dist-info", key="older")
    install(tree, "vllm-0.33.0.dist-info", key=f"{KEY}.partial")
    tree.write("opt/gb10/releases/README", "")
    tree.link("opt/gb10/current", f"releases/{KEY}")
    facts = read(tree, notes)
    newest = {"key": KEY, "vllm": "0.32.0+cpu", "torch": "2.13.0", "ray": "2.60.0", "nccl": "2.28.9", "python": "3.12.3"}
    older = {"key": "older", "vllm": "0.31.0", "torch": None, "ray": None, "nccl": None, "python": "3.12"}
    assert facts["releases"] == [newest, older]
    assert (facts["release"], facts["current"]) == (newest, f"releases/{KEY}")


def test_release_record_fills_what_names_do_not_tell(tree, notes):
    install(tree, "vllm-0.32.0.dist-info")
    tree.write(f"opt/gb10/releases/{KEY}/release.json", json.dumps({"vllm": "0.1", "ray": "2.60.0", "nccl": "2.28.9", "python": "3.12.3", "torch": 3}))
    assert _toolchain.describe_release(tree.root, KEY, notes) == {
        "key": KEY, "vllm": "0.32.0", "torch": None, "ray": "2.60.0", "nccl": "2.28.9", "python": "3.12",
    }


def test_broken_release_record_is_told(tree, notes):
    install(tree, "vllm-0.32.0.dist-info")
    tree.write(f"opt/gb10/releases/{KEY}/release.json", "{")
    assert _toolchain.describe_release(tree.root, KEY, notes)["vllm"] == "0.32.0"
    assert notes == [(f"/opt/gb10/releases/{KEY}/release.json", "not_understood", "{")]


def test_release_folder_without_python(tree, notes):
    tree.write(f"opt/gb10/releases/{KEY}/pyvenv.cfg", "version = new\n")
    assert _toolchain.describe_release(tree.root, KEY, notes) == {"key": KEY, **dict.fromkeys(("vllm", "torch", "ray", "nccl", "python"))}


def test_no_release_and_dangling_link(tree, notes):
    assert (read(tree, notes)["release"], read(tree, notes)["current"]) == (None, None)
    tree.link("opt/gb10/current", "releases/gone")
    assert (read(tree, notes)["release"], read(tree, notes)["current"]) == (None, "releases/gone")


def test_units_of_ours_that_start_at_boot(tree):
    assert _toolchain.read_units(tree.root) == []
    for name in ("gb10-serve@tiny.service", "gb10-ray.service", "ssh.service"):
        tree.link(f"etc/systemd/system/multi-user.target.wants/{name}", f"/etc/systemd/system/{name}")
    assert _toolchain.read_units(tree.root) == ["gb10-ray.service", "gb10-serve@tiny.service"]


def header(version):
    return "".join(f"#define NCCL_{part} {number}\n" for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split(".")))


def test_nccl_libraries_by_path_size_version_and_build_id(tree, notes):
    tree.write("usr/lib/aarch64-linux-gnu/libnccl.so.2.28.9", "12345")
    tree.link("usr/lib/aarch64-linux-gnu/libnccl.so.2", "libnccl.so.2.28.9")
    tree.link("usr/lib/aarch64-linux-gnu/libnccl.so", "/usr/lib/aarch64-linux-gnu/libnccl.so.2")
    tree.link("usr/lib/aarch64-linux-gnu/libnccl.so.1", "gone")
    tree.write("usr/lib/aarch64-linux-gnu/libnccl-net.so", "x")
    tree.write("usr/local/cuda-13.0/targets/sbsa-linux/lib/libnccl.so.2", "1")
    tree.link("usr/local/cuda-13.0/lib64", "targets/sbsa-linux/lib")
    tree.write("usr/local/nccl-own/lib/libnccl.so.2.30.7", "1")
    tree.write("home/user/nccl/build/lib/libnccl.so.2", "1")
    tree.write("home/user/nccl/build/include/nccl.h", header("2.31.2"))
    install(tree, "nvidia_nccl_cu13-2.29.1.dist-info", "nvidia/nccl/lib/libnccl.so.2")
    site = f"opt/gb10/releases/{KEY}/lib/python3.12/site-packages"
    (tree.path / f"{site}/nvidia/nccl/lib/libnccl.so.2/METADATA").unlink()
    (tree.path / f"{site}/nvidia/nccl/lib/libnccl.so.2").rmdir()
    tree.write(f"{site}/nvidia/nccl/lib/libnccl.so.2", "1")
    tree.write("home/user/.local/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", "1")
    libraries = read(tree, notes)["nccl_libraries"]
    assert [(library["path"], library["version"], library["size_bytes"]) for library in libraries] == [
        ("/home/user/.local/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", None, 1),
        ("/home/user/nccl/build/lib/libnccl.so.2", "2.31.2", 1),
        (f"/{site}/nvidia/nccl/lib/libnccl.so.2", "2.29.1", 1),
        ("/usr/lib/aarch64-linux-gnu/libnccl.so.2.28.9", "2.28.9", 5),
        ("/usr/local/cuda-13.0/targets/sbsa-linux/lib/libnccl.so.2", None, 1),
        ("/usr/local/nccl-own/lib/libnccl.so.2.30.7", "2.30.7", 1),
    ]
    assert {library["build_id"] for library in libraries} == {None}


def test_build_id_of_a_library(tree, notes, monkeypatch):
    tree.write("usr/local/lib/libnccl.so.2.28.9", "0123456789")
    monkeypatch.setattr(_toolchain, "read_build_id", lambda read: read(2, 3).decode())
    assert read(tree, notes)["nccl_libraries"][0]["build_id"] == "234"


def test_strays_on_the_path_and_in_sites(tree, notes):
    tree.write("home/user/.profile", 'PATH="$HOME/venv/bin:$HOME/.local/bin:/usr/local/cuda/bin:$PATH"\n')
    tree.write("home/user/venv/bin/vllm", "#!/home/user/other/bin/python3\n")
    tree.write("home/user/other/lib/python3.11/site-packages/vllm-0.30.0.dist-info/x", "")
    tree.write("home/user/.local/bin/ray", "#!/usr/bin/env python3\n")
    tree.write("home/user/.local/lib/python3.12/site-packages/ray-2.50.0.dist-info/x", "")
    tree.write("usr/bin/nvcc", "\x7fELF")
    tree.write("usr/bin/torchrun", "#! \n")
    tree.write("usr/lib/python3/dist-packages/torch-2.1.0.dist-info/x", "")
    tree.write("usr/local/lib/python3.12/dist-packages/vllm-0.1.dist-info/x", "")
    assert read(tree, notes)["strays"] == [
        {"what": "vllm", "path": "/home/user/venv/bin/vllm", "version": "0.30.0", "where": "path"},
        {"what": "ray", "path": "/home/user/.local/bin/ray", "version": "2.50.0", "where": "path"},
        {"what": "torch", "path": "/usr/bin/torchrun", "version": "2.1.0", "where": "path"},
        {"what": "nvcc", "path": "/usr/bin/nvcc", "version": None, "where": "path"},
        {"what": "torch", "path": "/usr/lib/python3/dist-packages/torch", "version": "2.1.0", "where": "site"},
        {"what": "vllm", "path": "/usr/local/lib/python3.12/dist-packages/vllm", "version": "0.1", "where": "site"},
        {"what": "ray", "path": "/home/user/.local/lib/python3.12/site-packages/ray", "version": "2.50.0", "where": "site"},
    ]


def test_what_a_release_or_a_toolkit_brings_is_no_stray(tree, notes):
    tree.link("usr/local/bin/vllm", "/opt/gb10/current/bin/vllm")
    tree.link("opt/gb10/current", f"releases/{KEY}")
    tree.write(f"opt/gb10/releases/{KEY}/bin/vllm", "")
    tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    tree.link("usr/bin/nvcc", "/usr/local/cuda-13.0/bin/nvcc")
    tree.write("home/user/bin/vllm", "")
    assert read(tree, notes)["strays"] == []


def test_sources_and_variables_are_part_of_it(tree, notes):
    tree.write("etc/apt/sources.list", "deb https://a.example noble main\ndeb [signed-by=/k.gpg] https://a.example noble extra\n")
    tree.write("etc/environment", "NCCL_NET=IB\n")
    facts = read(tree, notes)
    assert len(facts["repositories"]) == 2
    assert facts["repository_conflicts"] == [{"uri": "https://a.example", "files": ["/etc/apt/sources.list"], "keys": [None, "/k.gpg"]}]
    assert [entry["name"] for entry in facts["environment"]] == ["NCCL_NET"]
