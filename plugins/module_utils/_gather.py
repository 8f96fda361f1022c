# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine of spark_facts: asks every tool at once, lets each subset read its files and answers, and keeps what was not read."""

from __future__ import annotations

import os
import sys
import threading
import time
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils import (
    _environment, _kernel, _memory, _nvidia_smi, _platform, _rdma, _redact, _services, _toolchain,
)
from ansible_collections.gb10.fleet.plugins.module_utils._files import read_text
from ansible_collections.gb10.fleet.plugins.module_utils._run import LATE, NOT_RUN, run

SUBSETS = ("gpu", "rdma", "platform", "kernel", "memory", "toolchain", "services")
MINIMUM = ("platform",)
PROVEN = "etc/ansible/facts.d/gb10.fact"
# Seconds between the request to end and the kill of a tool that does not listen.
GRACE = 1
LONGEST_EVIDENCE = 200
# Those that ask no tool come first, while the tools run.
_ORDER = ("kernel", "memory", "toolchain", "rdma", "services", "gpu", "platform")

Probes = t.Dict[str, t.Tuple[str, ...]]
Note = t.Callable[[str, str, str], None]


class Answer(t.NamedTuple):
    """What a tool answered. The status is 124 when it was late, 126 when it cannot be run, 127 when it is not installed."""

    status: int
    output: str
    error: str
    seconds: float


class Unread:
    """What could not be read or was not understood: {subset, source, reason, evidence}, each once."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []

    def of(self, subset: str) -> Note:
        """The function by which a subset tells: source, reason (late, denied, failed or not_understood) and evidence."""

        def note(source: str, reason: str, evidence: str) -> None:
            entry = {"subset": subset, "source": source, "reason": reason, "evidence": evidence.strip()[:LONGEST_EVIDENCE]}
            if entry not in self.entries:
                self.entries.append(entry)

        return note


class Answers(t.Mapping[str, Answer]):
    """Answers of tools that all run at once: looking one up waits for that one alone."""

    def __init__(self, ask: t.Callable[[tuple[str, ...]], Answer], probes: Probes) -> None:
        self.probes = probes
        self._given: dict[str, Answer] = {}
        self._ask = ask
        self._threads = {name: threading.Thread(target=self._fetch, args=(name,), daemon=True) for name in probes}
        for thread in self._threads.values():
            thread.start()

    def _fetch(self, name: str) -> None:
        self._given[name] = self._ask(self.probes[name])

    def __getitem__(self, name: str) -> Answer:
        self._threads[name].join()
        return self._given[name]

    def __iter__(self) -> t.Iterator[str]:
        return iter(self.probes)

    def __len__(self) -> int:
        return len(self.probes)


class Machine:
    """What a node tells without a file or a tool."""

    def uname(self) -> t.Any:
        """Names and versions of the kernel."""
        return os.uname()

    def cpus(self) -> int | None:
        """Number of CPUs."""
        return os.cpu_count()

    def python(self) -> str:
        """Version of the Python that runs this."""
        return ".".join(str(part) for part in sys.version_info[:3])

    def synchronized(self) -> bool | None:
        """Whether something keeps the clock."""
        return _platform.read_clock()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def space(self, path: str) -> dict[str, int] | None:
        """Space of the file system at a path."""
        return _platform.disk_space(path)

    def variables(self) -> t.Mapping[str, str]:
        """Environment variables of the session."""
        return os.environ


def describe_command(argv: t.Sequence[str]) -> str:
    """A command by its tool and the words that tell it from others, as in 'nvidia-smi --query-gpu' or 'fwupdmgr get-devices'."""
    words = [argv[0].rpartition("/")[2]]
    for word in argv[1:3]:
        if len(words) > 1 and word.startswith("--"):
            break
        words.append(word.partition("=")[0])
    return " ".join(words)


class Gatherer:
    """Asks the node's tools and files, and turns what they say into facts.

    Args:
        module: an AnsibleModule.
        root: root directory of the node.
        limit: seconds that each tool may take.
        names: names that the node is to resolve.
        redact: whether serial numbers, GUIDs, MAC addresses and UUIDs are left out.
        machine: what the node tells without a file or a tool.
    """

    def __init__(
        self, module: t.Any, root: str = "/", limit: int = 10, names: t.Sequence[str] = (), redact: bool = True, machine: Machine | None = None
    ) -> None:
        self.module = module
        self.root = root
        self.limit = limit
        self.names = list(dict.fromkeys(names))
        self.redact = redact
        self.machine = machine or Machine()
        self.unread = Unread()
        self.answers: t.Mapping[str, Answer] = {}

    def ask(self, argv: tuple[str, ...]) -> Answer:
        """Run a tool; bytes that are no text do not matter."""
        begin = time.monotonic()
        status, output, error = run(self.module, argv, self.limit, grace=GRACE, errors="surrogate_or_replace")
        return Answer(status, output, error, time.monotonic() - begin)

    def find_probes(self, subsets: t.Sequence[str]) -> tuple[Probes, dict[str, str]]:
        """The probes of the subsets by their names, and the subset that each is told of if it is late."""
        more: dict[str, t.Callable[[], Probes]] = {
            "rdma": lambda: _rdma.more_probes(self.root),
            "platform": lambda: _platform.more_probes(self.root, self.names),
            "toolchain": lambda: _toolchain.more_probes(self.root),
        }
        fixed: dict[str, Probes] = {
            "gpu": _nvidia_smi.PROBES, "rdma": _rdma.PROBES, "platform": _platform.PROBES, "kernel": _kernel.PROBES, "memory": _memory.PROBES,
            "toolchain": _toolchain.PROBES, "services": _services.PROBES,
        }
        probes: Probes = {}
        owners: dict[str, str] = {}
        for subset in subsets:
            for name, argv in {**fixed[subset], **(more[subset]() if subset in more else {})}.items():
                probes.setdefault(name, argv)
                owners.setdefault(name, subset)
        return probes, owners

    def gather(self, subsets: t.Sequence[str]) -> dict[str, t.Any]:
        """Facts of the subsets, and what was proven and what was not read."""
        probes, owners = self.find_probes(subsets)
        self.answers = Answers(self.ask, probes)
        read = {subset: getattr(self, f"_{subset}")(self.unread.of(subset)) for subset in sorted(subsets, key=_ORDER.index)}
        for name, answer in self.answers.items():
            self.tell_failure(owners[name], probes[name], answer)
        facts: dict[str, t.Any] = {subset: read[subset] for subset in subsets}
        if "platform" in facts and "gpu" in facts:
            _platform.confirm_spark(facts["platform"], facts["gpu"])
        if self.redact:
            facts = _redact.redact(facts)
        facts["proven"] = self.proven()
        facts["unread"] = _redact.scrub(self.unread.entries) if self.redact else self.unread.entries
        return facts

    def tell_failure(self, subset: str, argv: tuple[str, ...], answer: Answer) -> None:
        """A tool that is late or cannot be run is told; one that is not installed is nothing to tell."""
        if answer.status == LATE:
            self.unread.of(subset)(describe_command(argv), "late", answer.error or f"It did not end within {self.limit} s and was stopped.")
        elif answer.status == NOT_RUN:
            self.unread.of(subset)(describe_command(argv), "failed", answer.error)

    def follow_up(self, subset: str, argv: tuple[str, ...]) -> Answer:
        """A question that only an earlier answer brings up."""
        answer = self.ask(argv)
        self.tell_failure(subset, argv, answer)
        return answer

    def _gpu(self, note: Note) -> dict[str, t.Any]:
        return _nvidia_smi.read_gpu(self.root, self.answers, lambda argv: self.follow_up("gpu", argv), note)

    def _rdma(self, note: Note) -> dict[str, t.Any]:
        return _rdma.read_rdma(self.root, self.answers, note)

    def _platform(self, note: Note) -> dict[str, t.Any]:
        machine = self.machine
        return _platform.read_platform(
            self.root, self.answers, machine.uname(), machine.cpus(), note, names=self.names, space=machine.space, clock=machine.synchronized,
            now=machine.now,
        )

    def _kernel(self, note: Note) -> dict[str, t.Any]:
        return _kernel.read_kernel(self.root, self.answers, note)

    def _memory(self, note: Note) -> dict[str, t.Any]:
        return _memory.read_memory(self.root, self.answers, note)

    def _toolchain(self, note: Note) -> dict[str, t.Any]:
        home = _environment.login_home(self.root, self.machine.variables())
        return _toolchain.read_toolchain(self.root, self.answers, self.machine.python(), home, note)

    def _services(self, note: Note) -> dict[str, t.Any]:
        return _services.read_services(self.root, self.answers, self.machine.synchronized(), note)

    def proven(self) -> dict[str, t.Any]:
        """What earlier runs have proved."""
        text = read_text(self.root, PROVEN)
        try:
            return _toolchain.read_json_object(text) or {}
        except ValueError:
            self.unread.of("proven")(f"/{PROVEN}", "not_understood", text or "")
            return {}
