# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rank's own program against a torch that is as much of one as it uses: what it says whatever happens, and what it compares."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gb10.fleet.plugins.module_utils import _nccl_rank

UTILS = Path(_nccl_rank.__file__).parent
# A torch of whole numbers in lists, with one rank or with a second one that adds the same pattern and one more.
TORCH = '''
import sys, types
class Tensor:
    dtype, device = "float32", "cuda"
    def __init__(self, values): self.values = values
    def numel(self): return len(self.values)
    def __getitem__(self, part): return View(self, part)
    def _with(self, other, do):
        others = other.values if isinstance(other, Tensor) else [other] * len(self.values)
        return Tensor([do(a, b) for a, b in zip(self.values, others)])
    def __mod__(self, other): return self._with(other, lambda a, b: a % b)
    def __mul__(self, other): return self._with(other, lambda a, b: a * b)
    def __add__(self, other): return self._with(other, lambda a, b: a + b)
    def __ne__(self, other): return self._with(other, lambda a, b: a != b)
    def to(self, _type): return self
    def sum(self): return sum(self.values)
    def zero_(self): self.values[:] = [0] * len(self.values)
    def __float__(self): return float(self.values[0])
    def __int__(self): return int(self.values[0])
    def chunk(self, count):
        size = len(self.values) // count
        return [Tensor(self.values[n * size:(n + 1) * size]) for n in range(count)]
class View(Tensor):
    def __init__(self, whole, part): self.whole, self.part, self.values = whole, part, whole.values[part]
    def copy_(self, other): self.whole.values[self.part] = other.values
WORLD, SPOIL = {world}, {spoil}
def all_reduce(tensor, how=None):
    if how is None and len(tensor.values) > 1 and WORLD == 2:
        tensor.values[:] = [value + n % 251 + 1 for n, value in enumerate(tensor.values)]
        tensor.values[3] += SPOIL
def gather(whole, part):
    whole.values[:] = [value + rank for rank in range(WORLD) for value in part.values]
    whole.values[-1] += SPOIL
class Store:
    kept = {{}}
    def __init__(self, *_arguments, **_options): pass
    def set(self, key, value): self.kept[key] = value
    def get(self, key): return self.kept[key]
    def wait(self, keys, _limit):
        if keys[0] == "here/1" and {comes} or keys[0] in self.kept: return
        if keys[0] == "report/1" and {comes}: self.kept[keys[0]] = '{{"rank": 1, "error": null, "rows": []}}'; return
        raise RuntimeError("wait timeout")
__version__, float32, int64 = "2.11", "float32", "int64"
zeros = lambda words, **_more: Tensor([0] * words)
empty = zeros
arange = lambda begin, end, **_more: Tensor(list(range(begin, end)))
tensor = lambda values, **_more: Tensor(list(values))
device = lambda *_parts: "cuda"
cuda = types.SimpleNamespace(
    set_device=lambda number: {gpu}, get_device_name=lambda: "NVIDIA GB10", synchronize=lambda: None, nccl=types.SimpleNamespace(version=lambda: (2, 28, 9))
)
distributed = types.ModuleType("torch.distributed")
distributed.__dict__.update(
    TCPStore=Store, PrefixStore=lambda name, store: store, init_process_group=lambda *_a, **_o: None, barrier=lambda: None, all_reduce=all_reduce,
    all_gather_into_tensor=gather, ReduceOp=types.SimpleNamespace(MAX="max"),
)
sys.modules["torch.distributed"] = distributed
'''
TASK = {
    "rank": 0, "world": 2, "address": "127.0.0.1", "port": 1, "device": 0, "meet": 1, "limit": 20, "collectives": ["all_reduce", "all_gather"],
    "sizes": [4096, 8192],
}


@pytest.fixture(name="rank")
def rank_fixture(tmp_path):
    def run(task=None, **torch):
        values = {"world": 2, "spoil": 0, "comes": "True", "gpu": "None", **torch}
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").write_text(TORCH.format(**values))
        for name, source in (("_elf.py", "_elf.py"), ("rank.py", "_nccl_rank.py")):
            (tmp_path / name).write_text((UTILS / source).read_text())
        done = subprocess.run(
            [sys.executable, str(tmp_path / "rank.py"), json.dumps({**TASK, **(task or {})})], capture_output=True, text=True, timeout=60, check=False
        )
        last = done.stdout.splitlines()[-1]
        assert last.startswith(_nccl_rank.MARK), done
        return done.returncode, json.loads(last[len(_nccl_rank.MARK):])

    return run


def test_two_ranks_with_right_values(rank):
    status, result = rank()
    report = result["report"]
    assert status == 0 and (report["stage"], report["error"], report["nccl"], report["gpu"]) == ("done", None, "2.28.9", "NVIDIA GB10")
    assert [other["rank"] for other in result["reports"]] == [0, 1]
    rows = report["rows"]
    assert [(row["collective"], row["bytes"], row["wrong"]) for row in rows] == [
        ("all_reduce", 4096, 0), ("all_reduce", 8192, 0), ("all_gather", 4096, 0), ("all_gather", 8192, 0),
    ]
    # Two ranks: bus bandwidth is the algorithm's for all_reduce, half of it for all_gather.
    assert all(row["busbw"] == pytest.approx(row["algbw"] * (1 if row["collective"] == "all_reduce" else 0.5), abs=0.001) for row in rows)
    assert all(row["algbw"] == pytest.approx(row["bytes"] / row["time_us"] / 1e3, abs=0.002) for row in rows)


def test_a_value_that_comes_out_wrong_is_counted(rank):
    _status, result = rank(spoil=1)
    assert [row["wrong"] for row in result["report"]["rows"]] == [1, 1, 1, 1]


def test_a_rank_alone_has_no_bus_bandwidth(rank):
    status, result = rank({"world": 1}, world=1)
    assert status == 0 and {row["busbw"] for row in result["report"]["rows"]} == {0}


def test_a_peer_that_does_not_come(rank):
    status, result = rank(comes="False")
    assert status == 3 and result["report"]["stage"] == "meet" and result["report"]["error"] == "RuntimeError: rank 1 did not come within 1 s"
    assert result["reports"][1]["stage"] == "unknown"


def test_no_gpu(rank):
    status, result = rank(gpu="1 / 0", comes="False")
    assert status == 3 and (result["report"]["stage"], result["report"]["error"]) == ("gpu", "ZeroDivisionError: division by zero")


def test_a_rank_that_hangs_ends_itself_and_says_so(rank):
    status, result = rank({"limit": 1}, gpu="__import__('time').sleep(30)")
    assert status == 4 and (result["report"]["stage"], result["report"]["error"]) == ("gpu", "no end after 1 s")


@pytest.mark.parametrize("collective, world, factor", [("all_reduce", 2, 1.0), ("all_gather", 2, 0.5), ("all_reduce", 4, 1.5), ("all_gather", 1, 0)])
def test_bus_factor(collective, world, factor):
    assert _nccl_rank.bus_factor(collective, world) == factor


def test_the_library_that_is_loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(UTILS))
    library = tmp_path / "libnccl.so.2"
    library.write_bytes(b"no ELF file")
    maps = tmp_path / "maps"
    maps.write_text(f"7f-7f r-xp 0 08:01 9    /usr/lib/libnccl-net.so\n7f-7f r-xp 0 08:01 9    {library}\n")
    assert _nccl_rank.loaded_library(str(maps)) == {"path": str(library), "size_bytes": 11, "build_id": None}
    maps.write_text("7f-7f r-xp 0 08:01 9    /usr/lib/libc.so.6\n")
    assert _nccl_rank.loaded_library(str(maps)) is None
