# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ib_write_bw of perftest 6: its options, its meeting over TCP, its print; bytes go over the rail, the speed is the state's."""

from __future__ import annotations

import argparse
import ipaddress
import json
import random
import socket
import sys

import rails

LINE = "-" * 87
DEFAULT_PORT = 18515


def options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="ib_write_bw", add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--ib-dev", default="")
    parser.add_argument("-x", "--gid-index", type=int)
    parser.add_argument("-i", "--ib-port", type=int, default=1)
    parser.add_argument("-p", "--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("-s", "--size", type=int, default=65536)
    parser.add_argument("-n", "--iters", type=int, default=5000)
    parser.add_argument("-D", "--duration", type=int)
    parser.add_argument("-q", "--qp", type=int, default=1)
    parser.add_argument("-t", "--tx-depth", type=int, default=128)
    parser.add_argument("-m", "--mtu", type=int)
    parser.add_argument("-S", "--sl")
    parser.add_argument("-a", "--all", action="store_true")
    parser.add_argument("-F", "--CPU-freq", action="store_true")
    parser.add_argument("-R", "--rdma_cm", action="store_true")
    parser.add_argument("-b", "--bidirectional", action="store_true")
    parser.add_argument("--report_gbits", action="store_true")
    parser.add_argument("--bind_source_ip")
    parser.add_argument("peer", nargs="?")
    return parser.parse_args(argv)


def say(text: str) -> None:
    print(text, flush=True)


def octets(gid: str) -> str:
    return ":".join(f"{byte:02d}" if byte < 100 else str(byte) for byte in ipaddress.IPv6Address(gid or "::").packed)


def header(wanted: argparse.Namespace, mine: dict, theirs: dict) -> None:
    columns = "BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]" if wanted.report_gbits else "BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
    say("\n".join([
        LINE,
        "                    RDMA_Write Bidirectional BW Test" if wanted.bidirectional else "                    RDMA_Write BW Test",
        f" Dual-port       : OFF\t\tDevice         : {mine['device']}",
        f" Number of qps   : {wanted.qp}\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: ON",
        " ibv_wr* API     : ON",
        *([f" TX depth        : {wanted.tx_depth}"] if wanted.peer else []),
        " CQ Moderation   : 1",
        f" Mtu             : {min(wanted.mtu or 4096, mine['mtu'], theirs['mtu'])}[B]",
        " Link type       : Ethernet",
        f" GID index       : {mine['index']}",
        " Max inline data : 0[B]",
        f" rdma_cm QPs\t : {'ON' if wanted.rdma_cm else 'OFF'}",
        f" Data ex. method : {'rdma_cm' if wanted.rdma_cm else 'Ethernet'}",
        LINE,
    ]))
    for side, end in (("local", mine), ("remote", theirs)):
        say(f" {side} address: LID 0000 QPN 0x{end['qpn']:04x} PSN 0x{end['psn']:x} RKey 0x{end['key']:06x} VAddr 0x{end['address_space']:012x}")
        say(f" GID: {octets(end['gid'])}")
    say(f"{LINE}\n #bytes     #iterations    {columns}")


def rows(wanted: argparse.Namespace, gbps: float) -> None:
    sizes = [2 ** power for power in range(1, 24)] if wanted.all else [wanted.size]
    for size in sizes:
        # Small messages are bound by the message rate of one queue pair.
        speed = min(gbps, size * 8 * 4.2e6 * wanted.qp / 1e9)
        rate = speed * 1e9 / 8 / size
        iterations = int(rate * wanted.duration) if wanted.duration else wanted.iters
        shown = speed if wanted.report_gbits else speed * 1e9 / 8 / 2**20
        peak = 0.0 if wanted.duration else shown
        say(f" {size:<7d}    {iterations:<10d}       {peak:<7.2f}            {shown:<7.2f}\t\t   {rate / 1e6:<7.6f}")


def fail(text: str, code: int = 1) -> int:
    print(text, file=sys.stderr, flush=True)
    return code


def meet(wanted: argparse.Namespace) -> socket.socket | None:
    """The meeting over TCP before the test, on whatever address the user gave."""
    if wanted.peer:
        try:
            return socket.create_connection((wanted.peer, wanted.port), timeout=10)
        except OSError:
            return None
    with socket.create_server(("", wanted.port)) as listener:
        connection, _peer = listener.accept()
        return connection


def main(argv: list[str]) -> int:
    wanted = options(argv)
    found = rails.devices()
    if not found:
        return fail("Did not detect devices \nIf device exists, check if driver is up\n Unable to find the Infiniband/RoCE device")
    device = wanted.ib_dev or found[0]
    if device not in found:
        return fail(f"IB device {device} not found\n Unable to find the Infiniband/RoCE device")
    port = rails.read_port(device)
    if not wanted.peer:
        say("\n************************************\n* Waiting for client to connect... *\n************************************")
    if not port.active:
        return fail(" Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device")
    index = port.gid_index() if wanted.gid_index is None else wanted.gid_index
    gid = port.gids.get(index, "")
    address = rails.ipv4_of(gid) if port.types.get(index) == "RoCE v2" else None
    sink = rails.Sink(port.netdev, address) if address else None
    connection = meet(wanted)
    if connection is None:
        return fail(
            f"Couldn't connect to {wanted.peer}:{wanted.port}\n"
            "Unable to open file descriptor for socket connection Unable to init the socket connection"
        )
    dice = random.Random()
    mine = {
        "device": device, "index": index, "gid": gid or "::", "mtu": port.active_mtu(), "address": address, "port": sink.port if sink else None,
        "gbps": rails.links()["rails"][port.netdev]["speed_gbps"], "qpn": dice.randrange(0x100, 0x2000), "psn": dice.randrange(1 << 24),
        "key": dice.randrange(1 << 24), "address_space": dice.randrange(1 << 44),
    }
    with connection, connection.makefile("rw") as talk:
        talk.write(json.dumps(mine) + "\n")
        talk.flush()
        theirs = json.loads(talk.readline() or "null")
        if theirs is None:
            return fail(" Unable to exchange data with the peer")
        header(wanted, mine, theirs)
        # The client drives the test and tells the server how it went.
        if wanted.peer:
            outcome = rails.push(port.netdev, address, theirs["address"], theirs["port"]) if address and theirs["address"] else "unreachable"
            talk.write(json.dumps(outcome) + "\n")
            talk.flush()
        else:
            outcome = json.loads(talk.readline() or '"unreachable"')
    if outcome == "unreachable":
        # A wrong GID index shows so on the real program too: no row, and no error code.
        return 0
    if outcome == "stalled":
        side = "client" if wanted.peer else "server"
        return fail(f" Completion with error at {side}\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0")
    rows(wanted, min(mine["gbps"], theirs["gbps"]) * (2 if wanted.bidirectional else 1))
    say(LINE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
