# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _node_python


class FakeModule:
    """Programs by name: what each prints, or None where it fails."""

    def __init__(self, **programs):
        self.programs = {name.replace("_", "."): output for name, output in programs.items()}

    def get_bin_path(self, name):
        return f"/usr/bin/{name}" if name == "timeout" or name in self.programs else None

    def run_command(self, command, environ_update, **_options):
        assert environ_update == {"LC_ALL": "C", "LANGUAGE": "C"}
        assert command[:4] == ["/usr/bin/timeout", "-k", "5", "20"]
        command = command[4:]
        assert command[1:3] == ["-I", "-c"]
        output = self.programs[command[0].rpartition("/")[2]]
        return (1, "", "broken") if output is None else (0, output, "")


def answer(minor, libc="glibc 2.36"):
    return json.dumps([[3, minor], "x86_64", libc, f"cpython-3{minor}"])


def test_the_one_with_the_versions_name():
    found, problem = _node_python.find_python(FakeModule(python3_11=answer(11), python3=answer(12)), "3.11")
    assert problem is None
    assert found == ("/usr/bin/python3.11", ((3, 11), "x86_64", (2, 36)), "cpython-311")


def test_python3_when_it_is_the_one():
    found, problem = _node_python.find_python(FakeModule(python3=answer(12)), "3.12")
    assert (found.path, problem) == ("/usr/bin/python3", None)


def test_any_python():
    assert _node_python.find_python(FakeModule(python3=answer(13)), None)[0].machine.python == (3, 13)


@pytest.mark.parametrize(
    "module, words",
    [
        (FakeModule(python3=answer(11)), "needs Python 3.12 on this node, and /usr/bin/python3 is 3.11."),
        (FakeModule(), "needs Python 3.12 on this node, and it has none."),
        (FakeModule(python3_12=None, python3="no JSON"), "it has none."),
    ],
)
def test_what_to_do_without(module, words):
    found, problem = _node_python.find_python(module, "3.12")
    assert found is None
    assert words in problem
    assert "spark_toolchain" in problem
