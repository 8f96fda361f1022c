#!/usr/bin/python
# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl_gate
short_description: Measure NCCL between the nodes of a cluster
version_added: 0.1.0
author:
  - gb10.fleet developers (@gb10-fleet)
description:
  - Runs one rank on each node of a cluster, in the environment that the units have. The ranks run an all-reduce and an all-gather,
    compare each value and time them.
  - By default a rank is a program for the release's own Python, which uses torch.distributed and so the very NCCL that serving will
    load. The ranks meet at the first node without MPI, and nothing has to be built.
  - With O(nccl_tests_folder) they are the programs of nccl-tests. These know their ranks from MPI alone, so that the first node runs
    C(mpirun) of Open MPI; its daemon on the other nodes is started by this module there, so that no ssh between nodes is needed.
  - Says what the figure means, from thresholds and known signatures. A fall back to sockets, a single rank, values that were not
    compared and output that is not understood are no passes, however fast.
  - Every node of the cluster must run this task in the same batch of the play, since they wait for each other.
  - Each rank has a time limit after which it is gone, also when its peer never came. All that was started is ended with the task.
  - Never fails by itself; RV(passed) and RV(findings) say how it is. The first node has the verdict, every node has its own troubles.
notes:
  - On a Spark memory is one pool for CPU and GPU. nccl-tests takes three buffers of the largest size, the release's torch one or two.
attributes:
  action:
    description: The action plugin of this name gives each node its rank and judges.
    support: full
  check_mode:
    description: Changes nothing, so that it runs in check mode as well.
    support: full
  diff_mode:
    description: Returns details on what has changed or would change.
    support: none
options:
  nodes:
    description: Inventory names of the cluster's nodes in the order of their ranks. The ranks meet at the first.
    type: list
    elements: str
    required: true
  address:
    description: Address of the first node, by which the others reach it.
    type: str
    required: true
  port:
    description: TCP port of the meeting.
    type: int
    default: 6386
  environment_file:
    description: File of variables that the units read, of this node. A file that is not there gives none.
    type: path
    default: /etc/gb10/nccl.env
  environment:
    description:
      - Variables that win over those of O(environment_file), as the filter P(gb10.fleet.nccl_environment#filter) derives them.
      - C(NCCL_NET) is V(IB) unless one of the two says otherwise, and C(NCCL_DEBUG) is V(INFO) at least, since the log is read.
    type: dict
    default: {}
  python:
    description: The Python that has torch, as on every node of the cluster.
    type: path
    default: /opt/gb10/current/bin/python
  nccl_tests_folder:
    description:
      - Folder with C(all_reduce_perf) and C(all_gather_perf), built with MPI=1 against Open MPI, at the same path on every node.
      - They load the NCCL of the release in O(python), where it has one, unless the environment sets C(LD_LIBRARY_PATH).
    type: path
  collectives:
    description: What is measured.
    type: list
    elements: str
    choices: [all_reduce, all_gather]
    default: [all_reduce, all_gather]
  sizes:
    description:
      - Sizes of the buffer in bytes, at most 2 GiB each. The largest counts. nccl-tests is given the smallest and the largest.
      - Memory is one pool on a Spark, and a test with 16 GiB froze a loaded node.
    type: list
    elements: int
    default: [8388608, 1073741824]
  device:
    description: Number of the GPU that the rank uses.
    type: int
    default: 0
  meet_seconds:
    description: How long a rank waits for the others, in seconds.
    type: int
    default: 30
  limit_seconds:
    description: How long a rank may take in all, in seconds.
    type: int
    default: 90
  topology:
    description: How the nodes are joined, which decides what is expected of them.
    type: str
    choices: [pair, ring, switch]
    default: pair
  expected:
    description: Bus bandwidth in GB/s from which on it is as it should be. By default that of the topology, 21.875 or 10 in a ring.
    type: float
  minimum:
    description: Bus bandwidth in GB/s below which it fails. By default that of the topology, 18.75 or 8.5 in a ring.
    type: float
  rdma_gbps:
    description: What C(ib_write_bw) gave over all rails, in Gb/s one way. Tells a wrong build of NCCL from a rail that is slow itself.
    type: float
  nccl_version:
    description: Version of NCCL that the toolchain has. Another one fails.
    type: str
  rank:
    description: Set by the action plugin.
    type: int
    default: 0
  key:
    description: Set by the action plugin. Tells the first node which connections are of this gate.
    type: str
    default: ""
seealso:
  - module: gb10.fleet.rail_check
  - plugin: gb10.fleet.nccl_environment
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Measure NCCL between the nodes of this cluster
  gb10.fleet.nccl_gate:
    nodes: "{{ spark_plan.nodes }}"
    address: "{{ spark_plan.head_address }}"
    topology: "{{ spark_plan.topology }}"
  register: nccl
  become: true

- name: Stop on what is wrong
  ansible.builtin.assert:
    that: nccl.passed
    fail_msg: "{{ nccl.findings | gb10.fleet.findings_text(['fail']) }}"

- name: Measure with nccl-tests of your own
  gb10.fleet.nccl_gate:
    nodes: "{{ spark_plan.nodes }}"
    address: "{{ spark_plan.head_address }}"
    nccl_tests_folder: /opt/nccl-tests/build
  become: true
"""

RETURN = r"""
passed:
  description:
    - On the first node, whether the fabric was measured and nothing failed on any node. On the others, whether nothing failed there.
  returned: success
  type: bool
  sample: true
findings:
  description: What it means. Empty on nodes that ended well and are not the first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Kind of finding.
      returned: always
      type: str
      sample: nccl.sockets
    severity:
      description: V(ok), V(info), V(warn) or V(fail).
      returned: always
      type: str
      sample: fail
    node:
      description: The node.
      returned: always
      type: str
      sample: spark-a
    what:
      description: What is the matter.
      returned: always
      type: str
      sample: NCCL went over sockets and not over RDMA, at 3.76 GB/s.
    evidence:
      description: What was seen.
      returned: always
      type: str
      sample: all_reduce 3.76 GB/s via NET/Socket
    cause:
      description: The likely cause.
      returned: always
      type: str
      sample: RDMA did not work, and NCCL fell back without a word.
    cure:
      description: What to do.
      returned: always
      type: str
      sample: Set NCCL_NET to IB, so that it says why, and run the gate again.
    source:
      description: Where the rule comes from.
      returned: always
      type: str
      sample: NCCL log, 'via NET/Socket'
rows:
  description: Figures of each collective and size, on the first node. Names and units are those of nccl-tests.
  returned: success
  type: list
  elements: dict
  contains:
    collective:
      description: What was measured, V(all_reduce) or V(all_gather).
      returned: always
      type: str
      sample: all_reduce
    bytes:
      description: Size of the buffer.
      returned: always
      type: int
      sample: 1073741824
    iterations:
      description: How many operations were timed.
      returned: when O(nccl_tests_folder) is not given
      type: int
      sample: 15
    time_us:
      description: Time of one operation in microseconds.
      returned: always
      type: float
      sample: 46684.0
    algbw:
      description: Algorithm bandwidth in GB/s, 10^9 bytes.
      returned: always
      type: float
      sample: 23.0
    busbw:
      description: Bus bandwidth in GB/s, what each link carries one way.
      returned: always
      type: float
      sample: 23.0
    busbw_gbps:
      description: Bus bandwidth in Gb/s.
      returned: always
      type: float
      sample: 184.0
    wrong:
      description: How many values came out wrong, null when they were not compared.
      returned: always
      type: int
      sample: 0
log:
  description: What NCCL's log says of this rank, as version, interface, devices, transports and warnings.
  returned: success
  type: dict
  sample: {"version": "2.30.7", "network": "IB", "transports": ["NET/IB"], "net_devices": [0, 1]}
reports:
  description: What each rank had to say, on the first node. On the others their own.
  returned: success
  type: list
  elements: dict
  contains:
    rank:
      description: The rank, which is the place of its node in O(nodes).
      returned: always
      type: int
      sample: 0
    host:
      description: Host name of the node.
      returned: when the rank left a report
      type: str
      sample: spark-a
    stage:
      description: How far it came, V(program), V(torch), V(gpu), V(meet), V(connect), V(measure) or V(done).
      returned: always
      type: str
      sample: done
    error:
      description: Why it failed, null when it did not.
      returned: always
      type: str
      sample: rank 1 did not come within 30 s
    nccl:
      description: Version of NCCL.
      returned: when the rank left a report
      type: str
      sample: 2.30.7
    library:
      description: The NCCL that it had loaded, null when none was seen.
      returned: when the rank left a report
      type: dict
      sample:
        path: /opt/gb10/current/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2
        size_bytes: 416534512
        build_id: 4a5e1f0c2b6d4c0b9f1d7e6a5b4c3d2e1f0a9b8c
    counters:
      description: Counters of the node's RDMA devices that count something amiss and grew meanwhile, by how much.
      returned: on the node itself, and by nccl-tests on all
      type: dict
      sample: {"rocep1s0f0": {"out_of_sequence": 12}}
way:
  description: What the ranks were, V(torch) or V(nccl-tests).
  returned: success
  type: str
  sample: torch
environment:
  description: Variables of NCCL and its like that this rank had.
  returned: success
  type: dict
  sample: {"NCCL_NET": "IB", "NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0"}
seconds:
  description: How long this rank took.
  returned: success
  type: float
  sample: 9.4
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import types

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.fleet.plugins.module_utils import _elf, _marked, _nccl_agent, _nccl_launch, _nccl_rank
from ansible_collections.gb10.fleet.plugins.module_utils._files import file_status, list_names, read_bytes, read_text
from ansible_collections.gb10.fleet.plugins.module_utils._nccl_tests import flat_rows, parse_log, parse_nccl_tests
from ansible_collections.gb10.fleet.plugins.module_utils._platform import parse_addresses
from ansible_collections.gb10.fleet.plugins.module_utils._run import NOT_RUN, run

LARGEST = 2 * 1024**3
# A rank ends itself at its limit; this is for one that cannot.
GRACE_SECONDS = 10
LONGEST_TEXT = 20000
LONGEST_SAID = 300
ITERATIONS = 10
WARM_UP = 2
BITS = 8
SECONDS_BETWEEN_LOOKS = 0.2
DEVICES = "sys/class/infiniband"
# What the ranks print of themselves stays apart from NCCL's log, which comes from every rank.
LOG = "nccl.log"
# MPI carries a few bytes to let the ranks meet, over TCP: UCX and verbs of its own would only be one more thing to fail.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_orte_leave_session_attached": "1",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_prte_leave_session_attached": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
}
_SHOWN = re.compile(r"^(?:NCCL_|GLOO_|UCX_|OMPI_|CUDA_VISIBLE_DEVICES$|LD_LIBRARY_PATH$|LD_PRELOAD$)")
_ENDED = re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]")
_ESCAPED = re.compile(r'\\(["\\$`])')


def parse_environment_file(text):
    """Variables of a file as systemd's EnvironmentFile= has it."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", name):
            if len(value) >= 2 and value[0] == value[-1] == '"':
                value = _ESCAPED.sub(r"\1", value[1:-1])
            elif len(value) >= 2 and value[0] == value[-1] == "'":
                value = value[1:-1]
            found[name] = value
    return found


def read_result(output):
    """The object after the mark, None when the rank did not get to it."""
    for line in reversed(output.splitlines()):
        if line.startswith(_nccl_rank.MARK):
            try:
                return json.loads(line[len(_nccl_rank.MARK):])
            except ValueError:
                return None
    return None


def trouble(text):
    """Lines that may name a cause, bounded."""
    lines = [
        line.strip() for line in text.splitlines()
        if not line.startswith(_nccl_rank.MARK)
        and ("WARN" in line or "rror" in line or "NET/" in line or "nterface" in line or "failure" in line or "nvalid" in line or "not find" in line)
    ]
    return "\n".join(lines)[-LONGEST_TEXT:]


def failure_text(collective, status, text, errors):
    """A sentence on a program that failed: which rank ended first, and what was said, without the frames that mpirun draws."""
    said = errors[0] if errors else " ".join(line for line in text.splitlines() if not re.match(r"^[-\s]*$", line))
    which = _ENDED.search(text)
    return f"{collective}_perf{f' of rank {which.group(1)}' if which else ''} ended with {status} and said: {' '.join(said.split())[:LONGEST_SAID]}"


def read_counters(root="/"):
    """Counters of the RDMA devices: {device: {name: count}}."""
    found = {}
    for device in list_names(root, DEVICES):
        for port in list_names(root, f"{DEVICES}/{device}/ports"):
            for folder in ("counters", "hw_counters"):
                path = f"{DEVICES}/{device}/ports/{port}/{folder}"
                for name in list_names(root, path):
                    text = (read_text(root, f"{path}/{name}") or "").strip()
                    if text.isascii() and text.isdigit():
                        found.setdefault(device, {})[name] = int(text)
    return found


def grown_counters(before, after):
    """Those that count something amiss and grew, by how much."""
    grown = {}
    for device, counters in after.items():
        for name, count in counters.items():
            more = count - before.get(device, {}).get(name, count)
            if more > 0 and not re.search(r"_data$|_packets$|_requests$|^lifespan$", name):
                grown.setdefault(device, {})[name] = more
    return grown


def describe_library(path, root="/"):
    """{path, size_bytes, build_id} of a library."""
    name = path.lstrip("/")
    status = file_status(root, name)
    return {
        "path": path,
        "size_bytes": status.st_size if status else None,
        "build_id": _elf.read_build_id(lambda offset, size: read_bytes(root, name, offset=offset, size=size)),
    }


def release_libraries(python, root="/"):
    """Folder of the NCCL that the release of a Python brings, None where it has none."""
    base = os.path.dirname(os.path.dirname(python)).strip("/")
    for name in list_names(root, f"{base}/lib"):
        folder = f"{base}/lib/{name}/site-packages/nvidia/nccl/lib"
        if name.startswith("python3") and list_names(root, folder):
            return f"/{folder}"
    return None


class Look:
    """Looks, while programs run, which NCCL those with the mark have loaded."""

    def __init__(self, mark):
        self.mark = mark
        self.paths = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self.over.wait(SECONDS_BETWEEN_LOOKS):
            self.paths += [path for path in _marked.loaded_nccl(self.mark) if path not in self.paths]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.over.set()
        self.thread.join()


def source_of(module: types.ModuleType) -> str:
    """The text of a module, also of one in Ansible's archive; Ansible's own loader of collections gives bytes."""
    source: str | bytes = module.__loader__.get_source(module.__name__)  # type: ignore[union-attr]
    return source.decode() if isinstance(source, bytes) else source


class Gate:
    """This node's part of a gate."""

    def __init__(self, module):
        self.module = module
        self.given = module.params
        self.rank, self.world = self.given["rank"], len(self.given["nodes"])
        self.mark = secrets.token_hex(8)
        self.begin = time.monotonic()
        self.end = self.begin + self.given["limit_seconds"]
        self.folder = tempfile.mkdtemp(prefix="nccl-", dir=module.tmpdir)
        self.before = read_counters()
        self.environment = self._environment()

    def _environment(self):
        text = read_text("/", self.given["environment_file"].lstrip("/"))
        told = {**parse_environment_file(text or ""), **{name: str(value) for name, value in self.given["environment"].items()}}
        found = {"NCCL_NET": "IB", **told, _marked.VARIABLE: self.mark}
        if found.get("NCCL_DEBUG", "").upper() not in ("INFO", "TRACE"):
            found["NCCL_DEBUG"] = "INFO"
        # The log is the gate's to read.
        found.pop("NCCL_DEBUG_FILE", None)
        return found

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def left(self):
        return max(1, int(self.end - time.monotonic()))

    # --- the release's torch ---------------------------------------------------------------------------------------

    def by_torch(self):
        """One rank that the release's Python runs."""
        task = {
            "rank": self.rank, "world": self.world, "address": self.given["address"], "port": self.given["port"], "device": self.given["device"],
            "meet": self.given["meet_seconds"], "limit": self.given["limit_seconds"], "collectives": self.given["collectives"],
            "sizes": self.given["sizes"],
        }
        self.write("_elf.py", source_of(_elf))
        program = self.write("rank.py", source_of(_nccl_rank))
        status, output, error = run(
            self.module, [self.given["python"], program, json.dumps(task)], self.given["limit_seconds"] + GRACE_SECONDS, self.environment
        )
        text = f"{output}\n{error}"
        result = read_result(output)
        if result is None:
            said = " ".join((error or output).split())[-LONGEST_SAID:] or "nothing"
            result = {"report": {"rank": self.rank, "stage": "torch", "error": f"ended with {status} and said: {said}", "rows": []}}
            result["reports"] = [result["report"]]
        report = result["report"]
        rows = report.pop("rows", [])
        for other in result["reports"]:
            other.pop("rows", None)
        return {
            "report": report, "reports": result["reports"], "rows": rows, "log": parse_log(text), "ranks": self.world if rows else 0, "unread": [],
            "trouble": trouble(text) if report["error"] else "",
        }

    # --- nccl-tests ------------------------------------------------------------------------------------------------

    def by_programs(self):
        """nccl-tests, which mpirun of the first node starts on all."""
        report = {"rank": self.rank, "host": socket.gethostname(), "stage": "program", "error": None, "nccl": None, "library": None}
        result = {"report": report, "reports": [report], "rows": [], "log": parse_log(""), "ranks": 0, "unread": [], "trouble": ""}
        log = os.path.join(self.folder, LOG)
        self.environment["NCCL_DEBUG_FILE"] = log
        libraries = release_libraries(self.given["python"])
        if libraries:
            self.environment.setdefault("LD_LIBRARY_PATH", libraries)
        if self.given["device"]:
            self.environment["NCCL_TESTS_DEVICE"] = str(self.given["device"])
        with Look(self.mark) as look:

            def finish(failed, said):
                """Complete this node's report and log when the programs have ended."""
                text = f"{read_text(log) or ''}\n{said}"
                result["log"] = parse_log(text)
                report["nccl"] = result["log"]["version"] or report["nccl"]
                report["library"] = describe_library(look.paths[0]) if look.paths else None
                if failed:
                    result["trouble"] = trouble(text)
                return result["log"]["warnings"]

            try:
                self._need_programs()
                if self.rank == 0:
                    self._lead(report, result, finish)
                else:
                    self._follow(report, finish)
            except _nccl_launch.LaunchError as error:
                report["stage"], report["error"] = error.stage, str(error)
                finish(True, "")
        return result

    def _need_programs(self):
        wanted = [os.path.join(self.given["nccl_tests_folder"], f"{name}_perf") for name in self.given["collectives"]]
        missing = [path for path in wanted if not os.access(path, os.X_OK)]
        if not missing:
            names = ("mpirun",) if self.rank == 0 else _nccl_launch.DAEMONS
            if not any(self.module.get_bin_path(name) for name in names):
                missing = [names[0]]
        if missing:
            raise _nccl_launch.LaunchError("program", f"{missing[0]} is not on this node")

    def _network(self):
        """The network of the meeting as address/prefix, so that Open MPI takes no bridge of containers for a way to the others."""
        _status, output, _error = run(self.module, ["ip", "-j", "address", "show"])
        try:
            addresses = [address for interface in parse_addresses(output) for address in interface["addresses"]]
        except ValueError:
            return None
        return next((address for address in addresses if address.partition("/")[0] == self.given["address"]), None)

    def _lead(self, report, result, finish):
        agent = self.write("agent.py", source_of(_nccl_agent))
        head = _nccl_launch.Head(self.given["address"], self.given["port"], self.world, self.given["key"], self.folder, _nccl_agent.SOCKET)
        network = self._network()
        environment = {
            **({f"OMPI_MCA_{layer}_tcp_if_include": network for layer in ("oob", "btl")} if network else {}),
            **OPEN_MPI,
            **self.environment,
            "OMPI_MCA_plm_rsh_agent": f"{sys.executable} {agent}",
            "PRTE_MCA_plm_ssh_agent": f"{sys.executable} {agent}",
        }
        texts = []
        try:
            head.meet(self.given["meet_seconds"], self.end)
            report["stage"] = "measure"
            for collective in self.given["collectives"]:
                status, output, error = run(self.module, self._mpirun(head.hosts(), collective), self.left(), environment)
                texts.append(f"{output}\n{error}")
                parsed = parse_nccl_tests(output)
                parsed["collective"] = parsed["collective"] or collective
                self._take(parsed, output, status, result)
                report["nccl"] = report["nccl"] or parsed["nccl"]
                # Values that came out wrong are an error of the program too, and a result.
                if status and not parsed["out_of_bounds"]:
                    report["error"] = failure_text(collective, status, error or output, parsed["errors"])
                    break
            else:
                report["stage"] = "done"
            failed = report["error"] is not None
            result["reports"] = [report, *head.reports(failed)]
            finish(failed, "\n".join(texts) if failed else "")
        finally:
            head.close()

    def _mpirun(self, hosts, collective):
        smallest, largest = min(self.given["sizes"]), max(self.given["sizes"])
        steps = ["-f", str(max(2, largest // smallest))] if smallest != largest else []
        return [
            "mpirun", "-np", str(self.world), "--host", ",".join(f"{host}:1" for host in hosts), "--map-by", "node", "--bind-to", "none",
            os.path.join(self.given["nccl_tests_folder"], f"{collective}_perf"), "-b", str(smallest), "-e", str(largest), *steps, "-g", "1", "-c", "1",
            "-n", str(ITERATIONS), "-w", str(WARM_UP),
        ]

    def _take(self, parsed, output, status, result):
        """What a program printed, into the result; values that came out wrong make the program end with an error of its own."""
        result["rows"] += flat_rows(parsed)
        ranks = len({rank["rank"] for rank in parsed["ranks"]})
        result["ranks"] = min(result["ranks"], ranks) if result["ranks"] else ranks
        result["unread"] += parsed["unread"]
        if not status and not parsed["rows"] and not parsed["ranks"] and output.strip():
            result["unread"].append(" ".join(output.split())[:LONGEST_SAID])
        elif not status and parsed["rows"] and parsed["out_of_bounds"] is None and parsed["average"] is None:
            result["unread"].append("the output ends before its summary")

    def _follow(self, report, finish):
        def start(command, seconds):
            path = command[0] if os.access(command[0], os.X_OK) else os.path.basename(command[0])
            if not os.path.isabs(path) and not self.module.get_bin_path(path):
                return NOT_RUN, "", f"{path} is not on this node\n"
            return run(self.module, [path, *command[1:]], max(1, int(seconds)), {**OPEN_MPI, **self.environment})

        def tell(failed):
            warnings = finish(failed, "")
            report["stage"] = "measure" if failed else "done"
            if failed and warnings:
                report["error"] = warnings[0]
            return {**report, "counters": grown_counters(self.before, read_counters())}

        _nccl_launch.work(
            self.given["address"], self.given["port"], self.rank, self.given["key"], self.given["meet_seconds"], self.end + GRACE_SECONDS, start, tell
        )

    # --- both ------------------------------------------------------------------------------------------------------

    def run(self):
        """The result of this node's part."""
        try:
            result = self.by_programs() if self.given["nccl_tests_folder"] else self.by_torch()
        finally:
            _marked.end_marked(self.mark)
            shutil.rmtree(self.folder, ignore_errors=True)
        for row in result["rows"]:
            row["busbw_gbps"] = round(row["busbw"] * BITS, 2)
        grown = grown_counters(self.before, read_counters())
        for report in result["reports"]:
            if report.get("rank") == self.rank:
                report["counters"] = grown
        result["report"]["counters"] = grown
        result["way"] = "nccl-tests" if self.given["nccl_tests_folder"] else "torch"
        shown = sorted(name for name in self.environment if _SHOWN.match(name) and name != "NCCL_DEBUG_FILE")
        result["environment"] = {name: self.environment[name] for name in shown}
        result["seconds"] = round(time.monotonic() - self.begin, 1)
        return result


def main():
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "address": {"type": "str", "required": True},
            "port": {"type": "int", "default": 6386},
            "environment_file": {"type": "path", "default": "/etc/gb10/nccl.env"},
            "environment": {"type": "dict", "default": {}},
            "python": {"type": "path", "default": "/opt/gb10/current/bin/python"},
            "nccl_tests_folder": {"type": "path"},
            "collectives": {
                "type": "list", "elements": "str", "choices": ["all_reduce", "all_gather"], "default": ["all_reduce", "all_gather"],
            },
            "sizes": {"type": "list", "elements": "int", "default": [8388608, 1073741824]},
            "device": {"type": "int", "default": 0},
            "meet_seconds": {"type": "int", "default": 30},
            "limit_seconds": {"type": "int", "default": 90},
            "topology": {"type": "str", "choices": ["pair", "ring", "switch"], "default": "pair"},
            "expected": {"type": "float"},
            "minimum": {"type": "float"},
            "rdma_gbps": {"type": "float"},
            "nccl_version": {"type": "str"},
            "rank": {"type": "int", "default": 0},
            "key": {"type": "str", "default": "", "no_log": True},
        },
        supports_check_mode=True,
    )
    given = module.params
    outside = [size for size in given["sizes"] if not 0 < size <= LARGEST]
    if outside or not given["sizes"]:
        module.fail_json(msg=f"sizes is {given['sizes']}: give one or more sizes from 1 to {LARGEST} bytes, since memory is one pool for CPU and GPU.")
    if not given["collectives"]:
        module.fail_json(msg="collectives is empty: name all_reduce, all_gather or both.")

    def stop(number, _frame):
        raise SystemExit(128 + number)

    # A connection that is cut, or a play that is stopped, must not leave ranks behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    module.exit_json(changed=False, **Gate(module).run())


if __name__ == "__main__":
    main()
