# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import threading

import pytest
import yaml
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.fleet.plugins.module_utils import _gather, _nvidia_smi, _platform, _services
from ansible_collections.gb10.fleet.plugins.modules import spark_facts

QUERY = ["nvidia-smi", f"--query-gpu={','.join(_nvidia_smi.QUERY_FIELDS)}", "--format=csv"]
REPORT = ["nvidia-smi", "-q", "-x"]
ADDRESSES = ["ip", "-j", "address"]
FIRMWARE = [["fwupdmgr", "get-devices", "--json"], ["fwupdmgr", "get-history", "--json"]]
UNITS = list(_services.PROBES["units"])
HEADER = ", ".join(f"{field} [MiB]" if field == "memory.total" else field for field in _nvidia_smi.QUERY_FIELDS)
GB10 = "0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, 580.142, 9A.0B.25.00.00, [N/A], 12.1, ATS, None, [N/A]"


class Node:
    """A node's tools: answers by command, and what was really asked."""

    def __init__(self, tree, monkeypatch, capsys) -> None:
        self.tree = tree
        self.capsys = capsys
        self.answers: dict[tuple[str, ...], tuple[int, str, str]] = {}
        self.asked: list[list[str]] = []
        self.threads: set[int] = set()
        self.tools = {"timeout": "/usr/bin/timeout"}
        self.limit = "10"
        monkeypatch.setattr(spark_facts, "ROOT", tree.root)
        monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, tool, **options: self.tools.get(tool))
        monkeypatch.setattr(basic.AnsibleModule, "run_command", lambda module, argv, **options: self.run(argv, options))

    def has(self, *command: str, rc: int = 0, out: str = "", err: str = "") -> None:
        self.tools[command[0]] = f"/usr/bin/{command[0]}"
        self.answers[command] = (rc, out, err)

    def run(self, argv, options):
        assert options["environ_update"] == {"LANGUAGE": "C", "LC_ALL": "C"}
        if "timeout" in self.tools:
            assert argv[:4] == ["/usr/bin/timeout", "-k", "1", self.limit]
            argv = argv[4:]
        command = [argv[0].rpartition("/")[2], *argv[1:]]
        self.asked.append(command)
        self.threads.add(threading.get_ident())
        answer = self.answers.get(tuple(command), (1, "", f"{command[0]}: no answer"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def gather(self, check: bool = False, **arguments):
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            spark_facts.main()
        return json.loads(self.capsys.readouterr().out)

    def spark(self, *subset: str, **arguments):
        """Facts of the subsets alone."""
        words = [*subset, *(() if "platform" in subset else ("!min",))] if subset else ["all"]
        return self.gather(gather_subset=words, **arguments)["ansible_facts"]["spark"]


@pytest.fixture
def node(tree, monkeypatch, capsys):
    return Node(tree, monkeypatch, capsys)


@pytest.fixture
def healthy(node, recorded):
    node.tree.gb10_pair()
    node.tree.write("proc/meminfo", "MemTotal:       127600000 kB\n")
    node.tree.write("proc/sys/kernel/hostname", "spark-7\n")
    node.tree.write("sys/class/dmi/id/sys_vendor", "ASUSTeK COMPUTER INC.\n")
    node.has(*QUERY, out=f"{HEADER}\n{GB10}\n")
    node.has(*REPORT, out=recorded("nvidia_smi_xml__driver_580.142__gb10__processes.txt"))
    node.has("ibv_devinfo", out=recorded("ibv_devinfo__fw_28.45.4028__gb10__healthy.txt"))
    node.has(*ADDRESSES, out=recorded("ip_address__iproute2_6.1.0__gb10__rails.json"))
    node.has("getent", "ahostsv4", "spark-7", out="127.0.1.1       STREAM spark-7\n127.0.1.1       DGRAM\n")
    for command in FIRMWARE:
        node.has(*command, out='{"Devices": []}')
    node.has(*UNITS, out="Id=ssh.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=0\n")
    return node


@pytest.mark.parametrize("check", [False, True])
def test_a_healthy_node_costs_eight_commands_side_by_side(healthy, check):
    result = healthy.gather(check=check)
    own = ["getent", "ahostsv4", "spark-7"]
    assert sorted(healthy.asked) == sorted([QUERY, REPORT, ["ibv_devinfo"], ADDRESSES, own, UNITS, *FIRMWARE])
    assert threading.get_ident() not in healthy.threads
    assert result["changed"] is False
    facts = result["ansible_facts"]["spark"]
    assert sorted(facts) == ["gpu", "kernel", "memory", "platform", "proven", "rdma", "services", "toolchain", "unread"]
    assert facts["unread"] == []
    assert (facts["gpu"]["state"], facts["gpu"]["driver"], facts["gpu"]["cuda_version"]) == ("ok", "580.142", "13.0")
    assert facts["gpu"]["devices"][0]["memory_total_bytes"] == 127600000 * 1024
    assert facts["gpu"]["devices"][0]["mig"] == {"mode": None, "devices": []}
    assert (facts["platform"]["is_spark"], facts["platform"]["oem"]) == (True, "asus")
    assert (facts["platform"]["hostname"], facts["platform"]["own_address"], facts["platform"]["names"]) == ("spark-7", ["127.0.1.1"], {})
    assert [interface["name"] for interface in facts["platform"]["interfaces"]] == ["enP7s7", "enp1s0f0np0", "enp1s0f1np1", "lo"]
    assert {device["name"]: device["active_mtu"] for device in facts["rdma"]["devices"]} == {
        "rocep1s0f0": 1024, "rocep1s0f1": 4096, "roceP2p1s0f0": 1024, "roceP2p1s0f1": 4096,
    }
    assert "192.168.100.10/24" in next(device for device in facts["rdma"]["devices"] if device["name"] == "rocep1s0f1")["addresses"]
    assert [unit["name"] for unit in facts["services"]["units"]] == ["ssh.service"]
    assert facts["toolchain"]["release"] is None
    assert facts["proven"] == {}


def keys_of(documented):
    """The keys of a documented value: its own description, or its sample."""
    if "contains" in documented:
        return set(documented["contains"])
    sample = documented["sample"]
    return set(sample[0] if isinstance(sample, list) else sample)


def test_facts_match_the_documented_shape(healthy):
    documented = yaml.safe_load(spark_facts.RETURN)["ansible_facts"]["contains"]["spark"]["contains"]
    facts = healthy.spark()
    assert set(facts) == set(documented)
    for subset in _gather.SUBSETS:
        contains = documented[subset]["contains"]
        assert set(facts[subset]) - {"clock"} == set(contains) - {"clock"}
        for name, value in facts[subset].items():
            first = value[0] if isinstance(value, list) and value else value
            # Of names, counters and units the keys are the node's own.
            if isinstance(first, dict) and first and name not in ("cages", "names", "clock"):
                assert set(first) == keys_of(contains[name]), f"{subset}.{name}"
    assert set(facts["platform"]["clock"]) | {"window"} == keys_of(documented["platform"]["contains"]["clock"])


def test_a_node_with_nothing(node):
    node.tools = {}
    facts = node.spark()
    assert node.asked == []
    assert (facts["gpu"]["state"], facts["gpu"]["devices"], facts["gpu"]["count"]) == ("absent", [], None)
    assert "nvidia-smi is not installed" in facts["gpu"]["reason"]
    assert (facts["rdma"]["state"], facts["rdma"]["devices"], facts["rdma"]["cages"]) == ("no_device", [], {})
    assert facts["rdma"]["hotplug"] == {"installed": False, "enabled": False}
    # A tool that is not installed is nothing that was not read.
    assert facts["unread"] == []


@pytest.mark.parametrize(
    "subset, gathered, asked",
    [
        (["min"], {"platform"}, [ADDRESSES, *FIRMWARE, ["getent", "ahostsv4", "spark-7"]]),
        (["!all", "!min", "rdma"], {"rdma"}, [["ibv_devinfo"], ADDRESSES]),
        (["gpu", "!min"], {"gpu"}, [QUERY, REPORT]),
        (["services", "!min"], {"services"}, [UNITS]),
        (["kernel", "memory", "toolchain", "!min"], {"kernel", "memory", "toolchain"}, []),
        (["!gpu", "!rdma", "!platform", "!services"], {"kernel", "memory", "toolchain"}, []),
        (["!all", "!min"], set(), []),
    ],
)
def test_subsets_ask_only_what_they_need(healthy, subset, gathered, asked):
    facts = healthy.gather(gather_subset=subset)["ansible_facts"]["spark"]
    assert set(facts) == gathered | {"proven", "unread"}
    assert sorted(healthy.asked) == sorted(asked)


def test_unknown_subset_fails(node):
    result = node.gather(gather_subset=["network"])
    assert result["failed"]
    assert "unknown word 'network'" in result["msg"]


def test_a_limit_that_is_none_fails(node):
    assert "give the whole seconds" in node.gather(time_limit=0)["msg"]


def test_unknown_field_is_left_out_and_the_rest_asked_again(healthy):
    fields = [field for field in _nvidia_smi.QUERY_FIELDS if field not in ("addressing_mode", "gpu_recovery_action")]
    without_one = [field for field in _nvidia_smi.QUERY_FIELDS if field != "addressing_mode"]
    row = "0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, 550.54, 9A.0B, [N/A], 12.1, [N/A]\n"
    second, third = (["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv"] for names in (without_one, fields))
    healthy.has(*QUERY, rc=2, out='Field "addressing_mode" is not a valid field to query.\n\n')
    healthy.has(*second, rc=2, out='Field "gpu_recovery_action" is not a valid field to query.\n\n')
    healthy.has(*third, out=row)
    gpu = healthy.spark("gpu")["gpu"]
    assert [command for command in healthy.asked if command != REPORT] == [QUERY, second, third]
    assert (gpu["state"], gpu["driver"], gpu["devices"][0]["addressing_mode"]) == ("ok", "550.54", None)


def test_an_unknown_field_that_we_did_not_ask_ends_the_question(healthy, recorded):
    healthy.has(*QUERY, rc=2, out=recorded("nvidia_smi_csv__driver_580.159.04__h200_2__unknown_field.txt"))
    healthy.has(*REPORT, rc=2)
    gpu = healthy.spark("gpu")["gpu"]
    assert sorted(healthy.asked) == sorted([QUERY, REPORT])
    assert (gpu["state"], gpu["devices"]) == ("degraded", [])
    assert "nosuchfield" in gpu["reason"]


def test_case_07_mig_asks_for_the_list(healthy, recorded):
    healthy.has(*QUERY, out=f"{HEADER}\n0, NVIDIA H200, GPU-0, 00000000:83:00.0, 590.48.01, 96, 143771 MiB, 9.0, None, None, Enabled\n")
    healthy.has("nvidia-smi", "-L", out=recorded("nvidia_smi_list__driver_590.48.01__h200__mig.txt"))
    gpu = healthy.spark("gpu")["gpu"]
    assert healthy.asked[-1] == ["nvidia-smi", "-L"]
    assert (len(gpu["devices"]), gpu["devices"][0]["mig"]["mode"], len(gpu["devices"][0]["mig"]["devices"])) == (1, "Enabled", 5)
    assert {device["uuid"] for device in gpu["devices"][0]["mig"]["devices"]} == {None}
    gpu = healthy.spark("gpu", redact=False)["gpu"]
    assert gpu["devices"][0]["mig"]["devices"][4]["uuid"] == "MIG-00000004-0000-0000-0000-000000000004"


def test_a_list_without_mig_devices_is_told(healthy):
    healthy.has(*QUERY, out=f"{HEADER}\n0, NVIDIA H200, GPU-0, 00000000:83:00.0, 590.48.01, 96, 143771 MiB, 9.0, None, None, Enabled\n")
    healthy.has("nvidia-smi", "-L", out="Something new\n")
    assert healthy.spark("gpu")["unread"] == [
        {"subset": "gpu", "source": "nvidia-smi -L", "reason": "not_understood", "evidence": "Something new"}
    ]


def test_case_11_a_broken_report_costs_nothing_that_the_query_tells(healthy, recorded):
    healthy.has(*REPORT, out=recorded("nvidia_smi_xml__dtd_12__rtxa6000__malformed.txt"))
    healthy.has(*QUERY, out=f"{HEADER}\n0, NVIDIA RTX A6000, GPU-0, 00000000:01:00.0, 535.54, 94.02, 49140 MiB, 8.6, None, None, [N/A]\n")
    gpu = healthy.spark("gpu")["gpu"]
    assert (gpu["state"], gpu["devices"][0]["name"], gpu["devices"][0]["bus_id"]) == ("ok", "NVIDIA RTX A6000", "00000000:01:00.0")
    assert gpu["devices"][0]["power_watts"] == 28.11
    # The document itself in the place of the rows makes no row, and the report stands in.
    healthy.has(*QUERY, out=recorded("nvidia_smi_xml__dtd_12__rtxa6000__malformed.txt"))
    facts = healthy.spark("gpu")
    assert [device["name"] for device in facts["gpu"]["devices"]] == ["NVIDIA RTX A6000"]
    assert "nvidia-smi --query-gpu" in [entry["source"] for entry in facts["unread"]]


def test_a_report_that_cannot_be_read_is_told(healthy):
    healthy.has(*REPORT, out="Something new\n")
    facts = healthy.spark("gpu")
    assert (facts["gpu"]["state"], facts["gpu"]["cuda_version"], len(facts["gpu"]["devices"])) == ("ok", None, 1)
    assert facts["unread"] == [{"subset": "gpu", "source": "nvidia-smi -q -x", "reason": "not_understood", "evidence": "Something new"}]


def test_case_13_no_transceiver_is_read(healthy, recorded):
    healthy.has("ethtool", "-m", "enp1s0f1np1", out=recorded("ethtool_m__fw_28.45.4028__gb10__dac.txt"))
    devices = healthy.spark()["rdma"]["devices"]
    assert [device["reason"] for device in devices if device["state"] == "ACTIVE"] == [None, None]
    assert not [command for command in healthy.asked if command[0] in ("ethtool", "mstflint", "mlxlink", "mst", "lspci")]


def test_driver_mismatch(healthy, recorded):
    healthy.tree.write("proc/driver/nvidia/version", recorded("proc_driver_nvidia_version__driver_580.159.04__h200.txt"))
    said = recorded("nvidia_smi__library_570.124__unknown_gpu__version_mismatch.txt")
    healthy.has(*QUERY, rc=18, out=said)
    healthy.has(*REPORT, rc=18, out=said)
    facts = healthy.spark()
    gpu = facts["gpu"]
    assert (gpu["state"], gpu["driver"], gpu["library_version"], gpu["devices"]) == ("driver_mismatch", "580.159.04", "570.124", [])
    assert gpu["module_version"] == "580.159.04"
    assert facts["platform"]["is_spark"] is False
    assert facts["unread"] == []


def test_no_card_runs_no_verbs_tool(node):
    node.has("ibv_devinfo", rc=255, err="No IB devices found\n")
    assert node.spark("rdma")["rdma"]["state"] == "no_device"
    assert node.asked == []


def test_without_ibv_devinfo_active_mtu_is_null(healthy):
    del healthy.tools["ibv_devinfo"]
    facts = healthy.spark("rdma")
    device = facts["rdma"]["devices"][1]
    assert (device["active_mtu"], device["max_mtu"], device["expected_active_mtu"]) == (None, None, 4096)
    assert facts["unread"] == []


@pytest.mark.parametrize(
    "rc, out, err, reason, evidence",
    [
        (1, "", "Failed to open device\n", "failed", "Failed to open device"),
        (1, "", "libibverbs: Permission denied\n", "denied", "libibverbs: Permission denied"),
        (3, "", "", "failed", "It ended with 3."),
        (0, "something else\n", "", "not_understood", "something else"),
        (
            0, "hca_id: rocep1s0f0\n", "", "not_understood",
            "It tells no active_mtu of rocep1s0f0 port 1, rocep1s0f1 port 1, roceP2p1s0f0 port 1, roceP2p1s0f1 port 1.",
        ),
    ],
)
def test_verbs_that_cannot_be_read_are_told(healthy, rc, out, err, reason, evidence):
    healthy.has("ibv_devinfo", rc=rc, out=out, err=err)
    facts = healthy.spark("rdma")
    assert facts["unread"] == [{"subset": "rdma", "source": "ibv_devinfo", "reason": reason, "evidence": evidence}]
    assert facts["rdma"]["devices"][1]["active_mtu"] is None


@pytest.mark.parametrize("limit", [10, 3])
def test_tools_that_hang_are_named_and_the_rest_is_whole(healthy, limit):
    healthy.limit = str(limit)
    whole = healthy.spark(time_limit=limit)
    healthy.has("ibv_devinfo", rc=124)
    healthy.has(*FIRMWARE[0], rc=124)
    facts = healthy.spark(time_limit=limit)
    assert facts["unread"] == [
        {"subset": "rdma", "source": "ibv_devinfo", "reason": "late", "evidence": f"ibv_devinfo did not end within {limit} s and was stopped"},
        {
            "subset": "platform", "source": "fwupdmgr get-devices", "reason": "late",
            "evidence": f"fwupdmgr get-devices --json did not end within {limit} s and was stopped",
        },
    ]
    assert facts["rdma"]["devices"][1]["active_mtu"] is None
    for subset in ("gpu", "kernel", "memory", "toolchain", "services"):
        assert facts[subset] == whole[subset]
    assert facts["platform"]["interfaces"] == whole["platform"]["interfaces"]


def test_nvidia_smi_that_hangs(healthy):
    healthy.has(*QUERY, rc=124)
    healthy.has(*REPORT, rc=124)
    facts = healthy.spark("gpu")
    assert (facts["gpu"]["state"], facts["gpu"]["devices"]) == ("degraded", [])
    assert [(entry["source"], entry["reason"]) for entry in facts["unread"]] == [("nvidia-smi --query-gpu", "late"), ("nvidia-smi -q -x", "late")]


@pytest.mark.parametrize("out", ["Object unknown", '{"a": 1}', "[" * 100000])
def test_ip_that_cannot_be_read_falls_back_to_sysfs(healthy, out):
    healthy.has(*ADDRESSES, out=out)
    facts = healthy.spark("platform", "rdma")
    interfaces = facts["platform"]["interfaces"]
    assert "enP2p1s0f1np1" in [interface["name"] for interface in interfaces]
    assert all(interface["addresses"] == [] for interface in interfaces)
    assert [(entry["subset"], entry["source"], entry["reason"]) for entry in facts["unread"]] == [
        ("rdma", "ip -j address", "not_understood"), ("platform", "ip -j address", "not_understood"),
    ]


def test_a_tool_that_cannot_be_run(healthy):
    healthy.answers[("ibv_devinfo",)] = OSError(8, "Exec format error")
    del healthy.tools["timeout"]
    assert healthy.spark("rdma")["unread"] == [
        {"subset": "rdma", "source": "ibv_devinfo", "reason": "failed", "evidence": "/usr/bin/ibv_devinfo cannot be run: Exec format error"}
    ]


def test_names_are_resolved_each_by_itself(healthy):
    healthy.has("getent", "ahostsv4", "spark-8", out="192.168.100.11  STREAM spark-8\n192.168.100.11  DGRAM\n")
    healthy.has("getent", "ahostsv4", "spark-9", rc=2)
    healthy.has("getent", "ahostsv4", "spark-0", rc=124)
    facts = healthy.spark("platform", resolve=["spark-8", "spark-9", "spark-0", "spark-8", "-x;"])
    assert facts["platform"]["names"] == {"spark-8": ["192.168.100.11"], "spark-9": [], "spark-0": None, "-x;": None}
    assert [(entry["source"], entry["reason"]) for entry in facts["unread"]] == [("getent ahostsv4 spark-0", "late")]


def test_nvcc_runs_only_where_no_file_tells(healthy, recorded):
    healthy.tree.write("usr/local/cuda-13.0/bin/nvcc", "")
    healthy.has("nvcc", "--version", out=recorded("nvcc_version__cuda_13.0.88__h200.txt"))
    toolchain = healthy.spark("toolchain")["toolchain"]
    assert healthy.asked == [["nvcc", "--version"]]
    assert (toolchain["cuda"], toolchain["nvcc"]) == ([{"path": "/usr/local/cuda-13.0", "version": None}], "13.0.88")
    healthy.asked.clear()
    healthy.tree.write("usr/local/cuda-13.0/version.json", '{"cuda": {"version": "13.0.2"}, "cuda_nvcc": {"version": "13.0.88"}}')
    toolchain = healthy.spark("toolchain")["toolchain"]
    assert healthy.asked == []
    assert (toolchain["cuda"], toolchain["nvcc"]) == ([{"path": "/usr/local/cuda-13.0", "version": "13.0.2"}], "13.0.88")


@pytest.mark.parametrize("text, proven, told", [('{"release": {"key": "x"}}', {"release": {"key": "x"}}, 0), ("{", {}, 1), ("[]", {}, 1)])
def test_what_was_proven(node, text, proven, told):
    node.tree.write("etc/ansible/facts.d/gb10.fact", text)
    facts = node.gather(gather_subset=["!all", "!min"])["ansible_facts"]["spark"]
    assert facts["proven"] == proven
    assert [(entry["subset"], entry["reason"]) for entry in facts["unread"]] == [("proven", "not_understood")] * told


def test_an_unread_entry_is_told_once_and_short():
    unread = _gather.Unread()
    for _time in range(2):
        unread.of("gpu")("nvidia-smi", "failed", " x" * 500)
    assert [len(entry["evidence"]) for entry in unread.entries] == [_gather.LONGEST_EVIDENCE]


@pytest.mark.parametrize(
    "argv, words",
    [
        (tuple(QUERY), "nvidia-smi --query-gpu"),
        (tuple(REPORT), "nvidia-smi -q -x"),
        (tuple(UNITS), "systemctl show"),
        (("/usr/local/cuda-13.0/bin/nvcc", "--version"), "nvcc --version"),
        (_platform.PROBES["addresses"], "ip -j address"),
        (("ibv_devinfo",), "ibv_devinfo"),
    ],
)
def test_commands_are_named_by_the_words_that_count(argv, words):
    assert _gather.describe_command(argv) == words


def test_the_node_itself_answers():
    machine = _gather.Machine()
    assert machine.uname().sysname == "Linux"
    assert machine.cpus() > 0
    assert machine.python().startswith("3.")
    assert machine.synchronized() in (True, False, None)
    assert machine.now() > 1.7e9
    assert machine.space("/")["total_bytes"] > 0
    assert "PATH" in machine.variables()
