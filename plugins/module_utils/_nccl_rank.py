# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of the NCCL gate, a program for the Python of the release: the module nccl_gate lays it beside _elf.py and runs it.

Ranks meet at a TCP store of rank 0, without MPI, compare what they are, run the collectives and tell rank 0 how it went. The last line
of the output is MARK and a JSON object; what NCCL logs stands before it.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import sys
import threading
import time

MARK = "gb10-nccl-rank "
# What is left of the time limit for the report of a rank that hangs.
REPORT_SECONDS = 5
MEASURE_SECONDS = 0.7
MOST_ITERATIONS, FEWEST_ITERATIONS, WARM_UP = 20, 3, 2
WORD_BYTES = 4
# Values differ from place to place, and their sums over ranks are whole numbers that float32 holds exactly.
PATTERN = 251
# So many values are made and compared at once: a copy of the whole buffer would take as much memory again.
PIECE_WORDS = 1 << 24


def bus_factor(collective, world):
    """Bytes that each link carries for a byte of the buffer (nccl-tests, PERFORMANCE.md)."""
    return (2 if collective == "all_reduce" else 1) * (world - 1) / world


def loaded_library(maps="/proc/self/maps"):
    """Path, size and ELF build id of the NCCL that this process has loaded."""
    from _elf import read_build_id  # its file lies beside this one

    with open(maps, encoding="utf-8") as stream:
        paths = [line.split(None, 5)[-1].strip() for line in stream if "libnccl" in line and ".so" in line and "libnccl-" not in line]
    if not paths:
        return None
    with open(paths[0], "rb") as stream:

        def read(offset, size):
            stream.seek(offset)
            return stream.read(size)

        return {"path": paths[0], "size_bytes": os.path.getsize(paths[0]), "build_id": read_build_id(read)}


class Rank:
    """A rank: `report` is what it has to say, whatever becomes of it."""

    def __init__(self, task):
        self.task = task
        self.rank, self.world = task["rank"], task["world"]
        self.report = {"rank": self.rank, "host": socket.gethostname(), "stage": "torch", "error": None, "rows": []}
        self.store = None
        self.reports = [self.report]

    def say(self):
        """Write the last line."""
        sys.stdout.write("\n" + MARK + json.dumps({"report": self.report, "reports": self.reports}) + "\n")
        sys.stdout.flush()

    def tell(self):
        """Leave the report with rank 0."""
        if self.store is not None:
            self.store.set(f"report/{self.rank}", json.dumps(self.report))

    def watch(self, end):
        """End the process when it is late, wherever it hangs."""
        time.sleep(max(0.0, end - time.monotonic()))
        self.report["error"] = f"no end after {self.task['limit']} s"
        self.say()
        os._exit(4)

    def meet(self, dist):
        """Every rank comes to the store and says what it is."""
        self.report["stage"] = "meet"
        wait = datetime.timedelta(seconds=self.task["meet"])
        self.store = dist.TCPStore(
            self.task["address"], self.task["port"], self.world, self.rank == 0, timeout=wait, wait_for_workers=False
        )
        self.store.set(f"here/{self.rank}", "1")
        for other in range(self.world):
            try:
                self.store.wait([f"here/{other}"], wait)
            except Exception as error:
                raise RuntimeError(f"rank {other} did not come within {self.task['meet']} s") from error

    def pieces(self, torch, values):
        """A tensor in pieces, each with what a rank's pattern has there, without what the rank adds."""
        for begin in range(0, values.numel(), PIECE_WORDS):
            piece = values[begin : begin + PIECE_WORDS]
            yield piece, (torch.arange(begin, begin + piece.numel(), device=values.device) % PATTERN).to(values.dtype)

    def fill(self, torch, values, rank):
        """Put a rank's pattern into a tensor."""
        for piece, pattern in self.pieces(torch, values):
            piece.copy_(pattern + rank)

    def count_wrong(self, torch, values, factor, added):
        """How many values are not factor times the pattern and so much more."""
        return sum(int((piece != pattern * factor + added).sum()) for piece, pattern in self.pieces(torch, values))

    def measure(self, torch, dist, collective, size):
        """Compare each value of one collective with buffers of so many bytes in all, and time it."""
        words = max(size // WORD_BYTES // self.world, 1) * self.world
        whole = torch.zeros(words, dtype=torch.float32, device="cuda")
        if collective == "all_reduce":
            self.fill(torch, whole, self.rank)
            dist.all_reduce(whole)
            wrong = self.count_wrong(torch, whole, self.world, sum(range(self.world)))
            whole.zero_()

            def once():
                dist.all_reduce(whole)
        else:
            part = torch.empty(words // self.world, dtype=torch.float32, device="cuda")
            self.fill(torch, part, self.rank)
            dist.all_gather_into_tensor(whole, part)
            wrong = sum(self.count_wrong(torch, chunk, 1, number) for number, chunk in enumerate(whole.chunk(self.world)))

            def once():
                dist.all_gather_into_tensor(whole, part)

        def timed(count):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _number in range(count):
                once()
            torch.cuda.synchronize()
            # The slowest rank counts, so that all ranks go on alike.
            spent = torch.tensor([time.perf_counter() - begin], device="cuda")
            dist.all_reduce(spent, dist.ReduceOp.MAX)
            return float(spent) / count

        each = timed(WARM_UP)
        count = min(MOST_ITERATIONS, max(FEWEST_ITERATIONS, int(MEASURE_SECONDS / max(each, 1e-6))))
        each = timed(count)
        everywhere = torch.tensor([wrong], dtype=torch.int64, device="cuda")
        dist.all_reduce(everywhere)
        algorithm = words * WORD_BYTES / each / 1e9
        self.report["rows"].append(
            {
                "collective": collective,
                "bytes": words * WORD_BYTES,
                "iterations": count,
                "time_us": round(each * 1e6, 2),
                "algbw": round(algorithm, 3),
                "busbw": round(algorithm * bus_factor(collective, self.world), 3),
                "wrong": int(everywhere),
            }
        )

    def work(self):
        """All of it, each stage named before it begins."""
        import torch
        import torch.distributed as dist

        self.report.update(stage="gpu", torch=torch.__version__)
        torch.cuda.set_device(self.task["device"])
        self.report["gpu"] = torch.cuda.get_device_name()
        self.report["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
        self.report["library"] = loaded_library()
        self.meet(dist)
        self.report["stage"] = "connect"
        dist.init_process_group(
            "nccl", store=dist.PrefixStore("nccl", self.store), rank=self.rank, world_size=self.world,
            timeout=datetime.timedelta(seconds=self.task["limit"]), device_id=torch.device("cuda", self.task["device"]),
        )
        dist.barrier()
        self.report["stage"] = "measure"
        for collective in self.task["collectives"]:
            for size in self.task["sizes"]:
                self.measure(torch, dist, collective, size)
        self.report["stage"] = "done"

    def gather(self, end):
        """Rank 0 is the store: it stays until every rank has left its report."""
        for other in range(1, self.world):
            left = max(1.0, end - time.monotonic())
            try:
                self.store.wait([f"report/{other}"], datetime.timedelta(seconds=left))
                self.reports.append(json.loads(self.store.get(f"report/{other}")))
            except Exception as error:
                self.reports.append({"rank": other, "stage": "unknown", "error": f"left no report: {type(error).__name__}", "rows": []})


def main():
    """Be one rank."""
    rank = Rank(json.loads(sys.argv[1]))
    end = time.monotonic() + rank.task["limit"]
    threading.Thread(target=rank.watch, args=(end,), daemon=True).start()
    try:
        rank.work()
    except Exception as error:
        rank.report["error"] = f"{type(error).__name__}: {error}"
    try:
        rank.tell()
        if rank.rank == 0 and rank.store is not None:
            rank.gather(end - REPORT_SECONDS if rank.report["error"] is None else time.monotonic() + REPORT_SECONDS)
    except Exception as error:
        rank.report["error"] = rank.report["error"] or f"{type(error).__name__}: {error}"
    rank.say()
    # Without the destructors, which wait for a peer that is gone.
    os._exit(0 if rank.report["error"] is None else 3)


if __name__ == "__main__":
    main()
