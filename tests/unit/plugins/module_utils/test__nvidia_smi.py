# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import types

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _nvidia_smi as smi
from hypothesis import given, settings
from hypothesis import strategies as st

NO_MODULE = {"version": None, "gsp_firmware": {}}
TOTAL = 127600000 * 1024


def answer(*rows: str) -> str:
    """A --query-gpu answer of our own fields: rows are index, bus id, memory, recovery action, then changed cells."""
    header = ", ".join(f"{field} [MiB]" if field == "memory.total" else field for field in smi.QUERY_FIELDS)
    return "\n".join((header, *rows)) + "\n"


GB10 = "0, NVIDIA GB10, GPU-1, 0000000F:01:00.0, 580.142, 9A.0B.25.00.00, [N/A], 12.1, ATS, None, [N/A]"


def ada(index: int, bus: str, action: str) -> str:
    return f"{index}, NVIDIA RTX 4000 Ada, GPU-{index}, 00000000:{bus}:00.0, 580.95.05, 95.04, 20475 MiB, 8.9, None, {action}, [N/A]"


def summarize(rc, stdout, stderr="", fields=smi.QUERY_FIELDS, module=None, mig=None, report=None):
    return smi.summarize(rc, stdout, stderr, fields, module or NO_MODULE, TOTAL, mig, report)


def test_case_01_gb10_memory_is_unified_and_labelled(recorded):
    fields = ("index", "name", "memory.total", "memory.used", "memory.free")
    rows = smi.parse_query(recorded("nvidia_smi_csv__driver_580__gb10__memory_na.txt"), fields).rows
    assert [smi.cell_value(rows[0][field]) for field in fields] == ["0", "NVIDIA GB10", None, None, None]
    gpu = summarize(0, recorded("nvidia_smi_csv__driver_580__gb10__memory_na.txt"), fields=fields)
    device = gpu["devices"][0]
    assert len(gpu["devices"]) == 1
    assert gpu["state"] == "ok"
    assert (device["memory_total_bytes"], device["memory_rule"]) == (TOTAL, "unified")
    assert "MemTotal of /proc/meminfo" in device["memory_reason"]


def test_case_01b_units_in_header_and_cells(recorded):
    fields = ("memory.total", "memory.used", "memory.free", "utilization.gpu", "power.draw", "temperature.gpu")
    query = smi.parse_query(recorded("nvidia_smi_csv__driver_580__gb10__header_units.txt"), fields)
    assert len(query.rows) == 1
    assert query.messages == []
    assert [smi.cell_value(query.rows[0][field]) for field in fields] == [None, None, None, "0", "11.17", "35"]


def test_case_02_warning_before_the_rows_is_tied_to_the_bus_id(recorded):
    fields = ("name", "memory.total")
    text = recorded("nvidia_smi_csv__driver_unknown__v100__inforom_warning.txt")
    query = smi.parse_query(text, fields)
    assert query.rows == [{"name": "Tesla V100-SXM2-16GB", "memory.total": "16160"}]
    assert [smi.normal_bus_id(message) for message in query.messages] == ["00000000:00:04.0"]
    row = "0, Tesla V100-SXM2-16GB, GPU-1, 00000000:00:04.0, 450.80, 88.00, 16160 MiB, 7.0, None, None, [N/A]"
    for rc in (0, 14):
        gpu = summarize(rc, text.splitlines()[0] + "\n" + answer(row))
        assert gpu["state"] == "degraded"
        assert gpu["devices"][0]["warnings"] == ["WARNING: infoROM is corrupted at gpu 0000:00:04.0"]
        assert gpu["devices"][0]["memory_total_bytes"] == 16160 * 1024 * 1024
        assert "infoROM is corrupted" in gpu["reason"]


def test_case_02b_warning_after_a_table_makes_no_rows(recorded):
    text = recorded("nvidia_smi_table__driver_unknown__unknown_gpu__inforom_warning.txt")
    query = smi.parse_query(text, ("name", "memory.total"))
    assert query.rows == []
    assert smi.normal_bus_id(query.messages[-1]) == "00000000:0B:00.0"
    row = "0, Tesla V100-SXM2-16GB, GPU-1, 00000000:0B:00.0, 450.80, 88.00, 16160 MiB, 7.0, None, None, [N/A]"
    gpu = summarize(14, answer(row) + query.messages[-1] + "\n")
    assert gpu["state"] == "degraded"
    assert gpu["devices"][0]["warnings"] == [query.messages[-1]]


def test_exit_14_with_rows_and_no_word_is_degraded():
    gpu = summarize(14, answer(GB10))
    assert (gpu["state"], len(gpu["devices"])) == ("degraded", 1)
    assert "ended with 14" in gpu["reason"]


def test_a_warning_with_commas_is_no_row():
    gpu = summarize(0, "WARNING: " + "a, " * (len(smi.QUERY_FIELDS) - 1) + "b\n" + answer(GB10))
    assert len(gpu["devices"]) == 1
    assert len(gpu["warnings"]) == 1


def test_case_04_recovery_action_decides_and_not_the_other_columns(recorded):
    table = recorded("nvidia_smi_table__driver_unknown__rtx4000ada_15__fan_err.txt")
    assert smi.parse_query(table, smi.QUERY_FIELDS).rows == []
    gpu = summarize(0, answer(ada(13, "C9", "None"), ada(14, "CC", "Reset")))
    assert gpu["state"] == "needs_reset"
    assert "GPU 14 (00000000:CC:00.0) asks for a reset" in gpu["reason"]
    assert [device["recovery_action"] for device in gpu["devices"]] == ["None", "Reset"]
    # A cell of the healthy GPU that cannot be read is no reset.
    gpu = summarize(0, answer(ada(13, "C9", "None").replace("95.04", "ERR!")))
    assert gpu["state"] == "degraded"
    assert gpu["devices"][0]["vbios"] is None
    assert gpu["devices"][0]["warnings"] == ["vbios_version: ERR!"]


@pytest.mark.parametrize(
    "action, state, words",
    [
        ("None", "ok", None),
        ("[N/A]", "ok", None),
        ("Reboot", "needs_reset", "asks for a reboot"),
        ("Drain and Reset", "needs_reset", "asks for a reset"),
        ("Drain P2P", "degraded", "recovery action 'Drain P2P'"),
        ("[GPU requires reset]", "needs_reset", "asks for a reset"),
        ("[GPU is lost]", "needs_reset", "asks for a reboot"),
    ],
)
def test_recovery_actions(action, state, words):
    gpu = summarize(0, answer(ada(0, "C9", action)))
    assert gpu["state"] == state
    assert words is None and gpu["reason"] is None or words in gpu["reason"]


def test_needs_reset_outranks_degraded():
    gpu = summarize(0, answer(ada(0, "C9", "Drain P2P"), ada(1, "CC", "Reset"), ada(2, "CD", "None")))
    assert gpu["state"] == "needs_reset"
    assert [device["health"] for device in gpu["devices"]] == ["degraded", "needs_reset", "ok"]
    assert "Drain P2P" in gpu["devices"][0]["health_reason"] and gpu["devices"][2]["health_reason"] is None


def test_case_06_library_mismatch_means_reboot(recorded):
    text = recorded("nvidia_smi__library_570.124__unknown_gpu__version_mismatch.txt")
    gpu = summarize(18, text, module={"version": "570.86.10", "gsp_firmware": {}})
    assert gpu["state"] == "driver_mismatch"
    assert gpu["devices"] == []
    assert gpu["library_version"] == "570.124"
    assert gpu["driver"] == "570.86.10"
    assert "Reboot the node; do not reinstall" in gpu["reason"]
    assert summarize(1, text)["state"] == "driver_mismatch"


def test_case_07_mig(recorded):
    text = recorded("nvidia_smi_csv__driver_590.48.01__h200__mig.txt")
    fields = [cell.split(" [")[0] for cell in text.splitlines()[0].split(", ")]
    mig = smi.parse_mig_list(recorded("nvidia_smi_list__driver_590.48.01__h200__mig.txt"))
    row = smi.parse_query(text, fields).rows[0]
    assert smi.cell_value(row["utilization.gpu"]) is None
    assert smi.cell_value(row["platform.chassis_serial_number"]) is None
    gpu = summarize(0, text, fields=fields, mig=mig)
    assert len(gpu["devices"]) == 1
    device = gpu["devices"][0]
    assert (device["memory_total_bytes"], device["memory_rule"]) == (143771 * 1024 * 1024, "dedicated")
    assert device["mig"]["mode"] == "Enabled"
    assert [entry["profile"] for entry in device["mig"]["devices"]] == ["1c.3g.71gb", "2c.3g.71gb", "2g.35gb", "1g.18gb", "1g.18gb"]
    assert device["mig"]["devices"][4] == {"index": 4, "profile": "1g.18gb", "uuid": "MIG-00000004-0000-0000-0000-000000000004"}
    assert gpu["state"] == "ok"


@pytest.mark.parametrize(
    "name", ["nvidia_smi_topo__driver_590.48.01__h200__escapes.txt", "nvidia_smi_topo__driver_580.159.04__h200_2.txt"]
)
def test_case_07c_escapes_go(recorded, name):
    text = recorded(name)
    assert "\x1b" in text
    plain = smi.strip_escapes(text)
    assert "\x1b" not in plain
    assert plain.splitlines()[0].split("\t")[1] == "GPU0"
    assert smi.parse_query("\x1b[4mname\x1b[0m, index\n\x1b[1mA\x1b[0m, 0\n", ("name", "index")).rows == [{"name": "A", "index": "0"}]


def test_case_09_vgpu_clock_is_null_and_two_rows_are_two_gpus(recorded):
    fields = ("clocks.sm", "memory.total", "name")
    rows = smi.parse_query(recorded("nvidia_smi_csv__driver_unknown__h100l_vgpu__clock_na.txt"), fields).rows
    assert [[smi.cell_value(row[field]) for field in fields] for row in rows] == [[None, "24576", "NVIDIA H100L-2-24C"]]
    rows = smi.parse_query(recorded("nvidia_smi_csv__driver_unknown__rtxa6000_2__clock.txt"), fields).rows
    assert [smi.cell_value(row["clocks.sm"]) for row in rows] == ["2100", "2100"]


def test_h200_capture(recorded, tree):
    text = recorded("nvidia_smi_csv__driver_580.159.04__h200_2.txt")
    fields = [cell.split(" [")[0] for cell in text.splitlines()[0].split(", ")]
    for number in (6, 7):
        tree.write(
            f"proc/driver/nvidia/gpus/0000:00:0{number}.0/information",
            recorded("proc_driver_nvidia_gpu__driver_580.159.04__h200.txt"),
        )
    tree.write("proc/driver/nvidia/version", recorded("proc_driver_nvidia_version__driver_580.159.04__h200.txt"))
    module = smi.read_kernel_module(tree.root)
    assert module["version"] == "580.159.04"
    report = smi.parse_report(recorded("nvidia_smi_xml__driver_580.159.04__h200_2.txt"))
    assert report.broken is None
    gpu = summarize(0, text, fields=fields, module=module, report=report)
    assert (gpu["driver"], gpu["library_version"], gpu["state"], gpu["reason"]) == ("580.159.04", "580.159.04", "ok", None)
    assert [device["bus_id"] for device in gpu["devices"]] == ["00000000:00:06.0", "00000000:00:07.0"]
    assert gpu["devices"][1] == {
        "index": 1,
        "name": "NVIDIA H200",
        "uuid": "GPU-11111111-2222-3333-4444-555555555502",
        "bus_id": "00000000:00:07.0",
        "compute_capability": "9.0",
        "vbios": "96.00.A5.00.1A",
        "gsp_firmware": "580.159.04",
        "inforom": {"image": "G520.0282.02.02", "oem": "2.1", "ecc": "7.16", "power": None},
        "memory_total_bytes": 143771 * 1024 * 1024,
        "memory_rule": "dedicated",
        "memory_reason": None,
        "recovery_action": None,
        "addressing_mode": "None",
        "mig": {"mode": "Disabled", "devices": []},
        "power_watts": 77.8,
        "processes": [],
        "health": "ok",
        "health_reason": None,
        "warnings": [],
    }
    assert gpu["cuda_version"] == "13.0"
    # The report alone tells the same, but for the compute capability, which it has not, and the recovery action, which nobody had asked.
    alone = summarize(124, "", "late", module=module, report=report)
    assert (alone["state"], alone["driver"]) == ("degraded", "580.159.04")
    assert alone["devices"][1] == {**gpu["devices"][1], "compute_capability": None, "recovery_action": "None"}


def test_h200_table_and_unknown_field(recorded):
    assert smi.parse_query(recorded("nvidia_smi_table__driver_580.159.04__h200_2.txt"), smi.QUERY_FIELDS).rows == []
    assert smi.unknown_field(recorded("nvidia_smi_csv__driver_580.159.04__h200_2__unknown_field.txt")) == "nosuchfield"
    assert smi.unknown_field(answer(GB10)) is None


@pytest.mark.parametrize(
    "rc, text, state, words",
    [
        (6, "No devices were found\n", "absent", "sees no GPU"),
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "absent", "module is not loaded"),
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "absent", "library libnvidia-ml.so"),
        (15, "Unable to determine the device handle for GPU: GPU is lost.\n", "needs_reset", "reboot the node"),
        (124, "", "degraded", "did not answer in time"),
        (255, "Something new\n", "degraded", "ended with 255 and said: Something new"),
        (1, "", "degraded", "ended with 1 and said: nothing"),
    ],
)
def test_no_rows(rc, text, state, words):
    gpu = summarize(rc, text)
    assert (gpu["state"], gpu["devices"]) == (state, [])
    assert words in gpu["reason"]
    gpu = summarize(rc, "", text)
    assert gpu["state"] == state


def test_memory_that_is_no_number_and_no_na_is_unknown():
    for cell in ("[Unknown Error]", "plenty"):
        gpu = summarize(0, answer(GB10.replace("580.142, 9A.0B.25.00.00, [N/A]", f"580.142, 9A, {cell}")))
        assert (gpu["devices"][0]["memory_total_bytes"], gpu["devices"][0]["memory_rule"]) == (None, None)
        assert cell.strip("[]") in gpu["devices"][0]["memory_reason"]


def test_fields_that_were_not_asked_are_null():
    gpu = summarize(0, "0, NVIDIA GB10\n", fields=("index", "name"))
    device = gpu["devices"][0]
    assert (device["uuid"], device["bus_id"], device["mig"]["mode"], device["recovery_action"]) == (None, None, None, None)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("000f:01:00.0", "0000000F:01:00.0"),
        ("at gpu 0000:0B:00.0", "00000000:0B:00.0"),
        ("0000000F:01:00.0", "0000000F:01:00.0"),
        ("no address", None),
        ("", None),
    ],
)
def test_bus_ids(text, expected):
    assert smi.normal_bus_id(text) == expected


def test_no_driver_in_proc(tree):
    assert smi.read_kernel_module(tree.root) == {"version": None, "gsp_firmware": {}}
    assert smi.absent("not there", smi.read_kernel_module(tree.root))["state"] == "absent"


def test_processes_without_folder_and_arguments(recorded):
    report = smi.parse_report(recorded("nvidia_smi_xml__driver_580.142__gb10__processes.txt"))
    assert (report.driver, report.cuda, report.broken) == ("580.142", "13.0", None)
    gpu = summarize(0, answer(GB10), report=report)
    assert gpu["devices"][0]["processes"] == [
        {"pid": 4242, "name": "python3", "used_memory_bytes": 61440 * 1024 * 1024},
        {"pid": 4300, "name": "VLLM::EngineCore", "used_memory_bytes": None},
    ]
    # The firmware of the GPU's system processor comes from the report where /proc has it not.
    assert gpu["devices"][0]["gsp_firmware"] == "580.142"
    assert gpu["devices"][0]["power_watts"] == 4.02


@pytest.mark.parametrize("row", [{}, {"pid": "x"}, {"pid": "1", "process_name": "[Not Found]"}, {"process_name": "/", "used_memory": "many MiB"}])
def test_processes_that_tell_nothing(row):
    assert smi.describe_processes([row])[0]["name"] is None


def test_case_11_the_report_is_read_around_its_break(recorded):
    text = recorded("nvidia_smi_xml__dtd_12__rtxa6000__malformed.txt")
    report = smi.parse_report(text)
    assert [device["id"] for device in report.devices] == ["00000000:01:00.0"]
    assert report.devices[0]["values"] == {"product_name": "NVIDIA RTX A6000", "gpu_power_readings/power_draw": "28.11 W"}
    assert report.broken is None  # what is broken is not read
    gpu = summarize(124, "", report=report)
    assert (gpu["devices"][0]["name"], gpu["devices"][0]["power_watts"], gpu["devices"][0]["bus_id"]) == ("NVIDIA RTX A6000", 28.11, "00000000:01:00.0")


@pytest.mark.parametrize("group", ["power_readings", "gpu_power_readings"])
@pytest.mark.parametrize("element", ["power_draw", "average_power_draw", "instant_power_draw"])
def test_case_11_power_by_any_of_its_names(group, element):
    report = smi.parse_report(f'<nvidia_smi_log><gpu id="00000000:01:00.0"><{group}><{element}>28.11 W</{element}></{group}></gpu></nvidia_smi_log>')
    assert summarize(0, "", report=report)["devices"][0]["power_watts"] == 28.11


@pytest.mark.parametrize("version", ["cuda_version", "cuda_umd_version"])
def test_the_version_of_cuda_by_any_of_its_names(version):
    assert smi.parse_report(f"<nvidia_smi_log><{version}>13.1</{version}></nvidia_smi_log>").cuda == "13.1"


@pytest.mark.parametrize(
    "text, broken",
    [
        ("<nvidia_smi_log><gpu id='0000:01:00.0'><name>a</name>", "it ends before </nvidia_smi_log>"),
        ("<nvidia_smi_log></b></nvidia_smi_log>", "</b> closes nothing"),
        ("<nvidia_smi_log><a><b>1</a></nvidia_smi_log>", "</a> closes <b>"),
        ("<nvidia_smi_log><a/></nvidia_smi_log>", None),
    ],
)
def test_what_breaks_a_report_is_named(text, broken):
    assert smi.parse_report(text).broken == broken


def test_every_cut_of_a_report_keeps_what_stands_before(recorded):
    text = recorded("nvidia_smi_xml__driver_580.159.04__h200_2.txt")
    for end in range(0, len(text), 997):
        report = smi.parse_report(text[:end])
        assert len(report.devices) == text[:end].count("<gpu id=") - (text[:end].rfind("<gpu id=") > text[:end].rfind(">"))


def gpu_on_pci(tree, address, vendor="0x10de", kind="0x030200"):
    tree.write(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
    tree.write(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")


def test_gpus_are_counted_on_the_bus(tree):
    assert smi.count_gpus(tree.root) is None
    gpu_on_pci(tree, "0000:00:1f.0", vendor="0x1a03", kind="0x030000")
    assert smi.count_gpus(tree.root) == 0
    gpu_on_pci(tree, "000f:01:00.0", kind="0x030000")
    gpu_on_pci(tree, "0000:00:06.0")
    gpu_on_pci(tree, "0000:00:06.1", kind="0x040300")
    assert smi.count_gpus(tree.root) == 2


PIECES = (
    "<nvidia_smi_log>", "</nvidia_smi_log>", '<gpu id="0000000F:01:00.0">', "<gpu>", "</gpu>", "<processes>", "<process_info>", "</process_info>", "<pid>", "1",
    "<supported_clocks>", "<fb_memory_usage>", "<total>", "</total>", "1 MiB", "<gpu_power_readings><power_draw>", "W", "9" * 5000, "1e999 MiB", "\u0663",
    "&amp;", "<a/>", "<", ">", "\n", ",", ", ", " [MiB]", "[N/A]", "ERR!", "[GPU is lost]", "GPU 0: a", "  MIG 1g Device  0: (UUID: b)", "WARNING: x",
    'Field "index" is not a valid field to query', "Enabled", "0000:01:00.0", "\x1b[4m", "NVML library version: ", "None",
)
TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=40).map("".join),
    st.lists(st.sampled_from(PIECES[10:]), min_size=11, max_size=11).map(", ".join),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(query=TEXTS, report=TEXTS, listed=TEXTS, error=TEXTS, status=st.sampled_from((0, 0, 0, 2, 6, 14, 18, 124, 126)))
def test_no_text_makes_a_parser_raise_and_nothing_is_lost_in_silence(query, report, listed, error, status):
    def said(text):
        return types.SimpleNamespace(status=status, output=text, error=error, seconds=0.0)

    unread = []
    answers = {"gpu_query": said(query), "gpu_report": said(report)}
    gpu = smi.read_gpu("/nowhere", answers, lambda argv: said(listed), lambda *entry: unread.append(entry))
    json.dumps(gpu)
    assert gpu["state"] in ("ok", "absent", "driver_mismatch", "needs_reset", "degraded")
    assert gpu["state"] == "ok" or gpu["reason"]
    # Every line of the answer is a row, a message, or told.
    if status == 0 and query.strip() and not gpu["devices"]:
        assert gpu["warnings"] or "nvidia-smi --query-gpu" in [entry[0] for entry in unread]
    if status == 0 and not smi.parse_report(report).devices:
        assert "nvidia-smi -q -x" in [entry[0] for entry in unread] or "No devices were found" in report
