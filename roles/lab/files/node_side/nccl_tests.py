# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""all_reduce_perf and all_gather_perf of nccl-tests 2.19: one rank a node. Open MPI tells the rank, as its environment of a process has it,
and NCCL_COMM_ID where ranks meet; the choice of network follows the NCCL variables; bytes go over the rails to the next rank; speed and
faults are the state's."""

from __future__ import annotations

import argparse
import ipaddress
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import time

import rails

# Operation and root that a row names, and the bytes that a link carries for one of the buffer.
COLLECTIVES = {
    "all_reduce": ("sum", lambda ranks: 2 * (ranks - 1) / ranks),
    "all_gather": ("none", lambda ranks: (ranks - 1) / ranks),
}
NCCL_FAILURE, WRONG_VALUES = 3, 1
LIBRARIES = "/run/gb10-lab-nccl"
# What NCCL gets out of the wire: 24 GB/s of two rails at 98 Gb/s each.
EFFICIENCY = 0.98
LATENCY_US = {"IB": 22.0, "Socket": 60.0}
MEETING_LIMIT = 60
# The real ones take seconds to measure.
SECONDS_TO_MEASURE = 0.6


class NcclError(Exception):
    """A warning line of NCCL, after which the test fails."""


def size_of(text: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(float(text[:-1]) * units[text[-1].upper()]) if text[-1].upper() in units else int(text)


def options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nccl-tests", allow_abbrev=False)
    parser.add_argument("-b", "--minbytes", type=size_of, default=32 * 2**20)
    parser.add_argument("-e", "--maxbytes", type=size_of, default=32 * 2**20)
    parser.add_argument("-f", "--stepfactor", type=int, default=0)
    parser.add_argument("-i", "--stepbytes", type=size_of, default=2**20)
    parser.add_argument("-g", "--ngpus", type=int, default=1)
    parser.add_argument("-t", "--nthreads", type=int, default=1)
    parser.add_argument("-n", "--iters", type=int, default=20)
    parser.add_argument("-w", "--warmup_iters", type=int, default=1)
    parser.add_argument("-c", "--check", type=int, default=1)
    for other in ("-d", "-o", "-r", "-m", "-p", "-z", "-G", "-a"):
        parser.add_argument(other)
    return parser.parse_args(argv)


def rank_and_size() -> tuple[int, int]:
    for rank, size in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def code_of(version: str) -> int:
    """2.28.3 is 22803."""
    major, minor, patch = (int(part) for part in version.split("."))
    return major * 10000 + minor * 100 + patch


def library(build_id: str) -> bytes:
    """An ELF file with nothing but a build id."""
    value = bytes.fromhex(build_id)
    note = struct.pack("<III", 4, len(value), 3) + b"GNU\0" + value + b"\0" * (-len(value) % 4)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 183, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4) + note


def load_library(nccl: dict) -> mmap.mmap:
    """What a program that is linked with NCCL has in its memory map."""
    path = os.path.join(LIBRARIES, f"libnccl.so.{nccl['version']}-{nccl['build_id'][:8]}")
    os.makedirs(LIBRARIES, exist_ok=True)
    with open(path, "wb") as handle:
        handle.write(library(nccl["build_id"]))
    with open(path, "rb") as handle:
        return mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ)


def chosen_devices() -> list[str]:
    """NCCL_IB_HCA as NCCL reads it: ^ excludes, = wants whole names, else names begin so."""
    selector = os.environ.get("NCCL_IB_HCA", "")
    exclude, exact = selector.startswith("^"), selector.lstrip("^").startswith("=")
    names = [word.split(":")[0] for word in selector.lstrip("^=").split(",") if word]

    def is_named(device: str) -> bool:
        return any(device == name if exact else device.startswith(name) for name in names)

    return [device for device in rails.devices() if not names or is_named(device) != exclude]


def interfaces() -> dict[str, list[ipaddress.IPv4Interface]]:
    shown = json.loads(subprocess.run(["ip", "-json", "-4", "address"], capture_output=True, text=True, check=True).stdout)
    return {
        entry["ifname"]: [ipaddress.IPv4Interface(f"{address['local']}/{address['prefixlen']}") for address in entry["addr_info"]]
        for entry in shown if entry.get("addr_info")
    }


def socket_interface(found: dict[str, list[ipaddress.IPv4Interface]]) -> tuple[str, str]:
    selector = os.environ.get("NCCL_SOCKET_IFNAME", "")
    exclude, exact = selector.startswith("^"), selector.lstrip("^").startswith("=")
    names = [word for word in selector.lstrip("^=").split(",") if word]
    for name, addresses in found.items():
        named = any(name == other if exact else name.startswith(other) for other in names)
        if (named != exclude) if names else name != "lo":
            return name, str(addresses[0].ip)
    raise NcclError("Bootstrap : no socket interface found")


class Rank:
    def __init__(self, number: int, size: int):
        self.number, self.size = number, size
        self.host = socket.gethostname()
        self.debug = os.environ.get("NCCL_DEBUG", "").upper() in ("INFO", "TRACE")
        self.log = open(os.environ["NCCL_DEBUG_FILE"], "w") if os.environ.get("NCCL_DEBUG_FILE") else sys.stdout

    def info(self, text: str, level: str = "INFO") -> None:
        if self.debug or level == "WARN":
            print(f"{self.host}:{os.getpid()}:{os.getpid()} [0] NCCL {level} {text}", file=self.log, flush=True)

    def describe(self) -> dict:
        """What the others must know of this rank: its network and where it takes bytes."""
        found = interfaces()
        name, address = socket_interface(found)
        state = rails.links()
        nccl, wanted_network = state["nccl"], os.environ.get("NCCL_NET", "")
        self.info(f"Bootstrap: Using {name}:{address}<0>")
        self.info(f"NCCL version {nccl['version']}+cuda13.0")
        ends = []
        disabled = os.environ.get("NCCL_IB_DISABLE", "0") == "1"
        # A network plugin of another hand drops to sockets without a word, whatever it was asked for.
        if not disabled and wanted_network != "Socket" and not nccl["sockets"]:
            ports = [port for port in map(rails.read_port, chosen_devices()) if port.active]
            wanted = int(os.environ.get("NCCL_IB_GID_INDEX", "-1"))
            for port in ports:
                index = port.gid_index() if wanted < 0 else wanted
                own = rails.ipv4_of(port.gids.get(index, "")) if port.types.get(index) == "RoCE v2" else None
                network = next((str(interface.network) for interface in found.get(port.netdev, []) if str(interface.ip) == own), None)
                sink = rails.Sink(port.netdev, own) if own else None
                ends.append({
                    "device": port.device, "netdev": port.netdev, "address": own, "network": network, "port": sink.port if sink else None,
                    "gbps": state["rails"][port.netdev]["speed_gbps"],
                })
        kind = "IB" if ends else "Socket"
        if ends:
            listed = " ".join(f"[{number}]{end['device']}:1/RoCE" for number, end in enumerate(ends))
            self.info(f"NET/IB : Using {listed} [RO]; OOB {name}:{address}<0>")
        else:
            self.info("NCCL_IB_DISABLE set by environment to 1." if disabled else "NET/IB : No device found.")
            if wanted_network == "IB" and not nccl["sockets"]:
                raise NcclError("Failed to initialize any NET plugin")
            self.info(f"NET/Socket : Using [0]{name}:{address}<0>")
            sink = rails.Sink(name, address)
            ends = [{"device": None, "netdev": name, "address": address, "network": None, "port": sink.port, "gbps": nccl["socket_gbytes"] * 8}]
        self.info(f"Using network {kind}")
        for end in ends if kind == "IB" else []:
            self.info(f"GPU Direct RDMA Disabled for HCA 0 '{end['device']}'")
        return {
            "rank": self.number, "host": self.host, "pid": os.getpid(), "gpu": state["gpu"], "kind": kind, "ends": ends,
            "gbytes": nccl["gbytes"], "wrong": nccl["wrong"], "version": nccl["version"],
        }

    def send_to_next(self, everyone: list[dict]) -> float:
        """Bytes to the next rank over each of this rank's ends. Returns the Gb/s that they give together."""
        mine, following = everyone[self.number], everyone[(self.number + 1) % self.size]
        if mine["kind"] != following["kind"]:
            raise NcclError(f"Mismatched networks: rank {mine['rank']} uses {mine['kind']}, rank {following['rank']} uses {following['kind']}")
        total = 0.0
        for number, end in enumerate(mine["ends"]):
            device = f"on dev {end['device']}:1" if end["device"] else f"on interface {end['netdev']}"
            if mine["kind"] == "IB":
                same = [other for other in following["ends"] if other["network"] and other["network"] == end["network"]]
                peer = same[0] if same else following["ends"][min(number, len(following["ends"]) - 1)]
                if not end["address"] or not peer["address"]:
                    raise NcclError(f"ibv_modify_qp failed with 61 No data available, {device}")
            else:
                peer = following["ends"][0]
            outcome = rails.push(end["netdev"], end["address"], peer["address"], peer["port"])
            if outcome == "unreachable":
                what = "ibv_modify_qp failed with 110 Connection timed out" if end["device"] else "socketProgress: Connection timed out"
                raise NcclError(f"{what}, {device}")
            if outcome:
                raise NcclError(f"NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129, {device}")
            via = f"NET/{mine['kind']}/{number}"
            self.info(f"Channel {number:02d}/0 : {self.number}[0] -> {following['rank']}[0] [send] via {via}")
            total += min(end["gbps"], peer["gbps"])
        self.info("Connected all rings, use ring PXN 0 GDR 0")
        return total


def meet(rank: Rank, mine: dict) -> tuple[list[dict], list]:
    """All ranks tell rank 0, rank 0 tells all. Returns every description, and the talks that stay open."""
    if rank.size == 1:
        return [mine], []
    address, _colon, port = os.environ.get("NCCL_COMM_ID", "").rpartition(":")
    if not address:
        raise NcclError("Bootstrap : NCCL_COMM_ID=ADDRESS:PORT of rank 0 is not set and there is no MPI to tell it")
    if rank.number == 0:
        talks = {}
        with socket.create_server((address, int(port))) as listener:
            listener.settimeout(MEETING_LIMIT)
            while len(talks) < rank.size - 1:
                talk = listener.accept()[0].makefile("rw")
                theirs = json.loads(talk.readline())
                talks[theirs["rank"]] = (talk, theirs)
        everyone = [mine, *(talks[number][1] for number in range(1, rank.size))]
        ordered = [talks[number][0] for number in range(1, rank.size)]
    else:
        ordered = [call(address, int(port)).makefile("rw")]
        tell(ordered[0], mine)
        return json.loads(ordered[0].readline()), ordered
    for talk in ordered:
        tell(talk, everyone)
    return everyone, ordered


def call(address: str, port: int) -> socket.socket:
    """Rank 0 may come later than the others."""
    deadline = time.monotonic() + MEETING_LIMIT
    while True:
        try:
            return socket.create_connection((address, port), timeout=MEETING_LIMIT)
        except OSError as error:
            if time.monotonic() > deadline:
                raise NcclError(f"socketStartConnect: Connect to {address}<{port}> failed : {error.strerror}") from error
            time.sleep(0.2)


def tell(talk, value: object) -> None:
    talk.write(json.dumps(value) + "\n")
    talk.flush()


def number(value: float) -> str:
    """nccl-tests' seven characters: two decimals while they fit."""
    return f"{value:7.2f}" if value < 10000 else f"{value:7.0f}"


def print_head(collective: str, wanted: argparse.Namespace, everyone: list[dict]) -> None:
    step = f"{wanted.stepfactor}(factor)" if wanted.stepfactor > 1 else f"{wanted.stepbytes}(bytes)"
    code = code_of(everyone[0]["version"])
    print(f"# nccl-tests version 2.19.6 nccl-headers={code} nccl-library={code}")
    print(f"# Collective test starting: {collective}_perf")
    print(
        f"# nThread {wanted.nthreads} nGpus {wanted.ngpus} minBytes {wanted.minbytes} maxBytes {wanted.maxbytes} step: {step} "
        f"warmup iters: {wanted.warmup_iters} iters: {wanted.iters} agg iters: 1 validation: {wanted.check} graph: 0 unalign: 0\n#"
    )
    print("# Using devices")
    for one in everyone:
        print(f"#  Rank {one['rank']:2d} Group  0 Pid {one['pid']:6d} on {one['host']:>10} device  0 [000f:01:00] {one['gpu']}")


def print_rows(collective: str, wanted: argparse.Namespace, ranks: int, kind: str, gbps: float, wrong: int = 0) -> None:
    print("#\n#                                                              out-of-place                       in-place          ")
    print("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ")
    print("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ")
    operation, carried = COLLECTIVES[collective]
    factor = carried(ranks)
    size, bandwidths = wanted.minbytes, []
    counted = f"{wrong:7g}" if wanted.check else "    N/A"
    while size <= wanted.maxbytes:
        # A rank alone only touches its memory.
        duration = LATENCY_US[kind] + size * factor / (gbps / 8 * EFFICIENCY * 1e3) if ranks > 1 else 7.0 + size / 2e6
        algorithm = size / duration / 1e3
        bandwidths.append(algorithm * factor)
        cells = f"{number(duration):>8} {number(algorithm)} {number(algorithm * factor)} {counted}"
        count = size // 4 // (ranks if collective == "all_gather" else 1)
        print(f"{size:12d}  {count:12d}     float  {operation:>6}      -1 {cells} {cells}")
        size = size * wanted.stepfactor if wanted.stepfactor > 1 else size + wanted.stepbytes
    bad = 2 * wrong * len(bandwidths) if wanted.check else 0
    print(f"# Out of bounds values : {bad} {'FAILED' if bad else 'OK'}")
    print(f"# Avg bus bandwidth    : {sum(bandwidths) / len(bandwidths):g} \n#\n# Collective test concluded: {collective}_perf\n#\n")


def main(argv: list[str]) -> int:
    collective, wanted = argv[0], options(argv[1:])
    nccl = rails.links()["nccl"]
    loaded = load_library(nccl)
    # Built without MPI, each process is a world of its own.
    rank = Rank(0, 1) if nccl["single_rank"] else Rank(*rank_and_size())
    if wanted.ngpus * wanted.nthreads > 1:
        print("Invalid number of GPUs: more GPUs per process requested than there are", file=sys.stderr)
        return 5
    talks: list = []
    try:
        everyone, talks = meet(rank, rank.describe())
        outcome = {"gbps": rank.send_to_next(everyone) if rank.size > 1 else 0.0, "error": None}
    except (NcclError, OSError) as error:
        everyone, outcome = [], {"gbps": 0.0, "error": str(error)}
        rank.info(str(error), "WARN")
    time.sleep(SECONDS_TO_MEASURE)
    if rank.number:
        # Rank 0 waits for every outcome; the sinks of this rank live until it has them all.
        if talks:
            tell(talks[0], outcome)
            talks[0].readline()
        outcomes = [outcome]
    else:
        outcomes = [outcome, *(json.loads(talk.readline() or '{"gbps": 0, "error": "a rank went away"}') for talk in talks)]
        for talk in talks:
            tell(talk, "done")
    loaded.close()
    errors = [each["error"] for each in outcomes if each["error"]]
    if errors:
        print(f"{rank.host}: Test NCCL failure common.cu:{os.getpid()} 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '")
        return NCCL_FAILURE
    wrong = max(each["wrong"] for each in everyone)
    if rank.number == 0:
        print_head(collective, wanted, everyone)
        # What NCCL makes of good rails, where the state says so.
        limits = [each["gbytes"] * 8 / EFFICIENCY for each in everyone if each["gbytes"]]
        print_rows(collective, wanted, rank.size, everyone[0]["kind"], min([each["gbps"] for each in outcomes] + limits), wrong)
    return WRONG_VALUES if wrong and wanted.check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
