# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM's CPU communicator for ranks on several hosts.

On a CPU with AVX-512 vLLM (seen with 0.32.0) lets all ranks of a group talk through shared memory, whose name it makes
from the port of the rendezvous: ranks on two hosts agree on that name and the second one ends with
"open shm in SHMManager failed. errno: 2". On a CPU with AVX2 alone that way is not built, and gloo carries them.
"""
import socket

import torch.distributed
from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator


class CpuRayCommunicator(CpuCommunicator):
    def _all_group_ranks_share_shm_group_name(self) -> bool:
        hosts: list[str] = [""] * self.world_size
        torch.distributed.all_gather_object(hosts, socket.gethostname(), group=self.device_group)
        return len(set(hosts)) == 1 and super()._all_group_ranks_share_shm_group_name()
