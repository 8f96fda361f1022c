# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process for each lab: boots its nodes, boots them again when they reboot, keeps cables and RDMA trees in step."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import signal
import time

from . import host, layout, machine, network, record, state

# Thirty-eight at once were seen to give a load of 570 and no ssh for a minute.
BOOTING_AT_ONCE = 4
BOOT_LIMIT = 120
# A burst of link changes is one refresh.
SETTLE = 0.05

log = logging.getLogger("gb10-lab")


class Supervisor:
    def __init__(self, lab: record.Lab):
        self.lab = lab
        self.machines = {node.name: machine.Machine(lab, node) for node in lab.nodes}
        self.power = {node.name: "off" for node in lab.nodes}
        self.reasons = {node.name: "" for node in lab.nodes}
        self.boots: dict[str, asyncio.Task] = {}
        self.watchers: dict[str, asyncio.Task] = {}
        self.slots = asyncio.Semaphore(BOOTING_AT_ONCE)
        self.stopped = asyncio.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopped.set)
        try:
            for one in self.machines.values():
                one.prepare()
        except (host.LabError, OSError) as error:
            host.write(self.lab.failure, str(error))
            raise
        server = await asyncio.start_unix_server(self._client, path=str(self.lab.socket))
        self.lab.socket.chmod(0o600)
        log.info("lab %s: %s", self.lab.name, ", ".join(self.machines))
        for name in self.machines:
            self._start_boot(name)
        await self.stopped.wait()
        server.close()
        for task in [*self.boots.values(), *self.watchers.values()]:
            task.cancel()
        for name, one in self.machines.items():
            one.cut_power()
            one.clear_away()
            log.info("%s: off", name)

    # --- power ----------------------------------------------------------------------------------------------------

    def _start_boot(self, name: str) -> asyncio.Task:
        self.power[name] = "booting"
        self.reasons[name] = ""
        self.boots[name] = asyncio.create_task(self._boot(name))
        return self.boots[name]

    async def _boot(self, name: str) -> None:
        one = self.machines[name]
        async with self.slots:
            began = time.monotonic()
            try:
                one.wire()
            except (host.LabError, OSError) as error:
                self.power[name] = "off"
                self.reasons[name] = f"could not be wired: {error}"
                return
            with open(one.folder / "console.log", "ab") as console:
                process = await asyncio.create_subprocess_exec(
                    *one.command(), stdin=asyncio.subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1", "SYSTEMD_NSPAWN_LOCK": "0"},
                )
            one.process_id = process.pid
            self.watchers[name] = asyncio.create_task(self._watch(name, process))
            self.set_cables()
            while time.monotonic() - began < BOOT_LIMIT:
                if process.returncode is not None:
                    self.reasons[name] = f"ended with {process.returncode} while booting; see {one.folder / 'console.log'}"
                    return
                if await asyncio.to_thread(one.answers_ssh):
                    self.power[name] = "on"
                    log.info("%s: on, ssh answers %.1f s after power-on", name, time.monotonic() - began)
                    return
                await asyncio.sleep(0.2)
            self.reasons[name] = f"no ssh {BOOT_LIMIT} s after power-on; see {one.folder / 'console.log'}"
            log.error("%s: %s", name, self.reasons[name])

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Follow a node's links while it lives, and its end."""
        one = self.machines[name]
        monitor = await asyncio.create_subprocess_exec(
            "nsenter", f"--net={one.namespace}", "setpriv", "--pdeathsig", "KILL", "ip", "-oneline", "monitor", "link", "address",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )
        follower = asyncio.create_task(self._follow(one, monitor))
        try:
            code = await process.wait()
        finally:
            follower.cancel()
            with contextlib.suppress(ProcessLookupError):
                monitor.kill()
            await monitor.wait()
        log.info("%s: went off (nspawn ended with %s)", name, code)
        one.clear_away()
        self.power[name] = "off"
        self.set_cables()
        if code == machine.REBOOT:
            self._start_boot(name)

    async def _follow(self, one: machine.Machine, monitor: asyncio.subprocess.Process) -> None:
        assert monitor.stdout is not None
        while True:
            await asyncio.to_thread(one.refresh_devices)
            if not await monitor.stdout.readline():
                return
            await asyncio.sleep(SETTLE)
            while True:
                try:
                    await asyncio.wait_for(monitor.stdout.readline(), 0.001)
                except asyncio.TimeoutError:
                    break

    def set_cables(self) -> None:
        """A port has carrier when its cable is in at both ends and, on a direct cable, the partner has power."""
        for one in self.machines.values():
            for function in one.cards:
                cable = one.cable(function)
                if not cable:
                    continue
                port = layout.port_name(one.node.index, function)
                rail = one.state["rails"][function.netdev]
                up = rail["cable"] and (not cable.direct or self._partner_is_lit(one, function, cable))
                network.ip(self.lab.switch_room, "link", "set", port, "mtu", str(rail["middle_mtu"]), "up" if up else "down", check=False)

    def _partner_is_lit(self, one: machine.Machine, function: layout.Function, cable: layout.Cable) -> bool:
        node, cage = next(end for end in cable.ends if end != (one.node.name, function.cage))
        partner = self.machines[node]
        same_half = next(other for other in layout.FUNCTIONS if other.cage == cage and other.pci[:4] == function.pci[:4])
        return partner.process_id is not None and same_half in partner.cards and partner.state["rails"][same_half.netdev]["cable"]

    # --- the control socket ---------------------------------------------------------------------------------------

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            handler = getattr(self, f"do_{request.pop('do')}")
            reply = {"ok": await handler(**request)}
        except (host.LabError, state.StateError, layout.LayoutError) as error:
            reply = {"error": str(error)}
        except Exception as error:  # the lab lives on, whatever a request was
            log.exception("request failed")
            reply = {"error": f"{type(error).__name__}: {error}; see {self.lab.folder / 'supervisor.log'}"}
        with contextlib.suppress(ConnectionError):
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    def _machine(self, node: str) -> machine.Machine:
        return self.machines[self.lab.node(node).name]

    async def do_status(self) -> dict:
        nodes = {}
        for name, one in self.machines.items():
            system = await asyncio.to_thread(one.system_state)
            nodes[name] = {
                "address": one.node.address, "cluster": one.node.cluster, "power": self.power[name], "system": system,
                "failed_units": await asyncio.to_thread(one.failed_units) if system == "degraded" else [], "reason": self.reasons[name],
                "leader": one.leader(), "cut": [netdev for netdev, rail in one.state["rails"].items() if not rail["cable"]],
            }
        return {"name": self.lab.name, "topology": self.lab.topology, "network": self.lab.network, "nodes": nodes}

    async def do_power_on(self, nodes: list[str]) -> list[str]:
        """Switch on what is off and wait until ssh answers. Returns what was off."""
        names = [self._machine(node).node.name for node in nodes] or list(self.machines)
        started = [name for name in names if self.power[name] == "off"]
        for name in started:
            self._start_boot(name)
        await asyncio.gather(*(self.boots[name] for name in names))
        failed = [f"{name} {self.reasons[name]}" for name in names if self.reasons[name]]
        if failed:
            raise host.LabError("; ".join(failed) + ".")
        return started

    async def do_power_off(self, nodes: list[str]) -> list[str]:
        names = [self._machine(node).node.name for node in nodes] or list(self.machines)
        ended = [name for name in names if self.power[name] != "off"]
        for name in ended:
            self.boots[name].cancel()
            self.machines[name].cut_power()
        for name in ended:
            await asyncio.wait([self.boots[name]])
            if name in self.watchers:
                await self.watchers[name]
            # A boot that was cut short may have left a process that no watcher knew.
            self.machines[name].clear_away()
            self.power[name] = "off"
        return ended

    async def do_set(self, node: str, values: dict) -> dict:
        one = self._machine(node)
        changed = one.state
        for key, value in values.items():
            changed = state.set_value(changed, key, value)
        one.state = changed
        one.save_state()
        one.refresh_devices()
        self.set_cables()
        return changed

    async def do_reset(self, node: str, keys: list[str]) -> dict:
        one = self._machine(node)
        one.state = state.reset(one.state, state.healthy(self.lab.name, node), keys)
        one.save_state()
        one.refresh_devices()
        self.set_cables()
        return one.state

    async def do_get(self, node: str) -> dict:
        return self._machine(node).state

    async def do_stop(self) -> bool:
        self.stopped.set()
        return True


def main(name: str) -> None:
    lab = record.load(name)
    if lab is None:
        raise host.LabError(f"There is no lab {name}.")
    with open(lab.alive, "w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        asyncio.run(Supervisor(lab).serve())
