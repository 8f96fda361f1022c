# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's hardware and its tools answer, worked out from its state. Pure: state in, file texts out.

The stand-in tools only pick from these files, so that they start as fast as `cat`.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from xml.sax.saxutils import escape

from . import layout

NOT_KNOWN = "[N/A]"
FAILURES = {
    "driver_mismatch": (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library}\n"),
    "no_module": (
        9,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n\n",
    ),
    "no_device": (6, "No devices were found\n"),
}
# Every field that nvidia-smi --help-query-gpu names, with its other names: one a line.
FIELD_NAMES = Path(__file__).with_name("gpu_fields.txt")


def unit_of(field: str) -> str:
    """The unit that nvidia-smi writes behind a field's name and its values."""
    if field.startswith(("memory.", "protected_memory.", "bar1.")):
        return "MiB"
    if field.startswith("utilization."):
        return "%"
    if field == "fan.speed":
        return "%"
    if field.startswith("clocks.") and not field.startswith("clocks_"):
        return "MHz"
    if ("power." in field and field.endswith(("draw", "limit", "average", "instant"))) or field in ("power.draw", "power.limit"):
        return "W"
    if field.startswith("clocks_event_reasons_counters."):
        return "us"
    return ""


def recovery_action(gpu: dict) -> str:
    return "Reset" if gpu["state"] == "needs_reset" else "None"


def gpu_values(gpu: dict) -> dict[str, str]:
    """Values of the query fields that a GB10 knows; it answers [N/A] for all others."""
    domain, bus, rest = gpu["bus_id"].split(":")
    return {
        "driver_version": gpu["driver"],
        "count": "1",
        "name": gpu["name"],
        "uuid": gpu["uuid"],
        "pci.bus_id": gpu["bus_id"],
        "pci.domain": f"0x{domain[4:]}",
        "pci.bus": f"0x{bus}",
        "pci.device": f"0x{rest.split('.')[0]}",
        "pci.device_id": "0x2E1210DE",
        "pci.sub_device_id": "0x000010DE",
        "pcie.link.gen.current": "1",
        "pcie.link.gen.max": "1",
        "pcie.link.width.current": "1",
        "pcie.link.width.max": "1",
        "index": "0",
        "display_attached": "No",
        "display_active": "Disabled",
        "persistence_mode": "Enabled",
        "addressing_mode": "ATS",
        "accounting.mode": "Disabled",
        "accounting.buffer_size": "4000",
        "vbios_version": gpu["vbios"],
        "gpu_recovery_action": recovery_action(gpu),
        "pstate": "P8" if gpu["utilization"] == 0 else "P0",
        "clocks_event_reasons.supported": "0x00000000000001FF",
        "clocks_event_reasons.active": "0x0000000000000001" if gpu["utilization"] == 0 else "0x0000000000000000",
        "clocks_event_reasons.gpu_idle": "Active" if gpu["utilization"] == 0 else "Not Active",
        "clocks_event_reasons.sw_power_cap": "Not Active",
        "clocks_event_reasons.hw_slowdown": "Not Active",
        "clocks_event_reasons.hw_thermal_slowdown": "Not Active",
        "clocks_event_reasons.hw_power_brake_slowdown": "Not Active",
        "clocks_event_reasons.sw_thermal_slowdown": "Not Active",
        "compute_mode": "Default",
        "compute_cap": gpu["compute_cap"],
        "utilization.gpu": str(gpu["utilization"]),
        "utilization.memory": "0",
        "temperature.gpu": str(gpu["temperature"]),
        "power.draw": f"{gpu['power']:.2f}",
        "power.draw.average": f"{gpu['power']:.2f}",
        "power.draw.instant": f"{gpu['power']:.2f}",
        "clocks.current.graphics": str(gpu["sm_clock"]),
        "clocks.current.sm": str(gpu["sm_clock"]),
        "clocks.max.graphics": "3003",
        "clocks.max.sm": "3003",
        "gsp.mode.current": "Enabled",
        "gsp.mode.default": "Enabled",
    }


def field_names(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def gpu_fields(gpu: dict, names: list[list[str]]) -> str:
    """A shell function `field NAME` that sets title, value and unit, and fails for a name that nvidia-smi does not know."""
    values = gpu_values(gpu)
    arms = []
    for field, *others in names:
        unit = unit_of(field)
        title = f"{field} [{unit}]" if unit else field
        value = values.get(field, NOT_KNOWN)
        if value == NOT_KNOWN:
            unit = ""
        arms.append(f"{'|'.join([field, *others])}) title={shlex.quote(title)} value={shlex.quote(value)} unit={shlex.quote(unit)} ;;")
    arms.append("timestamp) title=timestamp value=$(date '+%Y/%m/%d %H:%M:%S.000') unit= ;;")
    return "field() {\ncase $1 in\n" + "\n".join(arms) + "\n*) return 1 ;;\nesac\n}\n"


def gpu_report(gpu: dict) -> list[tuple]:
    """`nvidia-smi -q` as (label, XML element, value or list of the same)."""
    idle = gpu["utilization"] == 0
    reasons = [("Idle", "gpu_idle", "Active" if idle else "Not Active")]
    reasons += [
        (label, element, "Not Active") for label, element in (
            ("SW Power Cap", "sw_power_cap"), ("HW Slowdown", "hw_slowdown"), ("Sync Boost", "sync_boost"), ("SW Thermal Slowdown", "sw_thermal_slowdown"),
        )
    ]
    none = [("Total", "total", "N/A"), ("Reserved", "reserved", "N/A"), ("Used", "used", "N/A"), ("Free", "free", "N/A")]
    watts = f"{gpu['power']:.2f} W"
    return [
        ("Product Name", "product_name", gpu["name"]),
        ("Product Brand", "product_brand", "NVIDIA"),
        ("Product Architecture", "product_architecture", "Blackwell"),
        ("Display Attached", "display_attached", "No"),
        ("Display Active", "display_active", "Disabled"),
        ("Persistence Mode", "persistence_mode", "Enabled"),
        ("Addressing Mode", "addressing_mode", "ATS"),
        ("MIG Mode", "mig_mode", [("Current", "current_mig", "N/A"), ("Pending", "pending_mig", "N/A")]),
        ("Accounting Mode", "accounting_mode", "Disabled"),
        ("Accounting Mode Buffer Size", "accounting_mode_buffer_size", "4000"),
        ("Serial Number", "serial", "N/A"),
        ("GPU UUID", "uuid", gpu["uuid"]),
        ("Minor Number", "minor_number", "0"),
        ("VBIOS Version", "vbios_version", gpu["vbios"]),
        ("MultiGPU Board", "multigpu_board", "No"),
        ("GPU Part Number", "gpu_part_number", "2E12-000-A1"),
        ("Inforom Version", "inforom_version", [
            ("Image Version", "img_version", "N/A"), ("OEM Object", "oem_object", "N/A"), ("ECC Object", "ecc_object", "N/A"),
            ("Power Management Object", "pwr_object", "N/A"),
        ]),
        ("GPU C2C Mode", "c2c_mode", "N/A"),
        ("GPU Recovery Action", "gpu_recovery_action", recovery_action(gpu)),
        ("GSP Firmware Version", "gsp_firmware_version", gpu["gsp_firmware"]),
        ("PCI", "pci", [
            ("Bus", "pci_bus", f"0x{gpu['bus_id'].split(':')[1]}"),
            ("Device", "pci_device", f"0x{gpu['bus_id'].split(':')[2].split('.')[0]}"),
            ("Domain", "pci_domain", f"0x{gpu['bus_id'][4:8]}"),
            ("Device Id", "pci_device_id", "0x2E1210DE"),
            ("Bus Id", "pci_bus_id", gpu["bus_id"]),
        ]),
        ("Fan Speed", "fan_speed", "N/A"),
        ("Performance State", "performance_state", "P8" if idle else "P0"),
        ("Clocks Event Reasons", "clocks_event_reasons", [(label, f"clocks_event_reason_{element}", value) for label, element, value in reasons]),
        ("FB Memory Usage", "fb_memory_usage", none),
        ("BAR1 Memory Usage", "bar1_memory_usage", [entry for entry in none if entry[0] != "Reserved"]),
        ("Compute Mode", "compute_mode", "Default"),
        ("Utilization", "utilization", [("GPU", "gpu_util", f"{gpu['utilization']} %"), ("Memory", "memory_util", "0 %")]),
        ("ECC Mode", "ecc_mode", [("Current", "current_ecc", "N/A"), ("Pending", "pending_ecc", "N/A")]),
        ("Temperature", "temperature", [("GPU Current Temp", "gpu_temp", f"{gpu['temperature']} C"), ("Memory Current Temp", "memory_temp", "N/A")]),
        ("GPU Power Readings", "gpu_power_readings", [
            ("Average Power Draw", "average_power_draw", watts), ("Instantaneous Power Draw", "instant_power_draw", watts),
            ("Current Power Limit", "current_power_limit", "N/A"), ("Default Power Limit", "default_power_limit", "N/A"),
        ]),
        ("Clocks", "clocks", [
            ("Graphics", "graphics_clock", f"{gpu['sm_clock']} MHz"), ("SM", "sm_clock", f"{gpu['sm_clock']} MHz"), ("Memory", "mem_clock", "N/A"),
        ]),
        ("Max Clocks", "max_clocks", [
            ("Graphics", "graphics_clock", "3003 MHz"), ("SM", "sm_clock", "3003 MHz"), ("Memory", "mem_clock", "N/A"),
        ]),
        ("Processes", "processes", [] if gpu["processes"] else "None"),
    ]


def process_rows(process: dict) -> list[tuple]:
    return [
        ("GPU instance ID", "gpu_instance_id", "N/A"), ("Compute instance ID", "compute_instance_id", "N/A"),
        ("Process ID", "pid", str(process["pid"])), ("Type", "type", "C"), ("Name", "process_name", process["name"]),
        ("Used GPU Memory", "used_memory", f"{process['used_mib']} MiB"),
    ]


def report_text(gpu: dict) -> str:
    lines = [
        "", "==============NVSMI LOG==============", "",
        f"{'Timestamp':<55}: Mon Nov 30 12:00:00 2026",
        f"{'Driver Version':<55}: {gpu['driver']}",
        f"{'CUDA Version':<55}: {gpu['cuda']}", "",
        f"{'Attached GPUs':<55}: 1",
        f"GPU {gpu['bus_id']}",
    ]

    def add(entries: list[tuple], depth: int) -> None:
        for label, _element, value in entries:
            if isinstance(value, list):
                lines.append("    " * depth + label)
                add(value, depth + 1)
            else:
                lines.append(f"{'    ' * depth + label:<55}: {value}")

    add(gpu_report(gpu), 1)
    for process in gpu["processes"]:
        for label, _element, value in process_rows(process):
            depth = 3 if label in ("Type", "Name", "Used GPU Memory") else 2
            lines.append(f"{'    ' * depth + label:<55}: {value}")
    return "\n".join(lines) + "\n\n"


def report_xml(gpu: dict) -> str:
    lines = [
        '<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', "<nvidia_smi_log>",
        "\t<timestamp>Mon Nov 30 12:00:00 2026</timestamp>", f"\t<driver_version>{gpu['driver']}</driver_version>",
        f"\t<cuda_version>{gpu['cuda']}</cuda_version>", "\t<attached_gpus>1</attached_gpus>", f'\t<gpu id="{gpu["bus_id"]}">',
    ]

    def add(entries: list[tuple], depth: int) -> None:
        for _label, element, value in entries:
            if element == "processes":
                lines.append("\t" * depth + "<processes>")
                for process in gpu["processes"]:
                    add([("", "process_info", process_rows(process))], depth + 1)
                lines.append("\t" * depth + "</processes>")
            elif isinstance(value, list):
                lines.append("\t" * depth + f"<{element}>")
                add(value, depth + 1)
                lines.append("\t" * depth + f"</{element}>")
            else:
                lines.append("\t" * depth + f"<{element}>{escape(value)}</{element}>")

    add(gpu_report(gpu), 2)
    return "\n".join([*lines, "\t</gpu>", "", "</nvidia_smi_log>"]) + "\n"


def gpu_table(gpu: dict) -> str:
    wide = "+-----------------------------------------------------------------------------------------+"
    split = "+-----------------------------------------+------------------------+----------------------+"
    state = "P8" if gpu["utilization"] == 0 else "P0"
    usage = f"{gpu['power']:.0f}W /  N/A"
    return "\n".join([
        "Mon Nov 30 12:00:00 2026       ",
        wide,
        f"| NVIDIA-SMI {gpu['driver']:<22} Driver Version: {gpu['driver']:<14} CUDA Version: {gpu['cuda']:<8} |",
        split,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|=========================================+========================+======================|",
        f"|   0  {gpu['name']:<30} On  |   {gpu['bus_id']:>16} Off |                  N/A |",
        f"| N/A {gpu['temperature']:>4}C    {state}{usage:>23}  | Not Supported          |{gpu['utilization']:>7}%      Default |",
        "|                                         |                        |                  N/A |",
        split,
        "",
        wide,
        "| Processes:                                                                              |",
        "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |",
        "|        ID   ID                                                               Usage      |",
        "|=========================================================================================|",
        *(process_lines(gpu) or ["|  No running processes found                                                             |"]),
        wide,
    ]) + "\n"


def process_lines(gpu: dict) -> list[str]:
    return [
        f"|    0   N/A  N/A{process['pid']:>16}      C   {process['name'][:36]:<36}{process['used_mib']:>7}MiB |" for process in gpu["processes"]
    ]


def topology() -> str:
    """`nvidia-smi topo -m`: the two functions of a half share a PCIe switch."""
    devices = [function.device for function in sorted(layout.FUNCTIONS, key=lambda function: function.pci)]
    halves = [function.pci[:4] for function in sorted(layout.FUNCTIONS, key=lambda function: function.pci)]
    names = [f"NIC{number}" for number in range(len(devices))]
    lines = ["\t" + "\t".join(["\033[4mGPU0", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID\033[0m"])]
    lines.append("\t".join(["GPU0", " X ", *["NODE"] * len(names), "0-19", "0\t", "N/A"]))
    for row, name in enumerate(names):
        cells = [" X " if row == column else "PIX" if halves[row] == halves[column] else "NODE" for column in range(len(names))]
        lines.append("\t".join([name, "NODE", *cells]))
    lines += ["", "Legend:", "", "  X    = Self"]
    lines += [
        "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
        "  PIX  = Connection traversing at most a single PCIe bridge", "", "NIC Legend:", "",
    ]
    return "\n".join(lines + [f"  {name}: {device}" for name, device in zip(names, devices)]) + "\n\n"


def kernel_module(gpu: dict) -> dict[str, str]:
    """/proc/driver/nvidia and /sys/module/nvidia; both empty while the module is not loaded."""
    if gpu["state"] == "no_module":
        return {}
    bus = gpu["bus_id"].lower()[4:]
    files = {
        "nvidia-module/version": f"{gpu['driver']}\n",
        "proc-driver/nvidia/version":
            f"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  {gpu['driver']}  Release Build  (dvs-builder@)\nGCC version:  gcc version 13.3.0\n",
    }
    if gpu["state"] != "no_device" and gpu["present"]:
        files[f"proc-driver/nvidia/gpus/{bus}/information"] = "".join(f"{name + ':':<15} {value}\n" for name, value in (
            ("Model", gpu["name"]), ("IRQ", "171"), ("GPU UUID", gpu["uuid"]), ("Video BIOS", gpu["vbios"].lower()), ("Bus Type", "PCIe"),
            ("DMA Size", "52 bits"), ("DMA Mask", "0xfffffffffffff"), ("Bus Location", bus), ("Device Minor", "0"),
            ("GPU Firmware", gpu["gsp_firmware"]), ("GPU Excluded", "No"),
        ))
    return files


def gpu_files(gpu: dict, names: list[list[str]]) -> dict[str, str]:
    code, message = FAILURES.get(gpu["state"] if gpu["present"] else "no_device", (0, ""))
    warning = f"WARNING: infoROM is corrupted at gpu {gpu['bus_id'][4:]}" if gpu["inforom"] == "corrupted" else ""
    return {
        "nvidia-smi/failure": f"code={code} warning={shlex.quote(warning)} cuda={shlex.quote(gpu['cuda'])}\n",
        "nvidia-smi/message": message.format(library=".".join(gpu["library"].split(".")[:2])),
        "nvidia-smi/fields": gpu_fields(gpu, names),
        "nvidia-smi/table": gpu_table(gpu),
        "nvidia-smi/report": report_text(gpu),
        "nvidia-smi/report.xml": report_xml(gpu),
        "nvidia-smi/list": f"GPU 0: {gpu['name']} (UUID: {gpu['uuid']})\n",
        "nvidia-smi/topology": topology(),
        "nvidia-smi/processes": "".join(f"{process['pid']}|{process['name']}|{process['used_mib']}\n" for process in gpu["processes"]),
        **kernel_module(gpu),
    }


def firmware_devices(devices: list[dict], *, nic_firmware: str, nic_present: bool) -> list[dict]:
    """fwupd's devices, each with an id of its own; the network card is among them only while it is on the bus."""
    found = list(devices)
    if nic_present:
        found.append({
            "Name": "ConnectX-7", "Guid": ["4d4c4e58-4e56-4430-8000-000000000087"], "Plugin": "mlx", "Vendor": "NVIDIA Networking",
            "VendorId": "PCI:0x15B3", "Version": nic_firmware, "VersionFormat": "triplet", "Flags": ["internal", "registered"], "Releases": [],
        })
    return [{"DeviceId": layout.digest("fwupd", *device["Guid"])[:40], **device} for device in found]


def firmware_files(devices: list[dict], history: list[dict]) -> dict[str, str]:
    upgrades = [
        device for device in devices if any("is-upgrade" in release.get("Flags", []) for release in device.get("Releases", []))
    ]
    tree = []
    for device in devices:
        tree += [f"├─{device['Name']}:", f"│     Device ID:          {device['DeviceId']}", f"│     Current version:    {device['Version']}"]
        if "Vendor" in device:
            tree.append(f"│     Vendor:             {device['Vendor']}")
        if device.get("UpdateError"):
            tree.append(f"│     Update Error:       {device['UpdateError']}")
        tree += [f"│     GUID:               {guid}" for guid in device["Guid"]]
        tree.append("│   ")

    def document(entries: list[dict]) -> str:
        shown = [{key: value for key, value in entry.items() if key != "Releases" or value} for entry in entries]
        return json.dumps({"Devices": shown}, indent=2) + "\n"

    return {
        "fwupd/devices.json": document(devices),
        "fwupd/devices.txt": "\n".join(tree) + "\n",
        "fwupd/updates.json": document(upgrades),
        "fwupd/history.json": document(history),
        "fwupd/has-updates": f"updates={len(upgrades)} history={len(history)}\n",
    }


def dmi_files(dmi: dict) -> dict[str, str]:
    """dmidecode: a variable for each keyword of -s, and its tables."""
    keywords = {
        "bios-vendor": "bios_vendor", "bios-version": "bios_version", "bios-release-date": "bios_date", "bios-revision": "bios_release",
        "system-manufacturer": "sys_vendor", "system-product-name": "product_name", "system-version": "product_version",
        "system-serial-number": "product_serial", "system-uuid": "product_uuid", "system-sku-number": "product_sku",
        "system-family": "product_family", "baseboard-manufacturer": "board_vendor", "baseboard-product-name": "board_name",
        "baseboard-version": "board_version", "baseboard-serial-number": "board_serial", "chassis-manufacturer": "chassis_vendor",
        "chassis-type": "chassis_type",
    }
    arms = [f"{keyword}) value={shlex.quote(str(dmi[name]))} ;;" for keyword, name in keywords.items()]
    head = "# dmidecode 3.5\nGetting SMBIOS data from sysfs.\nSMBIOS 3.6.0 present.\n\n"
    tables = {
        "0": ("0x0000", "BIOS Information", [
            ("Vendor", "bios_vendor"), ("Version", "bios_version"), ("Release Date", "bios_date"), ("BIOS Revision", "bios_release"),
        ]),
        "1": ("0x0001", "System Information", [
            ("Manufacturer", "sys_vendor"), ("Product Name", "product_name"), ("Version", "product_version"), ("Serial Number", "product_serial"),
            ("UUID", "product_uuid"), ("SKU Number", "product_sku"), ("Family", "product_family"),
        ]),
        "2": ("0x0002", "Base Board Information", [
            ("Manufacturer", "board_vendor"), ("Product Name", "board_name"), ("Version", "board_version"), ("Serial Number", "board_serial"),
        ]),
        "3": ("0x0003", "Chassis Information", [("Manufacturer", "chassis_vendor"), ("Type", "chassis_type")]),
    }
    texts = {
        number: f"Handle {handle}, DMI type {number}, 32 bytes\n{title}\n" + "".join(f"\t{label}: {dmi[name]}\n" for label, name in rows) + "\n"
        for number, (handle, title, rows) in tables.items()
    }
    return {
        "dmidecode/keywords": "keyword() {\ncase $1 in\n" + "\n".join(arms) + "\n*) return 1 ;;\nesac\n}\n",
        "dmidecode/head": head,
        "dmidecode/all": "".join(texts.values()),
        **{f"dmidecode/{number}": text for number, text in texts.items()},
    }


def pci_files(state: dict, function: layout.Function, virtual: int = 0) -> dict[str, str]:
    """What sysfs says of one of the card's functions."""
    pcie = state["rails"][function.netdev]["pcie"]
    return {
        "vendor": "0x15b3\n", "device": "0x1021\n", "class": "0x020000\n",
        "current_link_speed": f"{pcie['speed']}\n", "current_link_width": f"{pcie['width']}\n",
        "max_link_speed": f"{pcie['max_speed']}\n", "max_link_width": f"{pcie['max_width']}\n",
        "numa_node": "-1\n", "sriov_numvfs": f"{virtual}\n", "sriov_totalvfs": "8\n",
    }


def other_pci_files(gpu: dict) -> dict[str, str]:
    """The GPU and the 10GbE port, which are no functions of the card."""
    found = {"0007:01:00.0": ("0x10ec", "0x8127", "0x020000", "16.0 GT/s PCIe", "1")}
    if gpu["present"]:
        found[gpu["bus_id"].lower()[4:]] = ("0x10de", "0x2e12", "0x030000", "2.5 GT/s PCIe", "1")
    return {
        f"{address}/{name}": f"{text}\n" for address, texts in found.items()
        for name, text in zip(("vendor", "device", "class", "current_link_speed", "current_link_width"), texts)
    }


def command_line(proc: dict) -> str:
    return f"{proc['cmdline']}\n"


def swaps(rows: list[dict]) -> str:
    """/proc/swaps"""
    lines = ["Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"]
    lines += [f"{row['path']:<40}{row['type']}\t\t{row['size_kb']}\t\t{row['used_kb']}\t\t-2" for row in rows]
    return "\n".join(lines) + "\n"


def memory_changes(state: dict) -> dict[str, int]:
    """What differs from the host's /proc/meminfo: what the state says, and the node's swap where it has some."""
    rows = state["proc"]["swaps"]
    size, used = (sum(row[name] for row in rows) for name in ("size_kb", "used_kb"))
    return {**({"SwapTotal": size, "SwapFree": size - used} if rows else {}), **state["meminfo"]}


def dgx_release(pairs: list[list[str]]) -> str:
    return "".join(f'{name}="{value}"\n' for name, value in pairs)


def meminfo(real: str, changes: dict) -> str:
    """/proc/meminfo with some of its values (kB) replaced."""
    lines = []
    for line in real.splitlines():
        name = line.split(":")[0]
        lines.append(f"{name + ':':<16}{changes[name]:>8} kB" if name in changes else line)
    return "\n".join(lines) + "\n"


def files(state: dict, nic_present: bool) -> dict[str, str]:
    """All answers that depend on the state alone, by their path in the node's shared folder."""
    names = field_names(FIELD_NAMES.read_text())
    devices = firmware_devices(state["firmware"], nic_firmware=state["rdma"]["firmware"], nic_present=nic_present)
    return {
        **gpu_files(state["gpu"], names),
        **firmware_files(devices, state["firmware_history"]),
        **dmi_files(state["dmi"]),
        **{
            f"active_mtu/{function.device}": f"{state['rails'][function.netdev]['active_mtu']}\n" for function in layout.FUNCTIONS
            if state["rails"][function.netdev]["active_mtu"]
        },
        **{f"hang/{tool}": "" for tool in state["tools"]["hang"]},
        **{f"fail/{tool}": text.rstrip("\n") + "\n" for tool, text in state["tools"]["fail"].items()},
        "links.json": json.dumps({"rails": state["rails"], "nccl": state["nccl"], "gpu": state["gpu"]["name"]}) + "\n",
    }
