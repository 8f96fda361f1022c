# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _nvidia_smi
from ansible_collections.gb10.fleet.plugins.modules import spark_facts

QUERY = ["nvidia-smi", f"--query-gpu={','.join(_nvidia_smi.QUERY_FIELDS)}", "--format=csv"]
HEADER = ", ".join(f"{field} [MiB]" if field == "memory.total" else field for field in _nvidia_smi.QUERY_FIELDS)
GB10 = "0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, 580.142, 9A.0B.25.00.00, [N/A], 12.1, ATS, None, [N/A]"


class Node:
    """A node's tools: answers by command, and what was really asked."""

    def __init__(self, tree, monkeypatch, capsys) -> None:
        self.tree = tree
        self.capsys = capsys
        self.answers: dict[tuple[str, ...], tuple[int, str, str]] = {}
        self.asked: list[list[str]] = []
        self.tools = {"timeout": "/usr/bin/timeout"}
        self.warnings: list[str] = []
        monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, warning: self.warnings.append(warning))
        monkeypatch.setattr(spark_facts, "ROOT", tree.root)
        monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, tool, **options: self.tools.get(tool))
        monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda module, argv, **options: self.run(argv, options))

    def has(self, *command: str, rc: int = 0, out: str = "", err: str = "") -> None:
        self.tools[command[0]] = f"/usr/bin/{command[0]}"
        self.answers[command] = (rc, out, err)

    def run(self, argv, options):
        assert options["environ_update"] == {"LANGUAGE": "C", "LC_ALL": "C"}
        if "timeout" in self.tools:
            assert argv[:4] == ["/usr/bin/timeout", "-k", "5", "20"]
            argv = argv[4:]
        command = [argv[0].rpartition("/")[2], *argv[1:]]
        self.asked.append(command)
        answer = self.answers[tuple(command)]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def gather(self, check: bool = False, **arguments):
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            spark_facts.main()
        return json.loads(self.capsys.readouterr().out)


@pytest.fixture
def node(tree, monkeypatch, capsys):
    return Node(tree, monkeypatch, capsys)


@pytest.fixture
def healthy(node, recorded):
    node.tree.gb10_pair()
    node.tree.write("proc/meminfo", "MemTotal:       127600000 kB\n")
    node.tree.write("sys/class/dmi/id/sys_vendor", "ASUSTeK COMPUTER INC.\n")
    node.has(*QUERY, out=f"{HEADER}\n{GB10}\n")
    node.has("ibv_devinfo", out=recorded("ibv_devinfo__fw_28.45.4028__gb10__healthy.txt"))
    node.has("ip", "-j", "address", out=recorded("ip_address__iproute2_6.1.0__gb10__rails.json"))
    return node


@pytest.mark.parametrize("check", [False, True])
def test_a_healthy_node_costs_three_commands(healthy, check):
    result = healthy.gather(check=check)
    assert healthy.asked == [QUERY, ["ibv_devinfo"], ["ip", "-j", "address"]]
    assert result["changed"] is False
    assert healthy.warnings == []
    facts = result["ansible_facts"]["spark"]
    assert sorted(facts) == ["gpu", "platform", "proven", "rdma", "toolchain"]
    assert (facts["gpu"]["state"], facts["gpu"]["driver"]) == ("ok", "580.142")
    assert facts["gpu"]["devices"][0]["memory_total_bytes"] == 127600000 * 1024
    assert facts["gpu"]["devices"][0]["mig"] == {"mode": None, "devices": []}
    assert (facts["platform"]["is_spark"], facts["platform"]["oem"]) == (True, "asus")
    assert [interface["name"] for interface in facts["platform"]["interfaces"]] == ["enP7s7", "enp1s0f0np0", "enp1s0f1np1", "lo"]
    assert {device["name"]: device["active_mtu"] for device in facts["rdma"]["devices"]} == {
        "rocep1s0f0": 1024, "rocep1s0f1": 4096, "roceP2p1s0f0": 1024, "roceP2p1s0f1": 4096,
    }
    assert facts["toolchain"]["release"] is None
    assert facts["proven"] == {}


def test_facts_match_the_documented_shape(healthy):
    import yaml

    documented = yaml.safe_load(spark_facts.RETURN)["ansible_facts"]["contains"]["spark"]["contains"]
    facts = healthy.gather()["ansible_facts"]["spark"]
    assert set(facts) == set(documented)
    assert set(facts["gpu"]) == set(documented["gpu"]["contains"])
    assert set(facts["gpu"]["devices"][0]) == set(documented["gpu"]["contains"]["devices"]["sample"][0])
    assert set(facts["rdma"]) == set(documented["rdma"]["contains"])
    assert set(facts["rdma"]["devices"][0]) == set(documented["rdma"]["contains"]["devices"]["contains"])
    assert set(facts["platform"]) == set(documented["platform"]["sample"])
    assert set(facts["platform"]["dgx"]) == set(documented["platform"]["sample"]["dgx"])
    assert set(facts["platform"]["interfaces"][0]) == set(documented["platform"]["sample"]["interfaces"][0])
    assert set(facts["toolchain"]) == set(documented["toolchain"]["sample"])


def test_a_node_with_nothing(node):
    node.tools = {}
    result = node.gather()
    facts = result["ansible_facts"]["spark"]
    assert node.asked == []
    assert (facts["gpu"]["state"], facts["gpu"]["devices"]) == ("absent", [])
    assert "nvidia-smi is not installed" in facts["gpu"]["reason"]
    assert (facts["rdma"]["state"], facts["rdma"]["devices"], facts["rdma"]["cages"]) == ("no_device", [], {})
    assert (facts["platform"]["is_spark"], facts["platform"]["interfaces"]) == (False, [])
    assert (facts["toolchain"]["cuda"], facts["toolchain"]["nvcc"], facts["toolchain"]["current"]) == ([], None, None)
    assert ["ip is not installed" in message for message in node.warnings] == [True]


@pytest.mark.parametrize(
    "subset, gathered, asked",
    [
        (["min"], {"platform"}, [["ip", "-j", "address"]]),
        (["!all"], {"platform"}, [["ip", "-j", "address"]]),
        (["!all", "!min", "rdma"], {"rdma"}, [["ibv_devinfo"]]),
        (["gpu", "!min"], {"gpu"}, [QUERY]),
        (["!gpu", "!rdma", "!min"], {"toolchain"}, []),
        (["!all", "!min"], set(), []),
    ],
)
def test_subsets_ask_only_what_they_need(healthy, subset, gathered, asked):
    facts = healthy.gather(gather_subset=subset)["ansible_facts"]["spark"]
    assert set(facts) == gathered | {"proven"}
    assert healthy.asked == asked


def test_unknown_subset_fails(node):
    result = node.gather(gather_subset=["network"])
    assert result["failed"]
    assert "unknown word 'network'" in result["msg"]


def test_unknown_field_is_left_out_and_the_rest_asked_again(healthy):
    fields = [field for field in _nvidia_smi.QUERY_FIELDS if field not in ("addressing_mode", "gpu_recovery_action")]
    without_one = [field for field in _nvidia_smi.QUERY_FIELDS if field != "addressing_mode"]
    row = "0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, 550.54, 9A.0B, [N/A], 12.1, [N/A]\n"
    second, third = (["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv"] for names in (without_one, fields))
    healthy.has(*QUERY, rc=2, out='Field "addressing_mode" is not a valid field to query.\n\n')
    healthy.has(*second, rc=2, out='Field "gpu_recovery_action" is not a valid field to query.\n\n')
    healthy.has(*third, out=row)
    gpu = healthy.gather(gather_subset=["gpu", "!min"])["ansible_facts"]["spark"]["gpu"]
    assert healthy.asked == [QUERY, second, third]
    assert (gpu["state"], gpu["driver"], gpu["devices"][0]["addressing_mode"]) == ("ok", "550.54", None)


def test_an_unknown_field_that_we_did_not_ask_ends_the_question(healthy, recorded):
    healthy.has(*QUERY, rc=2, out=recorded("nvidia_smi_csv__driver_580.159.04__h200_2__unknown_field.txt"))
    gpu = healthy.gather(gather_subset=["gpu", "!min"])["ansible_facts"]["spark"]["gpu"]
    assert healthy.asked == [QUERY]
    assert (gpu["state"], gpu["devices"]) == ("degraded", [])
    assert "nosuchfield" in gpu["reason"]


def test_case_07_mig_asks_for_the_list(healthy, recorded):
    healthy.has(*QUERY, out=f"{HEADER}\n0, NVIDIA H200, GPU-0, 00000000:83:00.0, 590.48.01, 96, 143771 MiB, 9.0, None, None, Enabled\n")
    healthy.has("nvidia-smi", "-L", out=recorded("nvidia_smi_list__driver_590.48.01__h200__mig.txt"))
    gpu = healthy.gather(gather_subset=["gpu", "!min"])["ansible_facts"]["spark"]["gpu"]
    assert healthy.asked == [QUERY, ["nvidia-smi", "-L"]]
    assert (len(gpu["devices"]), gpu["devices"][0]["mig"]["mode"], len(gpu["devices"][0]["mig"]["devices"])) == (1, "Enabled", 5)


def test_case_11_a_broken_xml_cannot_hurt_as_the_csv_is_asked(healthy, recorded):
    healthy.has("nvidia-smi", "-q", "-x", out=recorded("nvidia_smi_xml__dtd_12__rtxa6000__malformed.txt"))
    healthy.has(*QUERY, out=f"{HEADER}\n0, NVIDIA RTX A6000, GPU-0, 00000000:01:00.0, 535.54, 94.02, 49140 MiB, 8.6, None, None, [N/A]\n")
    gpu = healthy.gather(gather_subset=["gpu", "!min"])["ansible_facts"]["spark"]["gpu"]
    assert healthy.asked == [QUERY]
    assert (gpu["state"], gpu["devices"][0]["name"], gpu["devices"][0]["bus_id"]) == ("ok", "NVIDIA RTX A6000", "00000000:01:00.0")
    # Even the document itself in the place of the rows makes no row and no traceback.
    healthy.has(*QUERY, out=recorded("nvidia_smi_xml__dtd_12__rtxa6000__malformed.txt"))
    assert healthy.gather(gather_subset=["gpu", "!min"])["ansible_facts"]["spark"]["gpu"]["devices"] == []
    assert "Cannot read the answer of nvidia-smi" in healthy.warnings[0]
    assert "Please report it" in healthy.warnings[0]


def test_case_13_no_transceiver_is_read(healthy, recorded):
    healthy.has("ethtool", "-m", "enp1s0f1np1", out=recorded("ethtool_m__fw_28.45.4028__gb10__dac.txt"))
    devices = healthy.gather()["ansible_facts"]["spark"]["rdma"]["devices"]
    assert [device["reason"] for device in devices if device["state"] == "ACTIVE"] == [None, None]
    assert not [command for command in healthy.asked if command[0] in ("ethtool", "mstflint", "mlxlink", "mst", "lspci")]


def test_driver_mismatch(healthy, recorded):
    healthy.tree.write("proc/driver/nvidia/version", recorded("proc_driver_nvidia_version__driver_580.159.04__h200.txt"))
    healthy.has(*QUERY, rc=18, out=recorded("nvidia_smi__library_570.124__unknown_gpu__version_mismatch.txt"))
    result = healthy.gather()
    gpu = result["ansible_facts"]["spark"]["gpu"]
    assert (gpu["state"], gpu["driver"], gpu["library_version"], gpu["devices"]) == ("driver_mismatch", "580.159.04", "570.124", [])
    assert result["ansible_facts"]["spark"]["platform"]["is_spark"] is False
    assert healthy.warnings == []


def test_no_card_runs_no_verbs_tool(node):
    node.has("ibv_devinfo", rc=255, err="No IB devices found\n")
    facts = node.gather(gather_subset=["rdma", "!min"])["ansible_facts"]["spark"]
    assert node.asked == []
    assert facts["rdma"]["state"] == "no_device"


def test_without_ibv_devinfo_active_mtu_is_null(healthy):
    del healthy.tools["ibv_devinfo"]
    result = healthy.gather(gather_subset=["rdma", "!min"])
    device = result["ansible_facts"]["spark"]["rdma"]["devices"][1]
    assert (device["active_mtu"], device["max_mtu"], device["expected_active_mtu"]) == (None, None, 4096)
    assert healthy.warnings == []


@pytest.mark.parametrize(
    "rc, out, err, words",
    [
        (1, "", "Failed to open device\n", "ended with 1 and said 'Failed to open device'"),
        (0, "something else\n", "", "Cannot read the answer of ibv_devinfo"),
    ],
)
def test_verbs_that_cannot_be_read_warn(healthy, rc, out, err, words):
    healthy.has("ibv_devinfo", rc=rc, out=out, err=err)
    result = healthy.gather(gather_subset=["rdma", "!min"])
    assert words in healthy.warnings[0]
    assert result["ansible_facts"]["spark"]["rdma"]["devices"][1]["active_mtu"] is None


def test_verbs_that_hang_warn(healthy):
    healthy.has("ibv_devinfo", rc=124)
    healthy.gather(gather_subset=["rdma", "!min"])
    assert "/usr/bin/ibv_devinfo did not end within 20 s and was stopped" in healthy.warnings[0]


@pytest.mark.parametrize("rc, out", [(0, "Object unknown"), (255, "")])
def test_ip_that_cannot_be_read_falls_back_to_sysfs(healthy, rc, out):
    healthy.has("ip", "-j", "address", rc=rc, out=out)
    result = healthy.gather(gather_subset=["min"])
    interfaces = result["ansible_facts"]["spark"]["platform"]["interfaces"]
    assert "enP2p1s0f1np1" in [interface["name"] for interface in interfaces]
    assert all(interface["addresses"] == [] for interface in interfaces)
    assert "Cannot read the answer of ip -j address" in healthy.warnings[0]


def test_a_tool_that_cannot_be_run(healthy):
    healthy.answers[("ibv_devinfo",)] = OSError(8, "Exec format error")
    del healthy.tools["timeout"]
    result = healthy.gather(gather_subset=["rdma", "!min"])
    assert "Exec format error" in healthy.warnings[0]


def test_nvcc_runs_only_where_no_file_tells(healthy, recorded):
    healthy.tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    healthy.has("nvcc", "--version", out=recorded("nvcc_version__cuda_13.0.88__h200.txt"))
    toolchain = healthy.gather(gather_subset=["toolchain", "!min"])["ansible_facts"]["spark"]["toolchain"]
    assert healthy.asked == [["nvcc", "--version"]]
    assert (toolchain["cuda"], toolchain["nvcc"]) == ([{"path": "/usr/local/cuda-13.0", "version": None}], "13.0.88")
    healthy.asked.clear()
    healthy.tree.write("usr/local/cuda-13.0/version.json", '{"cuda": {"version": "13.0.2"}, "cuda_nvcc": {"version": "13.0.88"}}')
    toolchain = healthy.gather(gather_subset=["toolchain", "!min"])["ansible_facts"]["spark"]["toolchain"]
    assert healthy.asked == []
    assert (toolchain["cuda"], toolchain["nvcc"]) == ([{"path": "/usr/local/cuda-13.0", "version": "13.0.2"}], "13.0.88")


@pytest.mark.parametrize("text, proven, warned", [('{"release": {"key": "x"}}', {"release": {"key": "x"}}, 0), ("{", {}, 1), ("[]", {}, 1)])
def test_what_was_proven(node, text, proven, warned):
    node.tree.write("etc/ansible/facts.d/gb10.fact", text)
    result = node.gather(gather_subset=["!all", "!min"])
    assert result["ansible_facts"]["spark"] == {"proven": proven}
    assert len(node.warnings) == warned
