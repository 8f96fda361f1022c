# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, folders and links that a role owns on a node, and the way back to what was there before.

Private to this collection. Needs no Ansible. What was found at a path before our first write is kept below the
backup folder, together with an index of who manages which path:

    {"format": 1, "made": [folder, ...], "names": {name: {path: {"kind", "sensitive", "implied", "before"}}},
     "notes": {name: {...}}}

`notes` are for what a module has to put back besides files. `before` is null where nothing was, else
{"kind", "mode", "uid", "gid"} with "target" for a link and "copy" (a file name in the backup folder) for a file.
The index is written before the first change on disk, so that an interrupted run can still be taken back.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import hashlib
import json
import os
import pwd
import stat
import tempfile
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._lock import locked

BACKUP_FOLDER = "/var/lib/gb10/backup"
# The backup folder comes and goes, and with it a lock on it would; this one stays.
LOCK_FOLDER = "/var/lib"
# Setting up rails is the longest that others do meanwhile.
LOCK_SECONDS = 300
INDEX_FORMAT = 1
KINDS = ("file", "directory", "link")


class NodeFilesError(Exception):
    """A sentence for the user: what, where and the cure."""


class Entry(t.NamedTuple):
    """One path as it shall be. `content` is for files, `target` for links; mode is an octal number."""

    path: str
    kind: str
    content: bytes = b""
    target: str = ""
    mode: int = 0o644
    owner: str = "root"
    group: str = "root"
    sensitive: bool = False
    implied: bool = False


class Found(t.NamedTuple):
    """One path as it is. `kind` is absent, file, directory, link or other."""

    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    content: bytes = b""
    target: str = ""


class Change(t.NamedTuple):
    """One path that changes. `after` of None: what was there before our time comes back, or nothing."""

    path: str
    before: Found
    after: t.Optional[Found]
    sensitive: bool


class Result(t.NamedTuple):
    """What a call did, or would do: changes in their order, paths newly backed up, folders left because not empty."""

    changes: t.List[Change]
    backups: t.List[str]
    kept: t.List[str]


ABSENT = Found("absent")


def entries_from(files: t.Sequence[t.Mapping[str, t.Any]]) -> t.List[Entry]:
    """Turn the module's `files` argument into entries. Errors name the item by its place in the list."""
    entries: t.List[Entry] = []
    seen: t.Set[str] = set()
    for number, item in enumerate(files):
        where = f"files[{number}]"
        path = item["path"]
        kind = item.get("kind") or "file"
        if not os.path.isabs(path) or os.path.normpath(path) != path:
            raise NodeFilesError(f"{where}.path must be an absolute path without '..' or a trailing slash; got: {path}")
        if path in seen:
            raise NodeFilesError(f"{where}.path repeats {path}: list each path once")
        seen.add(path)
        if kind == "file" and item.get("content") is None:
            raise NodeFilesError(f"{where} ({path}) is a file and needs content")
        if kind == "link" and not item.get("source"):
            raise NodeFilesError(f"{where} ({path}) is a link and needs source, the path it points to")
        mode = item.get("mode") or ("0755" if kind == "directory" else "0644")
        try:
            number_of_mode = int(str(mode), 8)
        except ValueError:
            raise NodeFilesError(f"{where}.mode must be an octal string such as '0644'; got: {mode}") from None
        if not 0 <= number_of_mode <= 0o7777:
            raise NodeFilesError(f"{where}.mode must be an octal string such as '0644'; got: {mode}")
        entries.append(
            Entry(
                path=path,
                kind=kind,
                content=(item.get("content") or "").encode("utf-8", "surrogateescape"),
                target=item.get("source") or "",
                mode=number_of_mode,
                owner=item.get("owner") or "root",
                group=item.get("group") or "root",
                sensitive=bool(item.get("sensitive")),
            )
        )
    return entries


def look(path: str) -> Found:
    """What is at `path`, links not followed."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Found("link", mode, status.st_uid, status.st_gid, target=os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return Found("directory", mode, status.st_uid, status.st_gid)
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as stream:
            return Found("file", mode, status.st_uid, status.st_gid, content=stream.read())
    return Found("other", mode, status.st_uid, status.st_gid)


def write_file(path: str, content: bytes, mode: int, uid: int, gid: int) -> None:
    """Replace a file as a whole, so that a reader sees the old or the new one and never half of it.

    A mount point (the /etc/hosts of a container) cannot be replaced; it is written in place.
    """
    handle, temporary = tempfile.mkstemp(prefix=".gb10-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchown(stream.fileno(), uid, gid)
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        try:
            os.replace(temporary, path)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            with open(path, "wb") as stream:
                stream.write(content)
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)


def write_link(path: str, target: str) -> None:
    """Point the link at `target` in one step."""
    temporary = os.path.join(os.path.dirname(path), f".gb10-{os.getpid()}")
    os.symlink(target, temporary)
    os.replace(temporary, path)


def describe(path: str, found: t.Optional[Found], sensitive: bool) -> t.Tuple[str, str]:
    """Header and text of one side of a diff."""
    if found is None or found.kind == "absent":
        return f"{path} (absent)", ""
    header = f"{path} ({found.kind} {found.mode:04o} {_user_name(found.uid)}:{_group_name(found.gid)})"
    if found.kind == "link":
        return f"{path} (link)", f"{found.target}\n"
    if found.kind != "file":
        return header, f"{found.kind} {found.mode:04o} {_user_name(found.uid)}:{_group_name(found.gid)}\n"
    if sensitive:
        return header, "(hidden: sensitive)\n"
    return header, found.content.decode("utf-8", "replace")


def diff_of(changes: t.Sequence[Change]) -> t.List[t.Dict[str, str]]:
    """The changes in the form that Ansible prints with --diff. Sensitive content is never shown."""
    parts = []
    for change in changes:
        before_header, before = describe(change.path, change.before, change.sensitive)
        after_header, after = describe(change.path, change.after, change.sensitive)
        if change.sensitive and before == after:
            after = "(hidden: sensitive, new content)\n"
        parts.append(
            {"before_header": before_header, "after_header": after_header, "before": before, "after": after}
        )
    return parts


def _user_name(uid: int) -> str:
    if uid < 0:
        return "?"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    if gid < 0:
        return "?"
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


@contextlib.contextmanager
def opened(name: str, check_mode: bool) -> t.Iterator[NodeFiles]:
    """What `name` manages, and no other run changes the index until the block ends.

    Raises:
        LockedError: another run did not come to its end in time.
    """
    with locked(LOCK_FOLDER, LOCK_SECONDS):
        yield NodeFiles(name, check_mode=check_mode)


class NodeFiles:
    """The paths that `name` manages.

    With `check_mode` nothing is written and the result says what would be. A user or group that does not exist
    yet is then no error, because on a bare node the role that makes it has only said that it would.
    """

    def __init__(self, name: str, check_mode: bool = False, backup_folder: t.Optional[str] = None) -> None:
        self.name = name
        self.check_mode = check_mode
        self.backup_folder = backup_folder or BACKUP_FOLDER
        self.index_path = os.path.join(self.backup_folder, "index.json")
        self.index = self._load()

    @property
    def own(self) -> t.Dict[str, t.Dict[str, t.Any]]:
        """What the index says this name manages: path to record."""
        return self.index["names"].get(self.name, {})

    @property
    def notes(self) -> t.Dict[str, t.Any]:
        """What the caller keeps beside its files. Written with the next change of files, or by save_notes."""
        return self.index["notes"].get(self.name, {})

    @notes.setter
    def notes(self, notes: t.Dict[str, t.Any]) -> None:
        self.index["notes"][self.name] = notes

    def save_notes(self) -> None:
        """Write the notes when no files are to be changed."""
        if not self.check_mode:
            self._save()

    def present(self, wanted: t.Sequence[Entry]) -> Result:
        """Make every wanted entry so; paths of an earlier call that are no longer wanted go back to what they were."""
        entries = self._with_parents(wanted)
        paths = {entry.path for entry in entries}
        for entry in entries:
            self._refuse_conflict(entry)

        records: t.Dict[str, t.Dict[str, t.Any]] = {}
        copies: t.Dict[str, bytes] = {}
        changes: t.List[Change] = []
        backups: t.List[str] = []
        todo: t.List[t.Tuple[Entry, Found]] = []
        for entry in entries:
            found = look(entry.path)
            self._refuse_kind(entry, found)
            records[entry.path] = self._record(entry, found, copies, backups)
            after = self._found_of(entry)
            if self._differs(found, after):
                changes.append(Change(entry.path, found, after, entry.sensitive))
                todo.append((entry, after))

        stale = {path: record for path, record in self.own.items() if path not in paths}
        restores, kept = self._plan_restore(stale)
        changes.extend(restores)
        if not self.check_mode:
            self._keep_copies(copies)
            taken_over = [path for path, record in records.items() if record["implied"] is False]
            for other, other_records in self.index["names"].items():
                if other != self.name:
                    for path in taken_over:
                        other_records.pop(path, None)
            self.index["names"][self.name] = dict(self.own, **records)
            if not self.own:
                del self.index["names"][self.name]
                return Result(changes, backups, kept)
            self._save()
            for entry, after in todo:
                self._put(entry, after)
            self._restore(stale, kept)
        return Result(changes, backups, kept)

    def absent(self, keep_notes: bool = False) -> Result:
        """Take everything of this name away and put back what was there before.

        With `keep_notes` the notes stay until drop_notes, for a caller that has to put back what they tell.
        """
        records = dict(self.own)
        changes, kept = self._plan_restore(records)
        if not self.check_mode:
            self._restore(records, kept)
            if not keep_notes:
                self.drop_notes()
        return Result(changes, [], kept)

    def drop_notes(self) -> None:
        """Forget the notes of this name. The backup folder goes with the last name and the last notes."""
        if self.check_mode:
            return
        if self.index["notes"].pop(self.name, None) is not None:
            self._save()
        if not self.index["names"] and not self.index["notes"] and os.path.isdir(self.backup_folder):
            self._forget_all()

    def _load(self) -> t.Dict[str, t.Any]:
        try:
            status = os.lstat(self.backup_folder)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise NodeFilesError(
                    f"{self.backup_folder} must be a folder that only {_user_name(os.geteuid())} can write, because"
                    " files are restored from it; look at who changed it, then set owner and mode 0700"
                )
            with open(self.index_path, encoding="utf-8") as stream:
                index = json.load(stream)
        except (FileNotFoundError, NotADirectoryError):
            return {"format": INDEX_FORMAT, "made": [], "names": {}, "notes": {}}
        except ValueError as error:
            raise NodeFilesError(
                f"{self.index_path} is not valid JSON ({error}); put the file back from a backup of the node, or move"
                f" {self.backup_folder} away to give up what teardown would restore"
            ) from error
        if index.get("format") != INDEX_FORMAT:
            raise NodeFilesError(
                f"{self.index_path} has format {index.get('format')}, and this release knows {INDEX_FORMAT};"
                " run the release of gb10.fleet that wrote it, or a newer one"
            )
        return index

    def _save(self) -> None:
        missing = []
        folder = self.backup_folder
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            os.mkdir(folder, 0o700 if folder == self.backup_folder else 0o755)
            if folder != self.backup_folder:
                os.chmod(folder, 0o755)
                self.index["made"].append(folder)
        content = json.dumps(self.index, indent=1, sort_keys=True).encode() + b"\n"
        if look(self.index_path).content != content:
            write_file(self.index_path, content, 0o600, os.geteuid(), os.getegid())

    def _forget_all(self) -> None:
        made = self.index["made"]
        for name in os.listdir(self.backup_folder):
            os.unlink(os.path.join(self.backup_folder, name))
        os.rmdir(self.backup_folder)
        for folder in reversed(made):
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)

    def _with_parents(self, wanted: t.Sequence[Entry]) -> t.List[Entry]:
        """The wanted entries, folders first, with the parents that nobody made yet."""
        listed = {entry.path for entry in wanted}
        implied: t.Dict[str, Entry] = {}
        for entry in wanted:
            parent = os.path.dirname(entry.path)
            while parent != os.path.dirname(parent):
                if parent not in listed and (parent in self.own or not os.path.lexists(parent)):
                    implied[parent] = Entry(
                        parent,
                        "directory",
                        mode=0o755,
                        owner=_user_name(os.geteuid()),
                        group=_group_name(os.getegid()),
                        implied=True,
                    )
                parent = os.path.dirname(parent)
        folders = [entry for entry in wanted if entry.kind == "directory"] + list(implied.values())
        others = [entry for entry in wanted if entry.kind != "directory"]
        return sorted(folders, key=lambda entry: entry.path) + others

    def _refuse_conflict(self, entry: Entry) -> None:
        for other, records in self.index["names"].items():
            if other != self.name and entry.path in records and not records[entry.path]["implied"]:
                raise NodeFilesError(
                    f"{entry.path} is managed as {other} already, so {self.name} must not write it too;"
                    " leave it to one of the two"
                )

    @staticmethod
    def _refuse_kind(entry: Entry, found: Found) -> None:
        if found.kind == "absent" or found.kind == entry.kind:
            return
        if "directory" in (found.kind, entry.kind) or found.kind == "other":
            raise NodeFilesError(
                f"{entry.path} must be a {entry.kind}, and a {'special file' if found.kind == 'other' else found.kind}"
                " is there; move it away and run again"
            )

    def _record(self, entry: Entry, found: Found, copies: t.Dict[str, bytes], backups: t.List[str]) -> t.Dict[str, t.Any]:
        known = self.own.get(entry.path)
        if known is None:
            for records in self.index["names"].values():
                known = records.get(entry.path, known)
        record = {"kind": entry.kind, "sensitive": entry.sensitive, "implied": entry.implied, "before": None}
        if known is not None:
            record["before"] = known["before"]
            return record
        if found.kind == "absent":
            return record
        before: t.Dict[str, t.Any] = {
            "kind": found.kind, "mode": f"{found.mode:04o}", "uid": found.uid, "gid": found.gid,
        }
        if found.kind == "link":
            before["target"] = found.target
        elif found.kind == "file":
            digest = hashlib.sha256(entry.path.encode("utf-8", "surrogateescape")).hexdigest()[:12]
            before["copy"] = f"{digest}-{os.path.basename(entry.path)}"
            copies[before["copy"]] = found.content
        record["before"] = before
        if found.kind != "directory":
            backups.append(entry.path)
        return record

    def _found_of(self, entry: Entry) -> Found:
        """The entry in the words of `look`, with -1 for an owner that a check-mode run does not find."""
        if entry.kind == "link":
            return Found("link", target=entry.target)
        try:
            uid = pwd.getpwnam(entry.owner).pw_uid
        except KeyError:
            uid = self._missing("user", "owner", entry.owner, entry.path)
        try:
            gid = grp.getgrnam(entry.group).gr_gid
        except KeyError:
            gid = self._missing("group", "group", entry.group, entry.path)
        return Found(entry.kind, entry.mode, uid, gid, content=entry.content if entry.kind == "file" else b"")

    def _missing(self, what: str, option: str, value: str, path: str) -> int:
        if not self.check_mode:
            raise NodeFilesError(
                f"the {what} {value}, {option} of {path}, does not exist on this node; run the role host first"
            )
        return -1

    @staticmethod
    def _differs(found: Found, after: Found) -> bool:
        if after.kind == "link":
            return (found.kind, found.target) != ("link", after.target)
        return found != after

    @staticmethod
    def _put(entry: Entry, after: Found) -> None:
        if entry.kind == "link":
            write_link(entry.path, entry.target)
        elif entry.kind == "directory":
            if not os.path.isdir(entry.path):
                os.mkdir(entry.path, 0o700)
            os.chown(entry.path, after.uid, after.gid)
            os.chmod(entry.path, after.mode)
        else:
            write_file(entry.path, entry.content, after.mode, after.uid, after.gid)

    def _original(self, record: t.Mapping[str, t.Any]) -> Found:
        before = record["before"]
        if before is None:
            return ABSENT
        content = b""
        if before["kind"] == "file":
            with open(os.path.join(self.backup_folder, before["copy"]), "rb") as stream:
                content = stream.read()
        return Found(
            before["kind"], int(before["mode"], 8), before["uid"], before["gid"], content, before.get("target", "")
        )

    def _plan_restore(self, records: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Tuple[t.List[Change], t.List[str]]:
        """Changes, files before the folders that hold them, and the folders that cannot go because others use them."""
        changes: t.List[Change] = []
        kept: t.List[str] = []
        gone: t.Set[str] = set()
        if {*self.index["names"], *self.index["notes"]} <= {self.name} and set(self.own) == set(records):
            gone.add(self.backup_folder)
        for path in self._restore_order(records):
            found = look(path)
            original = self._original(records[path])
            if original.kind == "absent" and found.kind == "directory":
                if any(os.path.join(path, name) not in gone for name in os.listdir(path)):
                    kept.append(path)
                    continue
            if original.kind == "absent":
                gone.add(path)
            if self._differs(found, original):
                after = None if original.kind == "absent" else original
                changes.append(Change(path, found, after, records[path]["sensitive"]))
        return changes, kept

    @staticmethod
    def _restore_order(records: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.List[str]:
        files = [path for path, record in records.items() if record["kind"] != "directory"]
        folders = [path for path, record in records.items() if record["kind"] == "directory"]
        return sorted(files) + sorted(folders, reverse=True)

    def _restore(self, records: t.Mapping[str, t.Mapping[str, t.Any]], kept: t.Sequence[str]) -> None:
        for path in self._restore_order(records):
            if path not in kept:
                self._restore_one(path, self._original(records[path]))
        own = self.index["names"].get(self.name, {})
        copies = []
        for path in records:
            own.pop(path, None)
            before = records[path]["before"] or {}
            if "copy" in before:
                copies.append(before["copy"])
        if not own:
            self.index["names"].pop(self.name, None)
        if records:
            self._save()
        for copy in copies:
            os.unlink(os.path.join(self.backup_folder, copy))

    def _restore_one(self, path: str, original: Found) -> None:
        found = look(path)
        if original.kind == "absent":
            if found.kind == "directory":
                # The backup folder itself may lie in it: the last call of all removes both.
                if not os.listdir(path):
                    os.rmdir(path)
            elif found.kind != "absent":
                os.unlink(path)
        elif self._differs(found, original):
            if original.kind == "link":
                write_link(path, original.target)
            elif original.kind == "file":
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_file(path, original.content, original.mode, original.uid, original.gid)
            else:
                os.makedirs(path, exist_ok=True)
                os.chown(path, original.uid, original.gid)
                os.chmod(path, original.mode)

    def _keep_copies(self, copies: t.Mapping[str, bytes]) -> None:
        if copies:
            self._save()
        for name, content in copies.items():
            write_file(os.path.join(self.backup_folder, name), content, 0o600, os.geteuid(), os.getegid())
