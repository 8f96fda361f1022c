# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _wheelhouse
from ansible_collections.gb10.fleet.plugins.module_utils._wheelhouse import Machine, inspect, parse_requirements, parse_wheel_name, unfit

SPARK = Machine((3, 12), "aarch64", (2, 39))
LAB = Machine((3, 11), "x86_64", (2, 36))


@pytest.fixture(name="wheelhouse")
def wheelhouse_fixture(tmp_path):
    """A function that makes a wheelhouse of file names; its pins are theirs, each with a hash."""

    def make(*files, pins=None):
        for file in files:
            (tmp_path / file).write_bytes(b"wheel")
        wheels = [parse_wheel_name(file) for file in files]
        lines = [f"{wheel['name']}=={wheel['version']} \\\n    --hash=sha256:{'0' * 64}\n" for wheel in wheels if wheel]
        (tmp_path / "requirements.txt").write_text("".join(lines) if pins is None else pins)
        return str(tmp_path)

    return make


WHOLE = (
    "vllm-0.32.0+cpu-cp38-abi3-manylinux_2_28_x86_64.whl", "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "ray-2.60.0-cp311-cp311-manylinux2014_x86_64.whl", "uv-0.13.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "click-8.5.1-py3-none-any.whl",
)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("Foo_Bar-1.0-py2.py3-none-any.whl", ("foo-bar", "1.0", ["py2", "py3"], ["none"], ["any"])),
        ("x-1-3-cp311-cp311-manylinux1_x86_64.manylinux_2_5_x86_64.whl",
         ("x", "1", ["cp311"], ["cp311"], ["manylinux1_x86_64", "manylinux_2_5_x86_64"])),
    ],
)
def test_wheel_names(name, expected):
    parsed = parse_wheel_name(name)
    assert tuple(parsed[key] for key in ("name", "version", "pythons", "abis", "platforms")) == expected


@pytest.mark.parametrize("name", ["x-1.0.tar.gz", "x-1.0.whl", "x--py3-none-any.whl", "requirements.txt"])
def test_no_wheel_names(name):
    assert parse_wheel_name(name) is None


@pytest.mark.parametrize(
    "wheel, machine, reason",
    [
        ("x-1-py3-none-any.whl", SPARK, None),
        ("x-1-py2.py3-none-any.whl", SPARK, None),
        ("x-1-py312-none-any.whl", SPARK, None),
        ("x-1-py313-none-any.whl", SPARK, "is for Python py313-none, and the Python for it on this node is 3.12"),
        ("x-1-py2-none-any.whl", SPARK, "is for Python py2-none, and the Python for it on this node is 3.12"),
        ("x-1-pp310-none-any.whl", SPARK, "is for Python pp310-none, and the Python for it on this node is 3.12"),
        ("x-1-cp312-cp312-manylinux_2_28_aarch64.whl", SPARK, None),
        ("x-1-cp311-cp311-manylinux_2_28_aarch64.whl", SPARK, "is for Python cp311-cp311, and the Python for it on this node is 3.12"),
        ("x-1-cp313-cp313t-linux_aarch64.whl", SPARK, "is for Python cp313-cp313t, and the Python for it on this node is 3.12"),
        ("x-1-cp312-none-any.whl", SPARK, None),
        ("x-1-cp38-abi3-manylinux_2_28_aarch64.whl", SPARK, None),
        ("x-1-cp313-abi3-manylinux_2_28_aarch64.whl", SPARK, "is for Python cp313-abi3, and the Python for it on this node is 3.12"),
        ("x-1-cp38-abi3-manylinux_2_28_x86_64.whl", SPARK, "is for x86_64, and this node is aarch64"),
        ("x-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", LAB, None),
        ("x-1-cp311-cp311-manylinux_2_39_x86_64.whl", LAB, "needs glibc 2.39, and this node has 2.36"),
        ("x-1-cp311-cp311-linux_x86_64.whl", LAB, None),
        ("x-1-cp311-cp311-musllinux_1_2_x86_64.whl", LAB, "is for musllinux_1_2_x86_64, and this node runs Linux with glibc"),
        ("x-1-cp311-cp311-win_amd64.whl", LAB, "is for win_amd64, and this node runs Linux with glibc"),
        ("x-1-cp311-cp311-manylinux_2_28_aarch64.manylinux_2_28_x86_64.whl", LAB, None),
    ],
)
def test_what_a_machine_can_install(wheel, machine, reason):
    assert unfit(parse_wheel_name(wheel), machine) == reason


def test_requirements_over_several_lines():
    text = (
        "# made by hand\n--no-index\nFoo_Bar==1.0+cpu \\\n    --hash=sha256:" + "a" * 64 + " \\\n    --hash=sha256:" + "b" * 64
        + "\nbaz == 2 ; python_version > '3'\nqux>=3\n"
    )
    assert parse_requirements(text) == [
        {"name": "foo-bar", "version": "1.0+cpu", "hashes": [f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"]},
        {"name": "baz", "version": "2", "hashes": []},
    ]


def test_a_whole_wheelhouse(wheelhouse):
    report = inspect(wheelhouse(*WHOLE), LAB, {"vllm": "0.32.0", "torch": "2.13.0", "ray": None})
    assert report["problems"] == []
    assert (report["exists"], report["requirements"], report["machine_ok"], report["reason"]) == (True, True, True, None)
    assert (report["vllm"], report["torch"], report["ray"]) == ("0.32.0+cpu", "2.13.0+cpu", "2.60.0")
    assert len(report["key"]) == 12
    assert [wheel["size"] for wheel in report["wheels"]] == [5] * len(WHOLE)


def test_the_key_follows_the_hashes(wheelhouse):
    first = inspect(wheelhouse(*WHOLE), LAB)["key"]
    path = wheelhouse(*WHOLE)
    with open(f"{path}/requirements.txt", "a", encoding="utf-8") as stream:
        stream.write("# another\n")
    assert inspect(path, LAB)["key"] != first


def test_no_folder(tmp_path):
    report = inspect(str(tmp_path / "none"), LAB)
    assert report["exists"] is False
    assert report["problems"] == [
        f"spark_wheelhouse is {tmp_path}/none, and there is no such folder. Put the wheels and their requirements.txt there."
    ]


def test_no_requirements(tmp_path):
    report = inspect(str(tmp_path), LAB)
    assert (report["exists"], report["requirements"], report["key"]) == (True, False, None)
    assert "which has no requirements.txt" in report["problems"][0]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"files": WHOLE[1:]}, ["does not list vllm."]),
        ({"files": WHOLE[:2]}, ["does not list ray, uv."]),
        ({"machine": Machine((3, 11), "aarch64", (2, 36))}, ["vllm-0.32.0+cpu", "is for x86_64, and this node is aarch64", "3 other wheels"]),
        ({"versions": {"vllm": "0.33.0"}}, ["holds vllm 0.32.0+cpu, and spark_toolchain wants 0.33.0"]),
        ({"pins": "vllm==0.32.0+cpu\ntorch==2.13.0+cpu\nray==2.60.0\nuv==0.13.9\n"}, ["gives no sha256 for vllm, torch, ray, uv"]),
    ],
)
def test_problems_name_the_variable_and_the_cure(wheelhouse, change, words):
    path = wheelhouse(*change.get("files", WHOLE), pins=change.get("pins"))
    report = inspect(path, change.get("machine", LAB), change.get("versions"))
    assert len(report["problems"]) == 1
    for word in ["spark_wheelhouse", *words]:
        assert word in report["problems"][0]


def test_missing_wheels_are_named_up_to_five(wheelhouse):
    names = [f"p{number}-1-py3-none-any.whl" for number in range(7)]
    path = wheelhouse(*WHOLE, *names)
    for name in names:
        _wheelhouse.os.unlink(f"{path}/{name}")
    assert "no wheel of p0==1, p1==1, p2==1, p3==1, p4==1 and 2 more" in inspect(path, LAB)["problems"][0]


def test_release_key_has_no_local_part():
    assert _wheelhouse.release_key("cpu", "0.32.0+cpu", "abc") == "cpu-0.32.0-abc"


def test_sources_without_bytecode(tmp_path):
    (tmp_path / "a/__pycache__").mkdir(parents=True)
    for name in ("a/one.py", "a/two.py", "three.py", "a/__pycache__/one.cpython-311.pyc", "a/__pycache__/two.cpython-312.pyc"):
        (tmp_path / name).touch()
    assert _wheelhouse.without_bytecode(str(tmp_path), "cpython-311") == [f"{tmp_path}/a/two.py", f"{tmp_path}/three.py"]
