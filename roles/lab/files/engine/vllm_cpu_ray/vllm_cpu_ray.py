# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An out-of-tree vLLM platform: the CPU platform, with a device that Ray can count.

vLLM's own CPU platform names no Ray device, and the Ray executor refuses such a platform. The logical GPU that
`ray start --num-gpus=1` declares on each node is the one slot that a rank of the CPU engine takes.
"""
from vllm.platforms.cpu import CpuPlatform


class CpuRayPlatform(CpuPlatform):
    ray_device_key = "GPU"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return "vllm_cpu_ray_communicator.CpuRayCommunicator"


def register() -> str:
    """Entry point of the group vllm.platform_plugins: the class, by name."""
    return "vllm_cpu_ray.CpuRayPlatform"
