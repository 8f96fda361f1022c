# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for systemctl and journalctl where there is no systemd: runs the lines of a unit as systemd does.

It reads the unit and its drop-ins in /etc/systemd/system and obeys EnvironmentFile, Environment, LoadCredential, RuntimeDirectory,
CacheDirectory, User, ExecStartPre, ExecStart, Restart, RestartSec, TimeoutStopSec, KillMode, LimitMEMLOCK, LimitNOFILE, UMask, NoNewPrivileges and
CapabilityBoundingSet. All other hardening is left out.
"""
from __future__ import annotations

import datetime
import grp
import json
import os
import pwd
import resource
import shlex
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

UNITS = Path("/etc/systemd/system")
STATE = Path("/run/units")
FOLDERS = {"RuntimeDirectory": "/run", "CacheDirectory": "/var/cache"}
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def unit_text(name: str) -> str | None:
    """Unit file and drop-ins, an instance's from its template; None when there is none."""
    base, _at, rest = name.partition("@")
    template = f"{base}@.service" if rest else name
    texts = []
    for folder in dict.fromkeys((template, name)):
        if (UNITS / folder).is_file():
            texts.append((UNITS / folder).read_text())
        texts += [path.read_text() for path in sorted(UNITS.glob(f"{folder}.d/*.conf"))]
    return "\n".join(texts) if (UNITS / template).is_file() or (UNITS / name).is_file() else None


def service_lines(name: str) -> list[tuple[str, str]]:
    """The settings of the section Service, with %i and %d put in."""
    instance = name.partition("@")[2].removesuffix(".service")
    lines, section = [], ""
    for line in (unit_text(name) or "").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith(("#", ";")):
            key, value = line.split("=", 1)
            lines.append((key.strip(), value.strip().replace("%i", instance).replace("%d", f"/run/credentials/{name}")))
    return lines


def environment_of(lines: list[tuple[str, str]]) -> dict[str, str]:
    """What the unit's processes get."""
    found = dict(CLEAN)
    for key, value in lines:
        if key == "Environment":
            found.update(word.split("=", 1) for word in shlex.split(value))
        elif key == "EnvironmentFile":
            for line in Path(value).read_text().splitlines():
                line = line.strip()
                if line and not line.startswith(("#", ";")):
                    name, text = line.split("=", 1)
                    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
                    found[name.strip()] = text[1:-1] if quoted else text
    return found


def command(text: str, environment: dict[str, str]) -> list[str]:
    """The words of a command line: $NAME alone is split into words, ${NAME} is not."""
    words = []
    for word in shlex.split(text):
        if word.startswith("$") and word[1:].isidentifier():
            words += environment.get(word[1:], "").split()
        else:
            words.append(word)
    return words


class Unit:
    """A unit's state in a file, and the process that looks after it."""

    def __init__(self, name: str) -> None:
        self.name = name if "." in name else f"{name}.service"
        self.path = STATE / f"{self.name}.json"
        self.log = STATE / f"{self.name}.log"

    def state(self) -> dict:
        """What is kept, with what is so when nothing is."""
        kept = json.loads(self.path.read_text()) if self.path.exists() else {}
        found = {"active": "inactive", "enabled": False, "started": None, "guard": 0, "invocation": "", "restarts": 0, **kept}
        if found["active"] in ("active", "activating") and not Path(f"/proc/{found['guard']}").exists():
            found["active"] = "failed"
        return found

    def keep(self, **changes: object) -> None:
        """Change the state."""
        STATE.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({**self.state(), **changes}))
        temporary.replace(self.path)

    def show(self) -> str:
        """As `systemctl show --timestamp=us+utc`."""
        state = self.state()
        stamp = ""
        if state["started"]:
            stamp = datetime.datetime.fromtimestamp(state["started"], datetime.timezone.utc).strftime("%a %Y-%m-%d %H:%M:%S.%f UTC")
        values = {
            "LoadState": "loaded" if unit_text(self.name) is not None else "not-found", "ActiveState": state["active"], "SubState": "running",
            "UnitFileState": "enabled" if state["enabled"] else "disabled", "NeedDaemonReload": "no", "InactiveExitTimestamp": stamp,
            "Result": "success", "NRestarts": str(state["restarts"]),
        }
        return "\n".join(f"{name}={value}" for name, value in values.items())

    def start(self) -> None:
        """Begin, unless it runs."""
        if self.state()["active"] in ("active", "activating"):
            return
        STATE.mkdir(parents=True, exist_ok=True)
        guard = subprocess.Popen(
            [sys.executable, __file__, "guard", self.name], start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=open(self.log, "ab"), stderr=subprocess.STDOUT, env=CLEAN, cwd="/",
        )
        end = time.monotonic() + 10
        while self.state()["guard"] != guard.pid and time.monotonic() < end:
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask the guard to end it, and wait."""
        state = self.state()
        if state["active"] not in ("active", "activating"):
            self.keep(active="inactive")
            return
        os.kill(state["guard"], signal.SIGTERM)
        while Path(f"/proc/{state['guard']}").exists():
            time.sleep(0.1)
        self.keep(active="inactive", guard=0)


class Guard:
    """Looks after one unit as systemd would, until it is told to end."""

    def __init__(self, unit: Unit) -> None:
        self.unit, self.main, self.ending = unit, None, False
        self.lines = service_lines(unit.name)
        signal.signal(signal.SIGTERM, self.end)

    def value(self, key: str, default: str = "") -> str:
        """The last value of a setting."""
        return next((value for name, value in reversed(self.lines) if name == key), default)

    def end(self, *_arguments: object) -> None:
        """Stop: SIGTERM to the main process, then SIGKILL to all that is left."""
        self.ending = True
        if self.main is not None and self.main.poll() is None:
            targets = [self.main.pid] if self.value("KillMode") == "mixed" else self.members()
            for process in targets:
                self.signal(process, signal.SIGTERM)

    def signal(self, process: int, number: int) -> None:
        """Send a signal to a process that may be gone."""
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass

    def members(self) -> list[int]:
        """Every process of this start, known by the variable that systemd gives to each."""
        mark = f"INVOCATION_ID={self.invocation}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0") and int(path.parent.name) != os.getpid():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def privileges(self) -> None:
        """In the child: limits and user."""
        os.umask(int(self.value("UMask", "0022"), 8))
        for key, which in (("LimitMEMLOCK", resource.RLIMIT_MEMLOCK), ("LimitNOFILE", resource.RLIMIT_NOFILE)):
            if self.value(key):
                limit = resource.RLIM_INFINITY if self.value(key) == "infinity" else int(self.value(key))
                try:
                    resource.setrlimit(which, (limit, limit))
                except (ValueError, OSError):
                    # A machine that does not let root raise it: as high as it goes.
                    hard = resource.getrlimit(which)[1]
                    resource.setrlimit(which, (hard, hard))

    def launch(self, text: str) -> subprocess.Popen:
        """Start one command line of the unit."""
        user = self.value("User", "root")
        drop = ["setpriv", f"--reuid={user}", f"--regid={self.value('Group', user)}", "--init-groups"]
        if self.value("NoNewPrivileges") == "yes":
            drop.append("--no-new-privs")
        if "CapabilityBoundingSet" in dict(self.lines):
            drop.append("--bounding-set=-all")
        return subprocess.Popen(
            [*drop, "--", *command(text, self.environment)], env=self.environment, cwd="/", stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=self.privileges,
        )

    def prepare(self) -> None:
        """Folders, credentials and environment of one start."""
        self.invocation = uuid.uuid4().hex
        user = pwd.getpwnam(self.value("User", "root"))
        group = grp.getgrnam(self.value("Group", user.pw_name)).gr_gid
        credentials = Path("/run/credentials", self.unit.name)
        for key, value in self.lines:
            if key in FOLDERS:
                folder = Path(FOLDERS[key], value)
                folder.mkdir(exist_ok=True)
                os.chown(folder, user.pw_uid, group)
            elif key == "LoadCredential":
                name, source = value.split(":", 1)
                credentials.mkdir(parents=True, exist_ok=True)
                own = credentials / name
                own.unlink(missing_ok=True)
                own.write_bytes(Path(source).read_bytes())
                own.chmod(0o400)
                for path in (own, credentials):
                    os.chown(path, user.pw_uid, group)
        self.environment = {**environment_of(self.lines), "INVOCATION_ID": self.invocation, "USER": user.pw_name, "LOGNAME": user.pw_name}
        if credentials.exists():
            self.environment["CREDENTIALS_DIRECTORY"] = str(credentials)

    def run_once(self) -> None:
        """One start, to its end."""
        self.lines = service_lines(self.unit.name)
        self.prepare()
        self.unit.keep(active="activating", invocation=self.invocation)
        for key, value in self.lines:
            if key == "ExecStartPre" and not self.ending:
                self.main = self.launch(value.lstrip("-"))
                if self.main.wait() and not value.startswith("-"):
                    print(f"{self.unit.name}: ExecStartPre ended with {self.main.returncode}", flush=True)
                    return
        if not self.ending:
            self.main = self.launch(self.value("ExecStart"))
            self.unit.keep(active="active")
            self.wait()
            print(f"{self.unit.name}: main process ended with {self.main.returncode}", flush=True)

    def wait(self) -> None:
        """For the main process; when it is told to end, not longer than TimeoutStopSec."""
        limit = float(self.value("TimeoutStopSec", "90"))
        end = None
        while self.main.poll() is None:
            if self.ending and end is None:
                end = time.monotonic() + limit
            if end is not None and time.monotonic() > end:
                self.main.kill()
            time.sleep(0.1)

    def clear(self) -> None:
        """What is left of a start is killed."""
        end = time.monotonic() + 10
        while self.members() and time.monotonic() < end:
            for process in self.members():
                self.signal(process, signal.SIGKILL)
            time.sleep(0.1)

    def run(self) -> None:
        """Start, and again as the unit wants it."""
        self.unit.keep(active="activating", started=time.time(), guard=os.getpid())
        while not self.ending:
            try:
                self.run_once()
            finally:
                self.clear()
            if self.ending or self.value("Restart") != "always":
                break
            self.unit.keep(active="activating", restarts=self.unit.state()["restarts"] + 1)
            time.sleep(float(self.value("RestartSec", "0.1")))


def systemctl(arguments: list[str]) -> int:
    """The few verbs that are asked for."""
    words = [word for word in arguments if not word.startswith("-")]
    verb, names = (words or ["help"])[0], words[1:]
    if verb in ("daemon-reload", "reset-failed"):
        return 0
    for unit in map(Unit, names):
        if verb == "show":
            print(unit.show())
        elif verb in ("enable", "disable"):
            unit.keep(enabled=verb == "enable")
        elif verb in ("start", "stop"):
            getattr(unit, verb)()
        elif verb == "is-active":
            print(unit.state()["active"])
            return 0 if unit.state()["active"] == "active" else 3
        else:
            print(f"{verb}: not one of the verbs that this stand-in has", file=sys.stderr)
            return 1
    return 0


def journalctl(arguments: list[str]) -> int:
    """The end of a unit's log."""
    name = arguments[arguments.index("-u") + 1]
    count = int(arguments[arguments.index("-n") + 1]) if "-n" in arguments else 10
    log = Unit(name).log
    print("\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else "-- No entries --")
    return 0


def main() -> int:
    """By the name it is called by."""
    if sys.argv[1:2] == ["guard"]:
        Guard(Unit(sys.argv[2])).run()
        return 0
    return journalctl(sys.argv[1:]) if Path(sys.argv[0]).name == "journalctl" else systemctl(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
