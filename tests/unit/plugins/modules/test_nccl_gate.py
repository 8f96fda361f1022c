# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module with real processes: a Python that answers as the rank does, and an mpirun that asks its agent as the real one does."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _marked
from ansible_collections.gb10.fleet.plugins.modules import nccl_gate

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nccl_tests"
KEY = "k" * 64
MIB = 1 << 20
GOOD = "all_reduce__nccl_tests_2.19.6__h200_2"
LOG = "a:1:1 [0] NCCL INFO NCCL version 2.28.3+cuda13.0\na:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
# Starts the program on this node, and the daemon on the others by the agent, as Open MPI does.
MPIRUN = """#!/bin/sh
echo "$@" >>{folder}/mpirun-said
while [ $# -gt 0 ]; do case $1 in --host) hosts=$2; shift 2 ;; -np | --map-by | --bind-to) shift 2 ;; *) break ;; esac; done
case $hosts in *,*) other=${{hosts#*,}}; $OMPI_MCA_plm_rsh_agent ${{other%:1}} orted -mca ess '"env"' & esac
"$@"
status=$?
wait
exit $status
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Node:
    """Programs and files of a node, and how the module is run there."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys, self.port = folder, capsys, free_port()
        self.environment = folder / "nccl.env"
        self.arguments = {
            "nodes": ["spark-a", "spark-b"], "address": "127.0.0.1", "port": self.port, "environment_file": str(self.environment), "key": KEY,
            "meet_seconds": 5, "limit_seconds": 20, "python": str(folder / "release" / "bin" / "python"), "sizes": [8 * MIB, 1024 * MIB],
        }

    def python(self, text):
        """What the release's Python does in the place of a rank's program."""
        program(self.folder / "release" / "bin" / "python", f"#!{sys.executable}\nimport json, os, sys, time\n{text}")

    def programs(self, text, mpirun=MPIRUN):
        """nccl-tests whose programs do so, and Open MPI."""
        for name in ("all_reduce", "all_gather"):
            log = f"[ -z \"$NCCL_DEBUG_FILE\" ] || printf '%s' '{LOG}' >$NCCL_DEBUG_FILE"
            program(self.folder / "build" / f"{name}_perf", f"#!/bin/sh\n{log}\n{text}")
        program(self.folder / "bin" / "mpirun", mpirun.format(folder=self.folder))
        said = f"echo \"$@ $GB10_NCCL_GATE $NCCL_NET\" >{self.folder}/orted-said"
        program(self.folder / "bin" / "orted", f"#!/bin/sh\n{said}\n{self.folder}/build/all_gather_perf >/dev/null\n")
        self.arguments["nccl_tests_folder"] = str(self.folder / "build")

    def run(self, **arguments):
        """The result of the module."""
        given = {name: value for name, value in {**self.arguments, **arguments}.items() if value is not None}
        with patch_module_args(given), pytest.raises(SystemExit):
            nccl_gate.main()
        return json.loads(self.capsys.readouterr().out)

    def other(self, **arguments):
        """The module of the second node, in a process of its own."""
        return Other({**self.arguments, "rank": 1, **arguments}, self.folder)


class Other:
    def __init__(self, arguments, folder):
        text = json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_remote_tmp": str(folder)}})
        code = (
            "import sys; from ansible.module_utils import basic; from ansible_collections.gb10.fleet.plugins.modules import nccl_gate; "
            f"basic._ANSIBLE_ARGS = {text.encode()!r}; basic._ANSIBLE_PROFILE = 'legacy'; nccl_gate.main()"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)

    def result(self):
        output = self.process.communicate(timeout=40)[0]
        return json.loads(output)


@pytest.fixture(name="node")
def node_fixture(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(nccl_gate.signal, "signal", lambda *_arguments: None)
    return Node(tmp_path, capsys)


# --- the release's torch -----------------------------------------------------------------------------------------------

ANSWER = """
task = json.loads(sys.argv[2])
print('''{log}''')
rows = [{{"collective": "all_reduce", "bytes": 1 << 30, "time_us": 1.0, "algbw": 23.0, "busbw": 23.0, "wrong": 0}}]
report = {{"rank": task["rank"], "stage": "done", "error": None, "rows": rows, "seen": dict(os.environ), "task": task}}
report["files"] = sorted(os.listdir(os.path.dirname(sys.argv[1])))
print("gb10-nccl-rank " + json.dumps({{"report": report, "reports": [report, {{"rank": 1, "error": None}}]}}))
"""


def test_a_rank_of_torch(node):
    node.environment.write_text("# Ours.\nNCCL_IB_HCA==rocep1s0f0\nNCCL_NET=IB\nNCCL_DEBUG=WARN\nNCCL_DEBUG_FILE=/var/log/x\nNCCL_NAME=\"a \\\"b\\$\"\n")
    node.python(ANSWER.format(log=LOG))
    result = node.run(environment={"NCCL_IB_TC": 106})
    report = result["report"]
    assert result["way"] == "torch" and result["changed"] is False and result["seconds"] < 10
    assert result["rows"] == [{
        "collective": "all_reduce", "bytes": 1 << 30, "time_us": 1.0, "algbw": 23.0, "busbw": 23.0, "busbw_gbps": 184.0, "wrong": 0,
    }]
    assert (result["log"]["transports"], result["ranks"], result["trouble"]) == (["NET/IB"], 2, "")
    assert report["files"] == ["_elf.py", "rank.py"]
    assert report["task"] == {
        "rank": 0, "world": 2, "address": "127.0.0.1", "port": node.port, "device": 0, "meet": 5, "limit": 20, "collectives": ["all_reduce", "all_gather"],
        "sizes": [8 * MIB, 1024 * MIB],
    }
    # What the units have, the user's own over it, and a log that can be read.
    assert {name: report["seen"].get(name) for name in ("NCCL_IB_HCA", "NCCL_NET", "NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_NAME", "NCCL_IB_TC")} == {
        "NCCL_IB_HCA": "=rocep1s0f0", "NCCL_NET": "IB", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": None, "NCCL_NAME": 'a "b$', "NCCL_IB_TC": "106",
    }
    assert result["environment"] == {
        "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=rocep1s0f0", "NCCL_IB_TC": "106", "NCCL_NAME": 'a "b$', "NCCL_NET": "IB",
    }
    assert "rows" not in result["reports"][0]


@pytest.mark.parametrize("text, expected", [("", "IB"), ("NCCL_NET=Socket\n", "Socket")])
def test_only_who_says_otherwise_may_fall_back_to_sockets(node, text, expected):
    node.environment.write_text(text)
    node.python(ANSWER.format(log=LOG))
    assert node.run()["environment"]["NCCL_NET"] == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("sys.exit('No module named torch')", "ended with 1 and said: No module named torch"),
        ("print('gb10-nccl-rank {')", "ended with 0 and said: gb10-nccl-rank {"),
        ("pass", "ended with 0 and said: nothing"),
    ],
)
def test_a_rank_that_says_nothing_of_itself(node, text, expected):
    node.python(text)
    result = node.run()
    assert result["report"]["error"] == expected and result["rows"] == [] and result["ranks"] == 0


def test_a_python_that_is_not_there(node):
    result = node.run()
    assert result["report"]["stage"] == "torch" and "failed to run command" in result["report"]["error"]


def test_what_a_rank_left_behind_is_ended(node):
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    node.python(f"import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True, {quiet})\n" + ANSWER.format(log=LOG))
    mark = node.run()["report"]["seen"][_marked.VARIABLE]
    assert _marked.marked(mark) == []


def test_nothing_stays_in_the_modules_folder(node, monkeypatch):
    made = []
    make = nccl_gate.tempfile.mkdtemp
    monkeypatch.setattr(nccl_gate.tempfile, "mkdtemp", lambda **options: made.append(make(**options)) or made[-1])
    node.python(ANSWER.format(log=LOG))
    node.run()
    (folder,) = [path for path in made if os.path.basename(path).startswith("nccl-")]
    assert not os.path.exists(folder)


@pytest.mark.parametrize("sizes", [[], [0], [-8], [2 * 1024**3 + 1], [8, 16 * 1024**3]])
def test_sizes_that_a_shared_memory_cannot_take(node, sizes):
    result = node.run(sizes=sizes)
    assert result["failed"] is True and "give one or more sizes from 1 to 2147483648 bytes" in result["msg"]


def test_nothing_to_measure(node):
    assert "name all_reduce, all_gather or both" in node.run(collectives=[])["msg"]


# --- nccl-tests --------------------------------------------------------------------------------------------------------


def test_two_nodes_without_ssh(node):
    node.environment.write_text("NCCL_NET=IB\n")
    node.programs(f"cat {FIXTURES}/{GOOD}.txt; sleep 0.5\n")
    other = node.other()
    result = node.run()
    told = other.result()
    assert (result["way"], result["ranks"], result["unread"], result["report"]["error"]) == ("nccl-tests", 2, [], None)
    assert [row["bytes"] for row in result["rows"]].count(134217728) == 2 and result["rows"][-1]["busbw"] == 284.495
    assert result["log"]["transports"] == ["NET/IB"] and result["report"]["nccl"] == "2.28.3"
    assert [(one["rank"], one["stage"], one["error"], one["nccl"]) for one in result["reports"]] == [(0, "done", None, "2.28.3"), (1, "done", None, "2.28.3")]
    assert told["report"]["error"] is None and told["rows"] == [] and told["way"] == "nccl-tests"
    said = (node.folder / "mpirun-said").read_text().splitlines()
    assert said[0] == (
        f"-np 2 --host 127.0.0.1:1,127.0.0.1:1 --map-by node --bind-to none {node.folder}/build/all_reduce_perf -b 8388608 -e 1073741824 -f 128 -g 1 -c 1"
        " -n 10 -w 2"
    )
    assert "all_gather_perf" in said[1] and len(said) == 2
    # The daemon has the other node's own environment, with its mark.
    words = (node.folder / "orted-said").read_text().split()
    assert words[:3] == ["-mca", "ess", "env"] and words[-1] == "IB" and len(words[-2]) == 16


def test_values_that_came_out_wrong_are_a_result(node):
    node.programs("printf '  8 2 float sum -1 13.5 1.00 1.00 5 13.5 1.00 1.00 0\\n# Out of bounds values : 5 FAILED\\n# Avg bus bandwidth : 1\\n'; exit 1\n")
    result = node.run(nodes=["spark-a"], collectives=["all_reduce"])
    assert result["report"]["error"] is None and result["rows"][0]["wrong"] == 5


def test_a_program_that_fails(node):
    node.programs(
        "echo 'a:1:1 [0] NCCL WARN NET/IB : Got completion with error 12' >>$NCCL_DEBUG_FILE; echo '-----' >&2;"
        "echo 'mpirun detected. Process name: [[31270,1],1]' >&2; exit 3\n"
    )
    other = node.other()
    result = node.run()
    told = other.result()
    assert result["report"]["error"].startswith("all_reduce_perf of rank 1 ended with 3 and said: mpirun detected. Process name: [[31270,1],1]")
    assert "error 12" in result["trouble"] and len((node.folder / "mpirun-said").read_text().splitlines()) == 1
    assert told["report"] == {**told["report"], "stage": "measure", "error": "NET/IB : Got completion with error 12"}


def test_output_that_no_version_prints(node):
    node.programs("echo all is well\n")
    result = node.run(nodes=["spark-a"], collectives=["all_reduce"])
    assert result["rows"] == [] and result["unread"] == ["all is well"]


def test_output_that_ends_before_its_summary(node):
    node.programs(f"head -20 {FIXTURES}/{GOOD}.txt\n")
    result = node.run(nodes=["spark-a"], collectives=["all_reduce"])
    assert result["rows"] and result["unread"] == ["the output ends before its summary"]


def test_programs_that_hang_are_ended_at_the_limit(node):
    node.programs("echo $GB10_NCCL_GATE >$0.mark; sleep 60\n")
    begin = time.monotonic()
    result = node.run(nodes=["spark-a"], limit_seconds=2)
    assert time.monotonic() - begin < 12
    assert "did not end within" in result["report"]["error"] and result["report"]["stage"] == "measure"
    assert _marked.marked((node.folder / "build" / "all_reduce_perf.mark").read_text().strip()) == []


def test_a_node_that_does_not_come(node):
    node.programs("exit 1\n")
    result = node.run(meet_seconds=1)
    assert (result["report"]["stage"], result["report"]["error"]) == ("meet", "rank 1 did not come within 1 s")
    result = node.run(meet_seconds=1, rank=1)
    assert result["report"]["stage"] == "meet" and result["report"]["error"].startswith(f"rank 0 at 127.0.0.1 port {node.port} did not come within 1 s")


def test_programs_that_are_missing(node):
    node.programs("exit 1\n")
    (node.folder / "build" / "all_gather_perf").unlink()
    assert node.run()["report"] == {**node.run()["report"], "stage": "program", "error": f"{node.folder}/build/all_gather_perf is not on this node"}


@pytest.mark.parametrize("rank, missing", [(0, "mpirun"), (1, "orted")])
def test_open_mpi_that_is_missing(node, monkeypatch, rank, missing):
    node.programs("exit 1\n")
    monkeypatch.setattr(nccl_gate.AnsibleModule, "get_bin_path", lambda *_arguments, **_options: None)
    assert node.run(rank=rank)["report"]["error"] == f"{missing} is not on this node"


def test_programs_load_the_releases_own_nccl(node):
    folder = node.folder / "release" / "lib" / "python3.12" / "site-packages" / "nvidia" / "nccl" / "lib"
    folder.mkdir(parents=True)
    (folder / "libnccl.so.2").write_bytes(b"")
    node.programs("exit 1\n")
    assert node.run(nodes=["spark-a"])["environment"]["LD_LIBRARY_PATH"] == str(folder)
    assert node.run(nodes=["spark-a"], environment={"LD_LIBRARY_PATH": "/opt/x"})["environment"]["LD_LIBRARY_PATH"] == "/opt/x"


def test_another_gpu(node):
    node.programs("echo $NCCL_TESTS_DEVICE; exit 1\n")
    assert node.run(nodes=["spark-a"], device=3)["report"]["error"].endswith("said: 3")


# --- parts -------------------------------------------------------------------------------------------------------------


def test_the_library_that_a_process_has_loaded(node, tmp_path):
    build_id = bytes(range(20))
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0" + build_id
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    library = tmp_path / "libnccl.so.2.28.3"
    library.write_bytes(head + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4) + note)
    code = f"import mmap, time; file = open('{library}', 'rb'); held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); time.sleep(1)"
    node.programs(f"{sys.executable} -c \"{code}\"; cat {FIXTURES}/{GOOD}.txt\n")
    report = node.run(nodes=["spark-a"], collectives=["all_reduce"])["report"]
    assert report["library"] == {"path": str(library), "size_bytes": library.stat().st_size, "build_id": build_id.hex()}


def test_counters_that_grew(tree):
    port = "sys/class/infiniband/rocep1s0f0/ports/1"
    for name, text in (("counters/symbol_error", "5"), ("hw_counters/out_of_sequence", "7"), ("counters/port_xmit_data", "9"), ("counters/odd", "N/A")):
        tree.write(f"{port}/{name}", f"{text}\n")
    before = nccl_gate.read_counters(tree.root)
    assert before == {"rocep1s0f0": {"symbol_error": 5, "out_of_sequence": 7, "port_xmit_data": 9}}
    after = {"rocep1s0f0": {"symbol_error": 5, "out_of_sequence": 17, "port_xmit_data": 900, "new": 3}, "rocep1s0f1": {"symbol_error": 1}}
    assert nccl_gate.grown_counters(before, after) == {"rocep1s0f0": {"out_of_sequence": 10}}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A=1\nB=\n# C=2\n D=3\n", {"A": "1", "B": "", "D": "3"}), ("A='x y'\nB=\"x\\\\y\\\"\"\n", {"A": "x y", "B": 'x\\y"'}),
        ("=1\nA B=1\n1A=1\nA\n", {}), ("", {}), ('A="', {"A": '"'}),
    ],
)
def test_files_of_variables(text, expected):
    assert nccl_gate.parse_environment_file(text) == expected


def test_what_a_rank_printed_on_a_real_gpu():
    text = (FIXTURES / "rank__torch_2.11__nccl_2.28.9__h200_1__single_rank.txt").read_text(encoding="utf-8")
    result = nccl_gate.read_result(text)
    assert result["report"]["stage"] == "done" and [row["busbw"] for row in result["report"]["rows"]] == [0.0] * 4
    assert result["report"]["library"]["build_id"] == "9fcf74d93a8c3605bf7718f594d0a24366e38536"
    log = nccl_gate.parse_log(text)
    assert (log["version"], log["network"], log["ranks"], log["nodes"], log["transports"]) == ("2.28.9", "Socket", 1, 1, [])


def test_lines_that_may_name_a_cause():
    text = "all well\nNCCL WARN a\ngb10-nccl-rank WARN\nRuntimeError: b\n" + "x error\n" * 9000
    assert nccl_gate.trouble(text).splitlines()[-1] == "x error" and len(nccl_gate.trouble(text)) == nccl_gate.LONGEST_TEXT
    assert nccl_gate.trouble("all well\nNCCL WARN a\ngb10-nccl-rank WARN\n") == "NCCL WARN a"


def test_a_module_that_is_stopped_leaves_nothing(node):
    node.programs("echo $GB10_NCCL_GATE >$0.mark; sleep 60\n")
    other = node.other(rank=0, nodes=["spark-a"])
    path = node.folder / "build" / "all_reduce_perf.mark"
    deadline = time.monotonic() + 10
    while not (path.exists() and path.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.exists(), other.result()
    mark = path.read_text().strip()
    assert _marked.marked(mark)
    threading.Timer(0.1, other.process.terminate).start()
    assert other.process.wait(15) == 128 + 15
    assert _marked.marked(mark) == []
