# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi and /proc/driver/nvidia say about the GPUs: text in, data out."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._files import is_directory, list_names, read_text

# The first seven are understood by every driver; the others may be named as unknown by an old one.
QUERY_FIELDS = (
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "driver_version",
    "vbios_version",
    "memory.total",
    "compute_cap",
    "addressing_mode",
    "gpu_recovery_action",
    "mig.mode.current",
)
PROBES: dict[str, tuple[str, ...]] = {
    "gpu_query": ("nvidia-smi", f"--query-gpu={','.join(QUERY_FIELDS)}", "--format=csv"),
    "gpu_report": ("nvidia-smi", "-q", "-x"),
}
LIST = ("nvidia-smi", "-L")
NVIDIA, DISPLAY = "0x10de", "0x03"
MISSING = 127
# Elements of the report that stand for fields of a row.
_FIELD_ELEMENTS = {
    "name": "product_name",
    "uuid": "uuid",
    "vbios_version": "vbios_version",
    "memory.total": "fb_memory_usage/total",
    "addressing_mode": "addressing_mode",
    "gpu_recovery_action": "gpu_recovery_action",
    "mig.mode.current": "mig_mode/current_mig",
}
_INFOROM = {"image": "img_version", "oem": "oem_object", "ecc": "ecc_object", "power": "pwr_object"}
# Newer drivers name the first one.
_POWER = ("gpu_power_readings", "power_readings")
_DRAW = ("instant_power_draw", "power_draw", "average_power_draw")

Note = t.Callable[[str, str, str], None]
_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)([^<>]*)>([^<]*)")
_ID = re.compile(r"\bid=[\"']([^\"']*)[\"']")
_ENTITY = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&amp;": "&"}
_LONG_LIST = re.compile(r"<supported_clocks>.*?</supported_clocks>", re.DOTALL)
_CUDA = re.compile(r"^cuda(?:_\w+)?_version$")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?$")

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_UNIT = re.compile(r"^(-?\d+(?:\.\d+)?)\s*(MiB|%|W|MHz|C)$")
_BUS = re.compile(r"\b([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])\b")
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
_LIBRARY = re.compile(r"NVML library version:\s*(\S+)")
_MODULE = re.compile(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+(?:\.\d+)+)")
_GPU_LINE = re.compile(r"^GPU\s+([0-9]{1,9}):")
_MIG_LINE = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+([0-9]{1,9}):\s+\(UUID:\s*([^)]+)\)")

# What a healthy GPU prints for a thing that it does not have; any other bracketed cell tells of a fault.
_NOTHING = {
    "",
    "n/a",
    "not supported",
    "function not found",
    "insufficient permissions",
    "requested functionality has been deprecated",
}


class Report(t.NamedTuple):
    """An answer of `nvidia-smi -q -x`: versions, GPUs, and why it was not read to its end, None where it was."""

    driver: str | None
    cuda: str | None
    devices: list[dict[str, t.Any]]
    broken: str | None


class Query(t.NamedTuple):
    """Rows of a --query-gpu answer, and the lines that are no rows."""

    rows: list[dict[str, str]]
    messages: list[str]


def strip_escapes(text: str) -> str:
    """Text without the colour and underline codes that some nvidia-smi tables carry even in a pipe."""
    return _ESCAPE.sub("", text)


def cell_value(cell: str) -> str | None:
    """A cell's value without its unit; None where nvidia-smi prints that it has none or cannot tell."""
    cell = cell.strip()
    bare = cell[1:-1].strip() if cell.startswith("[") and cell.endswith("]") else cell
    if bare != cell or bare.lower() in _NOTHING or bare == "ERR!":
        return None
    unit = _UNIT.match(cell)
    return unit.group(1) if unit else cell


def cell_fault(cell: str) -> str | None:
    """The words of a cell that tell of a fault, as in '[GPU requires reset]' or 'ERR!'; None for an ordinary cell."""
    cell = cell.strip()
    if cell == "ERR!":
        return cell
    if cell.startswith("[") and cell.endswith("]"):
        bare = cell[1:-1].strip()
        return None if bare.lower() in _NOTHING else bare
    return None


def normal_bus_id(text: str) -> str | None:
    """A PCI address in nvidia-smi's long form (0000000F:01:00.0), whatever form it came in."""
    found = _BUS.search(text)
    if not found:
        return None
    domain, bus, device, function = found.groups()
    return f"{domain.upper().zfill(8)}:{bus.upper()}:{device.upper()}.{function}"


def parse_query(text: str, fields: t.Sequence[str]) -> Query:
    """Reads `nvidia-smi --query-gpu=FIELDS --format=csv`, with or without its header and its units.

    A line counts as a row only when it has as many cells as there are fields: warnings and error prose share stdout.
    """
    rows: list[dict[str, str]] = []
    messages: list[str] = []
    for line in strip_escapes(text).splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields) or line.startswith("WARNING"):
            messages.append(line.strip())
        elif [cell.split(" [")[0] for cell in cells] != list(fields):
            rows.append(dict(zip(fields, cells)))
    return Query(rows, messages)


def _plain(text: str) -> str:
    text = text.strip()
    if "&" in text:
        for entity, character in _ENTITY.items():
            text = text.replace(entity, character)
    return text


def parse_report(text: str) -> Report:
    """Reads `nvidia-smi -q -x`. Some drivers print XML that is not well formed: what stands before and around the break counts.

    A GPU is {id, values: text by path below it, processes}. The supported clocks, which are long, are not read.
    """
    root: dict[str, str] = {}
    devices: list[dict[str, t.Any]] = []
    path: list[str] = []
    broken = None
    device: dict[str, t.Any] | None = None
    for found in _TAG.finditer(_LONG_LIST.sub("", strip_escapes(text))):
        closing, name, attributes, content = found.groups()
        if attributes.endswith("/"):
            continue
        if closing:
            if name not in path:
                broken = broken or f"</{name}> closes nothing"
                continue
            if path[-1] != name:
                broken = broken or f"</{name}> closes <{path[-1]}>"
            while path.pop() != name:
                pass
            if name == "gpu" and "gpu" not in path:
                device = None
            continue
        path.append(name)
        if name == "gpu":
            identity = _ID.search(attributes)
            device = {"id": _plain(identity.group(1)) if identity else None, "values": {}, "processes": []}
            devices.append(device)
        elif name == "process_info" and device is not None:
            device["processes"].append({})
        content = _plain(content)
        if not content:
            continue
        if device is None:
            root.setdefault(name, content)
        elif "process_info" in path and device["processes"]:
            device["processes"][-1].setdefault(name, content)
        else:
            device["values"].setdefault("/".join(path[path.index("gpu") + 1:]) if "gpu" in path else name, content)
    if "nvidia_smi_log" in path:
        broken = broken or "it ends before </nvidia_smi_log>"
    cuda = next((value for name, value in root.items() if _CUDA.match(name)), None)
    return Report(cell_value(root.get("driver_version", "")), cell_value(cuda or ""), devices, broken)


def _first(values: dict[str, str], *paths: str) -> str | None:
    return next((value for path in paths if (value := cell_value(values.get(path, "")))), None)


def _bytes(cell: str) -> int | None:
    """A number of MiB in bytes."""
    value = cell_value(cell)
    return int(float(value) * 1024 * 1024) if value is not None and len(value) < 20 and _NUMBER.match(value) else None


def describe_processes(rows: list[dict[str, str]]) -> list[dict[str, t.Any]]:
    """Processes that use a GPU: {pid, name, used_memory_bytes}, the name without its folder and arguments."""
    found = []
    for row in rows:
        pid = row.get("pid", "")
        words = (cell_value(row.get("process_name", "")) or "").split()
        found.append(
            {
                "pid": int(pid) if pid.isdecimal() and len(pid) < 10 else None,
                "name": (words[0].rstrip("/").rpartition("/")[2] or None) if words else None,
                "used_memory_bytes": _bytes(row.get("used_memory", "")),
            }
        )
    return found


def rows_of(report: Report) -> list[dict[str, str]]:
    """What a query would have answered, as far as the report tells: for a query that gave no rows."""
    rows = []
    for number, device in enumerate(report.devices):
        row = {field: device["values"][path] for field, path in _FIELD_ELEMENTS.items() if path in device["values"]}
        rows.append({**row, "index": str(number), "pci.bus_id": device["id"] or "", "driver_version": report.driver or ""})
    return rows


def count_gpus(root: str) -> int | None:
    """Number of NVIDIA GPUs on the PCI bus, whatever the driver says of them; None without such a bus."""
    base = f"{root.rstrip('/')}/sys/bus/pci/devices"
    if not is_directory(base):
        return None
    return sum(
        1 for name in list_names(base)
        if read_text(base, name, "vendor") == NVIDIA and (read_text(base, name, "class") or "").startswith(DISPLAY)
    )


def unknown_field(text: str) -> str | None:
    """The field that this nvidia-smi does not know, from its error line."""
    found = _UNKNOWN_FIELD.search(text)
    return found.group(1) if found else None


def parse_mig_list(text: str) -> dict[int, list[dict[str, t.Any]]]:
    """MIG devices of each GPU index, from `nvidia-smi -L`."""
    devices: dict[int, list[dict[str, t.Any]]] = {}
    index = None
    for line in strip_escapes(text).splitlines():
        gpu = _GPU_LINE.match(line)
        mig = _MIG_LINE.match(line)
        if gpu:
            index = int(gpu.group(1))
            devices[index] = []
        elif mig and index is not None:
            devices[index].append({"index": int(mig.group(2)), "profile": mig.group(1), "uuid": mig.group(3)})
    return devices


def read_kernel_module(root: str) -> dict[str, t.Any]:
    """Version of the loaded kernel module and the GSP firmware of each GPU, from /proc/driver/nvidia under `root`."""
    base = f"{root.rstrip('/')}/proc/driver/nvidia"
    version = _MODULE.search(read_text(base, "version") or "")
    firmware: dict[str, str] = {}
    for name in list_names(base, "gpus"):
        for line in (read_text(base, "gpus", name, "information") or "").splitlines():
            key, colon, value = line.partition(":")
            bus_id = normal_bus_id(name)
            if key.strip() == "GPU Firmware" and bus_id and cell_value(value):
                firmware[bus_id] = value.strip()
    return {"version": version.group(1) if version else None, "gsp_firmware": firmware}


def _memory(cell: str, memory_total_bytes: int | None) -> dict[str, t.Any]:
    value = cell_value(cell)
    if value is not None:
        size = _bytes(cell)
        if size is not None:
            return {"memory_total_bytes": size, "memory_rule": "dedicated", "memory_reason": None}
        return {
            "memory_total_bytes": None,
            "memory_rule": None,
            "memory_reason": f"nvidia-smi prints '{value}' for memory.total, which is no number.",
        }
    fault = cell_fault(cell)
    if fault:
        return {
            "memory_total_bytes": None,
            "memory_rule": None,
            "memory_reason": f"nvidia-smi prints '{fault}' for memory.total.",
        }
    return {
        "memory_total_bytes": memory_total_bytes,
        "memory_rule": "unified",
        "memory_reason": "The GPU has no memory of its own: nvidia-smi prints N/A for memory.total, "
        "so this is MemTotal of /proc/meminfo, which CPU and GPU share.",
    }


def _device(
    row: dict[str, str],
    kernel_module: dict[str, t.Any],
    memory_total_bytes: int | None,
    mig: dict[int, list[dict[str, t.Any]]],
    reported: dict[str, t.Any],
) -> dict[str, t.Any]:
    values = reported.get("values", {})

    def get(field: str) -> str | None:
        return cell_value(row.get(field, ""))

    digits = get("index") or ""
    index = int(digits) if digits.isdecimal() and len(digits) < 10 else 0
    bus_id = normal_bus_id(row.get("pci.bus_id", ""))
    device: dict[str, t.Any] = {
        "index": index,
        "name": get("name"),
        "uuid": get("uuid"),
        "bus_id": bus_id,
        "compute_capability": get("compute_cap"),
        "vbios": get("vbios_version"),
        "gsp_firmware": kernel_module["gsp_firmware"].get(bus_id) or _first(values, "gsp_firmware_version"),
        "inforom": {name: _first(values, f"inforom_version/{element}") for name, element in _INFOROM.items()},
        "recovery_action": get("gpu_recovery_action"),
        "addressing_mode": get("addressing_mode"),
        "mig": {"mode": get("mig.mode.current"), "devices": mig.get(index, [])},
        "power_watts": _watts(values),
        "processes": describe_processes(reported.get("processes", [])),
        "warnings": [f"{field}: {cell_fault(cell)}" for field, cell in row.items() if cell_fault(cell)],
    }
    device.update(_memory(row.get("memory.total", ""), memory_total_bytes))
    return device


def _watts(values: dict[str, str]) -> float | None:
    value = _first(values, *(f"{group}/{element}" for group in _POWER for element in _DRAW))
    return float(value) if value is not None and len(value) < 20 and _NUMBER.match(value) else None


def _device_verdict(device: dict[str, t.Any]) -> tuple[str, str | None]:
    name = f"GPU {device['index']} ({device['bus_id'] or device['name']})"
    action = device["recovery_action"] or "None"
    faults = " ".join(device["warnings"]).lower()
    if "reboot" in action.lower() or "is lost" in faults:
        return "needs_reset", f"{name} asks for a reboot of the node; reboot it before serving."
    if "reset" in action.lower() or "requires reset" in faults:
        return "needs_reset", f"{name} asks for a reset; stop what uses it and reboot the node."
    if action != "None":
        return "degraded", f"{name} asks for the recovery action '{action}'."
    if device["warnings"]:
        return "degraded", f"{name}: {device['warnings'][0]}"
    return "ok", None


def _no_rows_verdict(rc: int, text: str, module_version: str | None, library: str | None) -> tuple[str, str]:
    lower = text.lower()
    if rc == 18 or "version mismatch" in lower:
        return "driver_mismatch", (
            f"The driver's library is version {library or 'unknown'} but the loaded kernel module is "
            f"{module_version or 'another one'}: the driver was updated under a running kernel. Reboot the node; "
            "do not reinstall the driver."
        )
    if rc == 6 or "no devices were found" in lower:
        return "absent", "The NVIDIA driver is loaded but sees no GPU; read the kernel log for NVRM lines and reboot the node."
    if rc == 9 or "couldn't communicate with the nvidia driver" in lower or "driver not loaded" in lower:
        return "absent", (
            "The NVIDIA kernel module is not loaded; install the driver package that belongs to this kernel and reboot the node."
        )
    if rc == 12 or "libnvidia-ml.so" in lower:
        return "absent", "The library libnvidia-ml.so of the NVIDIA driver is missing; install the driver's packages."
    if rc in (15, 16) or "gpu is lost" in lower or "requires reset" in lower:
        return "needs_reset", "A GPU has fallen off the bus or waits for a reset; reboot the node."
    if rc == 124:
        return "degraded", "nvidia-smi did not answer in time; read the kernel log for Xid lines and reboot the node."
    first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
    return "degraded", f"nvidia-smi ended with {rc} and said: {first}"


def absent(reason: str, kernel_module: dict[str, t.Any]) -> dict[str, t.Any]:
    """The GPU facts of a node whose nvidia-smi cannot be asked."""
    return {
        "driver": kernel_module["version"],
        "state": "absent",
        "reason": reason,
        "library_version": None,
        "module_version": kernel_module["version"],
        "cuda_version": None,
        "devices": [],
        "warnings": [],
    }


def summarize(
    rc: int,
    stdout: str,
    stderr: str,
    fields: t.Sequence[str],
    kernel_module: dict[str, t.Any],
    memory_total_bytes: int | None,
    mig: dict[int, list[dict[str, t.Any]]] | None = None,
    report: Report | None = None,
) -> dict[str, t.Any]:
    """The GPU facts from one --query-gpu answer and the report, which stands in for a query without rows.

    Exit code 14 with rows is a degraded GPU, not a missing one.
    """
    query = parse_query(stdout, fields)
    messages = query.messages + [line.strip() for line in strip_escapes(stderr).splitlines() if line.strip()]
    report = report or Report(None, None, [], None)
    reported = {normal_bus_id(device["id"] or ""): device for device in report.devices}
    rows = query.rows or rows_of(report)
    devices = [
        _device(row, kernel_module, memory_total_bytes, mig or {}, reported.get(normal_bus_id(row.get("pci.bus_id", "")), {})) for row in rows
    ]
    by_bus = {device["bus_id"]: device for device in devices if device["bus_id"]}
    for message in messages:
        device = by_bus.get(normal_bus_id(message))
        if device:
            device["warnings"].append(message)
    library = _LIBRARY.search("\n".join(messages))
    driver = next((value for row in rows if (value := cell_value(row.get("driver_version", "")))), None)
    for device in devices:
        device["health"], device["health_reason"] = _device_verdict(device)
    if devices:
        worst = [device for state in ("needs_reset", "degraded") for device in devices if device["health"] == state]
        state, reason = (worst[0]["health"], worst[0]["health_reason"]) if worst else ("ok", None)
        if state == "ok" and (rc != 0 or messages):
            state, reason = "degraded", f"nvidia-smi ended with {rc} and said: {messages[0] if messages else 'nothing more'}"
    else:
        state, reason = _no_rows_verdict(
            rc, "\n".join(messages), kernel_module["version"], library.group(1) if library else None
        )
    return {
        "driver": driver or kernel_module["version"],
        "state": state,
        "reason": reason,
        "library_version": library.group(1) if library else driver,
        "module_version": kernel_module["version"],
        "cuda_version": report.cuda,
        "devices": devices,
        "warnings": messages,
    }


def read_gpu(root: str, answers: t.Mapping[str, t.Any], ask: t.Callable[[tuple[str, ...]], t.Any], note: Note) -> dict[str, t.Any]:
    """Facts of the subset gpu.

    Args:
        root: root directory of the node.
        answers: answers to PROBES.
        ask: asks a tool again, where an answer brings that up.
        note: told what was not understood.
    """
    kernel_module = read_kernel_module(root)
    count = count_gpus(root)
    answer, report_answer = answers["gpu_query"], answers["gpu_report"]
    if answer.status == MISSING:
        gpu = absent("nvidia-smi is not installed; install the NVIDIA driver.", kernel_module)
        return {**gpu, "count": count}
    fields = list(QUERY_FIELDS)
    while True:
        unknown = unknown_field(answer.output + answer.error)
        if unknown not in fields or len(fields) == 1:
            break
        fields.remove(unknown)
        answer = ask(("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv"))
    report = parse_report(report_answer.output)
    if report_answer.status == 0 and (report.broken or not report.devices) and "No devices were found" not in report_answer.output:
        note("nvidia-smi -q -x", "not_understood", report.broken or report_answer.output)
    mig: dict[int, list[dict[str, t.Any]]] = {}
    if any(row.get("mig.mode.current") == "Enabled" for row in parse_query(answer.output, fields).rows or rows_of(report)):
        listed = ask(LIST)
        mig = parse_mig_list(listed.output)
        if listed.status == 0 and not mig:
            note("nvidia-smi -L", "not_understood", listed.output)
    total = _memory_total(root)
    gpu = summarize(answer.status, answer.output, answer.error, fields, kernel_module, total, mig, report)
    if answer.status == 0 and not parse_query(answer.output, fields).rows:
        note("nvidia-smi --query-gpu", "not_understood", answer.output)
    if gpu["cuda_version"] is None and report.devices:
        note("nvidia-smi -q -x", "not_understood", "It tells no version of CUDA.")
    return {**gpu, "count": count}


def _memory_total(root: str) -> int | None:
    found = re.search(r"^MemTotal:\s+([0-9]{1,15}) kB$", read_text(root, "proc/meminfo") or "", re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None
