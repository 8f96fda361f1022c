# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts something else in the place of what tells one machine and its people from all others, always the same for the same."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.gb10.fleet.plugins.module_utils._redact import DIGEST, MAC, NAME_BY_MAC, REDACTED, UUID

NODE = "spark-a"
_GUID = re.compile(r"(?<![0-9A-Fa-f:.])(?:[0-9A-Fa-f]{1,4}:){3}[0-9A-Fa-f]{1,4}(?![0-9A-Fa-f:])")
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z:]|\.[0-9])")
IPV4 = re.compile(r"(?<![0-9A-Za-z.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z]|\.[0-9])")
# Elements of nvidia-smi's document and members of JSON whose name says that they tell one machine from others.
_ELEMENT = re.compile(r"(<(\w*(?:serial|guid|uuid|pdi)\w*)>)([^<]+)(</\2>)", re.IGNORECASE)
_SERIAL = re.compile(r"""(\b\w*serial(?:[ _-]?(?:number|no))?\w*["']?\s*[:=]\s*)("[^"\n]*"|'[^'\n]*'|[^\s"',;<>]+)""", re.IGNORECASE)
_NO_SERIAL = ("", "N/A", "[N/A]", "NONE", "0", REDACTED)
_BY_ID = re.compile(r"(/dev/disk/by-(?:id|label|partlabel)/)([^\s\"',;:]+)")
# The serial number of a FAT file system, as EFI system partitions have it.
_VOLUME = re.compile(r"((?:UUID=|--fs-uuid (?:--set=\w+ )?|--hint\S* )['\"]?)([0-9A-F]{4}-[0-9A-F]{4}|[0-9A-Fa-f]{8}-[0-9]{2}|[0-9A-F]{16})(?![\w-])")
_TOKEN = re.compile(
    r"\b(?:hf_|gh[opsu]_|github_pat_|glpat-|nvapi-|sk-|xox[a-z]-|tskey-|dckr_pat_|AKIA|AIza|ya29\.|eyJ)[A-Za-z0-9_.-]{8,}"
    r"|(?<=Bearer )\S{8,}|(?<=Basic )[A-Za-z0-9+/=]{8,}"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)
CREDENTIALS = re.compile(r"//[^/@\s]*@")
SECRET = re.compile(
    r"""(\b[\w.-]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)\w*["']?\s*[=:]\s*)("[^"\n]*"|'[^'\n]*'|[^\s"',;]+)""", re.IGNORECASE
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+(?!service\b|socket\b|timer\b|path\b|target\b|device\b|mount\b|slice\b|scope\b)[A-Za-z]{2,}(?![\w-])")
_SITE = re.compile(r"(?<=://)((?:REDACTED@)?)([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)")
# Whoever has DGX OS, Ubuntu or Debian knows these; any other place says whose machine it is.
_PUBLISHERS = (
    "nvidia.com", "ubuntu.com", "debian.org", "canonical.com", "launchpad.net", "launchpadcontent.net", "docker.com", "github.com", "github.io",
    "githubusercontent.com", "google.com", "microsoft.com", "python.org", "pytorch.org", "huggingface.co", "fwupd.org", "freedesktop.org", "gnu.org",
    "kernel.org", "redhat.com", "example", "example.com", "localhost",
)
_PERSON = re.compile(r"(/(?:home|media|run/media)/)([^/\s:\"'<>]+)")
# A name that anything may have tells nobody, and cutting it out of paths and packages would break the recording.
_COMMON = (
    "root", "user", "admin", "administrator", "ubuntu", "debian", "nvidia", "dgx", "spark", "gb10", "test", "linux", "localhost", "server", "node", "gpu",
    "cuda", "nccl", "ray", "vllm", "head", "worker", "docker", "system", "host", "default", "python", "none",
)
_LOW = (1 << 64) - 1
_MADE_FROM_MAC = 0x5C0000FFFE000000


def _is_made_from_mac(low: int) -> bool:
    """Whether the second half of an IPv6 address has the ff:fe that stands in the middle of a MAC."""
    return low >> 24 & 0xFFFF == 0xFFFE


class Replacements:
    """What stands in the place of what is taken out.

    learn() is to see all texts first: a serial number that a label gives away is then taken out where it stands alone, too.

    Args:
        kept: UUIDs that name kinds of devices.
        host: name of the node.
        user: name of who logs in.
        home: home directory of who logs in.
        paths: paths of the node, none of which a name of a host or a user may break.
    """

    def __init__(
        self, kept: t.Iterable[str] = (), host: str | None = None, user: str | None = None, home: str | None = None, paths: t.Iterable[str] = ()
    ) -> None:
        self.kept = {value.lower() for value in kept}
        self.by_kind: dict[str, dict[str, str]] = {}
        self.host = host
        self.home = home.rstrip("/") if home else None
        self.user = user
        self._learned: re.Pattern[str] | None = None
        self._plain: dict[str, str] = {}
        self._words: dict[re.Pattern[str], str] = {}
        if user and user not in _COMMON:
            self._number("person", user)
        parts = {part for path in paths if not _PERSON.match(path) for part in path.split("/")}
        for word, other in [(host, NODE), ((host or "").partition(".")[0], NODE), (user, "user")]:
            if word and len(word) > 2 and word.lower() not in _COMMON and word not in parts:
                self._words[re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")] = other

    def _number(self, kind: str, value: str) -> int:
        known = self.by_kind.setdefault(kind, {})
        return int(known.setdefault(value.lower(), str(len(known) + 1)))

    def uuid(self, text: str) -> str:
        """A UUID."""
        return text if text.lower() in self.kept else f"00000000-0000-0000-0000-{self._number('uuid', text):012d}"

    def mac(self, text: str, separator: str) -> str:
        """A hardware address of 6 or of 20 bytes; those of loopback and broadcast stay."""
        octets = text.split(separator) if separator else [text[start:start + 2] for start in range(0, len(text), 2)]
        if len(set(octets)) == 1:
            return text
        number = self._number("mac", "".join(octets))
        filling = ["00"] * (len(octets) - 3)
        return separator.join(["5e", *filling, f"{number >> 8 & 255:02x}", f"{number & 255:02x}"])

    def _half(self, low: int) -> int:
        """The second half of an IPv6 address, or a GUID: what is made from a MAC is made from what stands in that one's place."""
        if _is_made_from_mac(low):
            mac = f"{(low >> 40 ^ 0x020000) & 0xFFFFFF:06x}{low & 0xFFFFFF:06x}"
            return _MADE_FROM_MAC | self._number("mac", mac) & 0xFFFF
        return 0xFEED << 48 | self._number("guid", f"{low:016x}") & 0xFFFF

    def guid(self, text: str) -> str:
        """A GUID of four groups; zeros stay, and so does what has not all its digits and is no half of an address."""
        groups = text.split(":")
        low = int("".join(group.zfill(4) for group in groups), 16)
        whole = all(len(group) == 4 for group in groups)
        if not low or not (whole or _is_made_from_mac(low)):
            return text
        value = f"{self._half(low):016x}"
        parts = [value[start:start + 4] for start in range(0, 16, 4)]
        return ":".join(parts if whole else [f"{int(part, 16):x}" for part in parts])

    def ipv4(self, address: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
        """A public address is replaced by one of 198.18.0.0/15, hosts of one /24 by hosts of one /24; private ones stay."""
        if not address.is_global or address.is_multicast:
            return address
        network, host = divmod(int(address), 256)
        return ipaddress.IPv4Address((int(ipaddress.IPv4Address("198.18.0.0")) >> 8) + self._number("network", str(network)) % 512 << 8 | host)

    def ipv6(self, address: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
        """Networks other than the link's own are replaced, and so is what tells the machine; ::1, and short numbers that people gave, stay."""
        if address.ipv4_mapped is not None:
            return ipaddress.IPv6Address(0xFFFF << 32 | int(self.ipv4(address.ipv4_mapped)))
        high, low = int(address) >> 64, int(address) & _LOW
        if address.is_multicast:
            # The group of an address has its last three bytes.
            return ipaddress.IPv6Address(int(address) >> 24 << 24 | self._number("group", str(low)) & 0xFFFF) if low >> 24 == 0x1FF else address
        if high and not address.is_link_local and high >> 16 not in (0x20010DB80001, 0xFD000DB80001):
            kind = 0xFD000DB80001 if high >> 57 == 0xFC >> 1 else 0x20010DB80001
            high = kind << 16 | self._number("network6", str(high)) & 0xFFFF
        return ipaddress.IPv6Address(high << 64 | (low if low >> 16 == 0 else self._half(low)))

    def _ipv6_text(self, text: str) -> str:
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return text
        other = self.ipv6(address)
        if other == address:
            return text
        return other.exploded if len(text) == 39 else f"::ffff:{other.ipv4_mapped}" if other.ipv4_mapped else other.compressed

    def ipv4_text(self, text: str) -> str:
        """An IPv4 address in a text where no version of anything stands."""
        try:
            address = ipaddress.IPv4Address(text)
        except ValueError:
            return text
        other = str(self.ipv4(address))
        if other != text:
            self.by_kind.setdefault("ipv4", {})[text] = other
        return other

    def serial(self, text: str) -> str:
        """A serial number; what says that there is none stays."""
        bare = text.strip("\"'")
        if bare.strip().upper() in _NO_SERIAL or not bare.strip("0"):
            return text
        return text.replace(bare, f"{self._number('serial', bare):08d}")

    def digest(self, text: str) -> str:
        """A machine id, or an id of a device that is a digest."""
        return text if text.lower() in self.kept or not text.strip("0") else f"{self._number('digest', text):0{len(text)}x}"

    def site(self, text: str) -> str:
        """The host of a URI that is none of the well-known publishers'."""
        lower = text.lower()
        if text == REDACTED or any(lower == known or lower.endswith(f".{known}") for known in _PUBLISHERS):
            return text
        if IPV4.fullmatch(text):
            return self.ipv4_text(text)
        return f"host-{self._number('site', text)}.example"

    def person(self, name: str) -> str:
        """The folder of a user; the first one is who logs in."""
        if name in _COMMON or re.match(r"^user-\d+$", name):
            return name
        number = self._number("person", name)
        return "user" if name == self.user else f"user-{number}"

    def learn(self, value: t.Any) -> None:
        """See all texts once."""
        self.value(value)
        plain: dict[str, str] = dict(self.by_kind.get("ipv4", {}))
        for serial in self.by_kind.get("serial", {}):
            if len(serial) >= 6 and re.search(r"\d", serial):
                plain[serial] = self.serial(serial)
        for mac in self.by_kind.get("mac", {}):
            plain[mac] = self.mac(mac, "")
        for guid in self.by_kind.get("guid", {}):
            for written in (guid, f"0x{guid}"):
                plain[written] = f"{'0x' if written != guid else ''}{self._half(int(guid, 16)):016x}"
        for uuid in self.by_kind.get("uuid", {}):
            plain[uuid.replace("-", "")] = self.uuid(uuid).replace("-", "")
        self._plain = plain
        if plain:
            words = "|".join(re.escape(word) for word in sorted(plain, key=len, reverse=True))
            self._learned = re.compile(rf"(?<![0-9A-Za-z])(?:{words})(?![0-9A-Za-z])", re.IGNORECASE)

    def text(self, text: str) -> str:
        """The text with everything replaced."""
        if len(text) >= 6:
            text = CREDENTIALS.sub(f"//{REDACTED}@", _TOKEN.sub(REDACTED, _PRIVATE_KEY.sub(REDACTED, text)))
            text = UUID.sub(lambda found: self.uuid(found.group(0)), text)
            text = _VOLUME.sub(lambda found: found.group(1) + f"{self._number('volume', found.group(2)):04d}-0000", text)
            text = _BY_ID.sub(lambda found: f"{found.group(1)}{self._number('disk', found.group(2))}", text)
            if ":" in text or "-" in text:
                text = MAC.sub(lambda found: self.mac(found.group(0), found.group(1)), text)
                text = _IPV6.sub(lambda found: self._ipv6_text(found.group(0)), text)
                text = _GUID.sub(lambda found: self.guid(found.group(0)), text)
            text = NAME_BY_MAC.sub(lambda found: f"{found.group(1)}x{self.mac(found.group(0)[-12:], '')}", text)
            text = _ELEMENT.sub(lambda found: found.group(1) + self._element(found.group(2), found.group(3)) + found.group(4), text)
            text = _SERIAL.sub(lambda found: found.group(1) + self.serial(found.group(2)), text)
            text = DIGEST.sub(lambda found: self.digest(found.group(0)), text)
            text = _EMAIL.sub(lambda found: f"person-{self._number('email', found.group(0))}@example.com", text)
            text = _SITE.sub(lambda found: found.group(1) + self.site(found.group(2)), text)
            if self._learned:
                text = self._learned.sub(lambda found: self._plain[found.group(0).lower()], text)
        if self.home and self.home != "/root" and not _PERSON.match(self.home):
            text = re.sub(rf"{re.escape(self.home)}(?![\w.-])", "/home/user", text)
        text = _PERSON.sub(lambda found: found.group(1) + self.person(found.group(2)), text)
        for word, other in self._words.items():
            text = word.sub(other, text)
        return text

    def _element(self, name: str, text: str) -> str:
        """Content of an element: what has been replaced by its form stays."""
        replaced = re.search(r"0{8}-0{4}-0{4}-0{4}-\d{12}|^feed:|^5c00:", text)
        return text if replaced or "_part_" in name.lower() else self.serial(text)

    def value(self, value: t.Any) -> t.Any:
        """The same for every text in a value, keys of mappings among them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): item if key in ("bytes", "build_id") else self.value(item) for key, item in value.items()}
        return value
