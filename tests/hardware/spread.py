# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A STRICT_SPREAD placement group over the Ray cluster: one actor with one GPU on each node, and a product split over both.

The product of two matrices is computed by one GPU and, column by column, by both with an all-reduce over NCCL: the same within rounding.
Prints one line of JSON.
"""
from __future__ import annotations

import json
import os
import sys
import time

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

SIZE = 4096


@ray.remote(num_gpus=1, num_cpus=0)
class Rank:
    """One of the ranks."""

    def about(self) -> dict:
        """Where it runs and what it sees."""
        import socket

        import torch

        return {
            "host": socket.gethostname(), "address": ray.util.get_node_ip_address(), "gpus": torch.cuda.device_count(),
            "gpu": torch.cuda.get_device_name(), "visible": os.environ.get("CUDA_VISIBLE_DEVICES"), "network": os.environ.get("NCCL_NET"),
        }

    def product(self, rank: int, world: int, address: str, port: int) -> dict:
        """Its part of the product, summed over all."""
        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl", init_method=f"tcp://{address}:{port}", rank=rank, world_size=world)
        generator = torch.Generator(device="cuda").manual_seed(10)
        left, right = (torch.randn(SIZE, SIZE, generator=generator, device="cuda") for _number in range(2))
        whole = left @ right
        mine = slice(rank * SIZE // world, (rank + 1) * SIZE // world)
        split = left[:, mine] @ right[mine, :]
        dist.all_reduce(split)
        begin = time.perf_counter()
        for _number in range(5):
            dist.all_reduce(split.clone())
        torch.cuda.synchronize()
        each = (time.perf_counter() - begin) / 5
        difference = float((split - whole).abs().max() / whole.abs().max())
        dist.destroy_process_group()
        return {"relative_difference": difference, "all_reduce_GBps": round(SIZE * SIZE * 4 / each / 1e9, 2)}


def main() -> None:
    """Ask for the group, then for the product."""
    count, port = int(sys.argv[1]), int(sys.argv[2])
    begin = time.monotonic()
    ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
    group = placement_group([{"GPU": 1}] * count, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=60)
    ready = time.monotonic() - begin
    ranks = [
        Rank.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)).remote()
        for number in range(count)
    ]
    about = ray.get([rank.about.remote() for rank in ranks], timeout=90)
    products = ray.get([rank.product.remote(number, count, about[0]["address"], port) for number, rank in enumerate(ranks)], timeout=120)
    nodes = [{"address": node["NodeManagerAddress"], "alive": node["Alive"], "resources": node["Resources"]} for node in ray.nodes()]
    print(json.dumps({"ready_seconds": round(ready, 2), "ranks": about, "products": products, "nodes": nodes}))


if __name__ == "__main__":
    main()
