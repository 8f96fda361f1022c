# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ib_write_bw
import nccl_tests
import open_mpi
import pytest
import rails
from ansible_collections.gb10.fleet.plugins.module_utils._elf import read_build_id
from ansible_collections.gb10.fleet.plugins.module_utils._nccl_launch import daemon_command
from ansible_collections.gb10.fleet.plugins.module_utils._nccl_tests import parse_nccl_tests


def test_a_perftest_row_is_printed_as_the_captured_one(capsys):
    ib_write_bw.rows(ib_write_bw.options(["-s", "1048576", "-D", "6", "--report_gbits", "192.168.100.10"]), 13.33)
    assert capsys.readouterr().out == " 1048576    9534             0.00               13.33  \t\t   0.001589\n"


def test_a_test_of_a_number_of_messages_has_a_peak(capsys):
    ib_write_bw.rows(ib_write_bw.options(["--report_gbits"]), 97.98)
    assert capsys.readouterr().out.split() == ["65536", "5000", "97.98", "97.98", "0.186882"]


def test_gids_in_perftests_octets():
    assert ib_write_bw.octets("0000:0000:0000:0000:0000:ffff:c0a8:640a") == "00:00:00:00:00:00:00:00:00:00:255:255:192:168:100:10"


def test_the_gid_that_is_picked_without_asking():
    port = rails.Port(
        "rocep1s0f0", "enp1s0f0np0", True, 9000,
        {0: "fe80::1", 1: "fe80::1", 2: "::ffff:192.168.100.10", 3: "::ffff:192.168.100.10"},
        {0: "IB/RoCE v1", 1: "RoCE v2", 2: "IB/RoCE v1", 3: "RoCE v2"},
    )
    assert port.gid_index() == 3 and port.active_mtu() == 4096
    assert rails.ipv4_of(port.gids[3]) == "192.168.100.10" and rails.ipv4_of(port.gids[1]) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", ["mlx5_1", "mlx5_10", "roceP2p1s0f0"]),
        ("mlx5_1", ["mlx5_1", "mlx5_10"]),
        ("=mlx5_1", ["mlx5_1"]),
        ("^=mlx5_1", ["mlx5_10", "roceP2p1s0f0"]),
        ("=roceP2p1s0f0:1", ["roceP2p1s0f0"]),
        ("rocep1", []),
    ],
)
def test_devices_are_chosen_as_nccl_does(monkeypatch, selector, expected):
    monkeypatch.setattr(rails, "devices", lambda: ["mlx5_1", "mlx5_10", "roceP2p1s0f0"])
    monkeypatch.setenv("NCCL_IB_HCA", selector)
    assert nccl_tests.chosen_devices() == expected


def test_sizes_of_nccl_tests():
    assert [nccl_tests.size_of(text) for text in ("8", "32M", "16G")] == [8, 32 * 2**20, 16 * 2**30]


def test_a_pair_with_two_rails_reaches_24_gigabytes(capsys):
    nccl_tests.print_rows("all_reduce", nccl_tests.options(["-b", "1G", "-e", "16G", "-f", "2"]), 2, "IB", 2 * 97.98)
    average = next(line for line in capsys.readouterr().out.splitlines() if "Avg bus bandwidth" in line)
    assert 23.5 < float(average.split(":")[1]) < 24.1


def test_a_rank_alone_has_no_bus_bandwidth(capsys):
    nccl_tests.print_rows("all_reduce", nccl_tests.options(["-b", "1M", "-e", "16M", "-f", "4"]), 1, "IB", 0.0)
    assert "# Avg bus bandwidth    : 0 \n" in capsys.readouterr().out


def rows(capsys, *arguments, collective="all_reduce", wrong=0):
    nccl_tests.print_rows(collective, nccl_tests.options(["-b", "8M", "-e", "1G", "-f", "128", *arguments]), 2, "IB", 2 * 97.98, wrong)
    return parse_nccl_tests(capsys.readouterr().out)


def test_rows_are_what_the_gate_reads(capsys):
    found = rows(capsys)
    assert [row["bytes"] for row in found["rows"]] == [8 << 20, 1 << 30] and found["unread"] == [] and found["out_of_bounds"] == 0
    assert 23.5 < found["rows"][-1]["in_place"]["busbw"] < 24.1
    gathered = rows(capsys, collective="all_gather")["rows"][-1]
    # Half of the buffer is a rank's own.
    assert gathered["in_place"]["algbw"] == pytest.approx(2 * gathered["in_place"]["busbw"], rel=0.01) and gathered["count"] == 1 << 27


def test_wrong_values_and_values_not_compared(capsys):
    found = rows(capsys, wrong=3)
    assert (found["rows"][0]["in_place"]["wrong"], found["out_of_bounds"]) == (3, 12)
    assert rows(capsys, "-c", "0", wrong=3)["rows"][0]["in_place"]["wrong"] is None


def test_the_head_of_a_run(capsys):
    everyone = [{"rank": rank, "pid": 9, "host": f"spark-{rank}", "gpu": "NVIDIA GB10", "version": "2.28.3"} for rank in (0, 1)]
    nccl_tests.print_head("all_gather", nccl_tests.options([]), everyone)
    found = parse_nccl_tests(capsys.readouterr().out)
    assert (found["collective"], found["nccl"], found["validated"]) == ("all_gather", "2.28.3", True)
    assert [rank["host"] for rank in found["ranks"]] == ["spark-0", "spark-1"]


def test_the_library_has_its_build_id(tmp_path, monkeypatch):
    build_id = "ab" * 20
    content = nccl_tests.library(build_id)
    assert read_build_id(lambda offset, size: content[offset:offset + size]) == build_id
    monkeypatch.setattr(nccl_tests, "LIBRARIES", str(tmp_path))
    with nccl_tests.load_library({"version": "2.28.3", "build_id": build_id}) as held:
        assert held[:4] == b"\x7fELF" and f"{tmp_path}/libnccl.so.2.28.3-abababab" in Path("/proc/self/maps").read_text()


def test_mpirun_starts_one_process_here_and_a_daemon_on_each_other_host(tmp_path):
    folder = Path(open_mpi.__file__).parent
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/said\n")
    agent.chmod(0o755)
    program = ["sh", "-c", "echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE at $NCCL_COMM_ID"]
    done = subprocess.run(
        [sys.executable, str(folder / "open_mpi.py"), "mpirun", "-np", "2", "--host", "127.0.0.1:1,10.0.0.2:1", "--map-by", "node", *program],
        env={**os.environ, "OMPI_MCA_plm_rsh_agent": str(agent)}, capture_output=True, text=True, timeout=20, check=True,
    )
    assert done.stdout.startswith("0 of 2 at 127.0.0.1:")
    said = (tmp_path / "said").read_text().splitlines()
    command = daemon_command(said[1:])
    assert said[0] == "10.0.0.2" and command[0] == "/usr/bin/orted" and command[1:3] == ["-mca", "ess"]
    other = subprocess.run(
        [sys.executable, str(folder / "open_mpi.py"), "orted", *command[1:]], capture_output=True, text=True, timeout=20, check=True
    )
    assert other.stdout == done.stdout.replace("0 of 2", "1 of 2")


def test_a_daemon_that_does_not_come_ends_the_job(tmp_path):
    done = subprocess.run(
        [sys.executable, open_mpi.__file__, "mpirun", "-np", "2", "--host", "127.0.0.1:1,10.0.0.2:1", "sleep", "60"],
        env={**os.environ, "OMPI_MCA_plm_rsh_agent": "false"}, capture_output=True, text=True, timeout=20, check=False,
    )
    assert done.returncode != 0 and "ended with an error" in done.stderr
