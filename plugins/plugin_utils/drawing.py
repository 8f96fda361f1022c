# Copyright (c) 2026 gb10.fleet developers
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drawing of a cluster: nodes, cages, rails and what joins them, as shapes that the page's template turns into SVG.

There are two drawings of each cluster. The wide one shows how the cables run: two nodes side by side, a ring as a triangle, nodes on
both sides of a switch. The narrow one, for a phone, has the nodes below each other and a lane for each subnet beside them.
Lengths are in units of the SVG's view box, in which text has its size in pixels.
"""

from __future__ import annotations

import typing as t

WIDE = 1120
NARROW = 360


class Drawing:
    """Shapes in the order in which they are painted, behind ones first."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.height = 0.0
        self.lines: list[dict[str, t.Any]] = []
        self.shapes: list[dict[str, t.Any]] = []

    def line(self, points: str, kind: str) -> None:
        """A line below everything else."""
        self.lines.append({"shape": "path", "d": points, "kind": kind})

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 8) -> None:
        self.shapes.append({"shape": "box", "x": _n(x), "y": _n(y), "width": _n(width), "height": _n(height), "radius": radius, "kind": kind})

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        self.shapes.append({"shape": "dot", "x": _n(x), "y": _n(y), "radius": radius, "kind": kind})

    def text(self, x: float, y: float, text: str, kind: str, anchor: str = "start", room: float | None = None, size: float = 7.0) -> None:
        """A text; of one that does not fit into `room`, at `size` a character, a part is left out and the whole kept as a tip."""
        shown = text
        if room is not None and len(text) * size > room:
            kept = max(int(room / size) - 1, 1)
            end = min(8, kept // 3) if kind.startswith("name") else 0
            shown = text[: kept - end] + "\u2026" + text[len(text) - end :]
        self.shapes.append(
            {"shape": "text", "x": _n(x), "y": _n(y), "text": shown, "whole": text if shown != text else None, "kind": kind, "anchor": anchor}
        )

    def icon(self, x: float, y: float, name: str, size: float = 16) -> None:
        self.shapes.append({"shape": "icon", "x": _n(x), "y": _n(y), "name": name, "size": size})

    def finished(self) -> dict[str, t.Any]:
        return {"width": self.width, "height": _n(self.height), "shapes": self.lines + self.shapes}


def _n(value: float) -> float | int:
    """A length without needless digits."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


Ports = t.Dict[t.Tuple[str, str], t.Tuple[float, float, float]]


def _style(link: dict[str, t.Any]) -> str:
    return f"wire {link['look']}{' down' if link['down'] else ''}"


def _shared(link: dict[str, t.Any]) -> str:
    """The worst verdict that at least two ends of a subnet share: what one node alone has is no fault of the others' lines."""
    verdicts = list(link["rails"].values())
    return next((name for name in ("fail", "warn", "planned", "info", "ok") if verdicts.count(name) > 1), "ok")


class _Cards:
    """Draws nodes as cards; `ports` collects where lines can begin: left edge, right edge and height."""

    def __init__(self, drawing: Drawing, width: float, compact: bool, narrow: bool = False) -> None:
        self.drawing = drawing
        self.width = width
        self.compact = compact
        self.narrow = narrow
        self.row = 26 if compact and not narrow else 40 if narrow else 46
        self.head = 34 if compact else 54
        self.ports: Ports = {}

    def _cages(self, node: dict[str, t.Any]) -> list[dict[str, t.Any]]:
        """A compact card leaves out the cages that are not in use."""
        return [cage for cage in node["cages"] if cage["rails"] or not self.compact]

    def height(self, node: dict[str, t.Any]) -> float:
        if not node["cages"]:
            return self.head + (26 if self.compact else 38)
        total = float(self.head)
        for cage in self._cages(node):
            total += (len(cage["rails"]) * self.row + (6 if self.compact else 26) if cage["rails"] else 26) + 8
        return total + 4

    def draw(self, node: dict[str, t.Any], x: float, y: float) -> None:
        drawing, width = self.drawing, self.width
        drawing.box(x, y, width, self.height(node), f"card {node['verdict']}", 12)
        icon = 16 if self.compact else 20
        drawing.icon(x + width - icon - 12, y + (9 if self.compact else 13), node["verdict"], icon)
        if self.compact:
            drawing.text(x + 12, y + 22, node["label"], "name small", room=width - 120, size=7.6)
            drawing.text(x + width - 36, y + 22, node["role"], "muted", "end")
        else:
            drawing.text(x + 14, y + 24, node["label"], "name", room=width - 60, size=9.2)
            drawing.text(x + 14, y + 42, node["subtitle"], "muted", room=width - 60, size=6.2)
        top = y + self.head
        if not node["cages"]:
            drawing.text(x + 14, top + 12, node["remark"], "muted", room=width - 28, size=6.2)
        for cage in self._cages(node):
            top = self._cage(cage, node, x, top)

    def _cage(self, cage: dict[str, t.Any], node: dict[str, t.Any], x: float, top: float) -> float:
        drawing, width = self.drawing, self.width
        if not cage["rails"]:
            drawing.box(x + 8, top, width - 16, 26, "cage idle", 6)
            drawing.text(x + 18, top + 17, cage["label"], "label")
            drawing.text(x + width - 18, top + 17, cage["idle"], "muted", "end")
            return top + 26 + 8
        above = 3 if self.compact else 22
        height = len(cage["rails"]) * self.row + above + (3 if self.compact else 4)
        drawing.box(x + 8, top, width - 16, height, "cage", 6)
        if not self.compact:
            drawing.text(x + 18, top + 16, cage["label"], "label")
        for number, rail in enumerate(cage["rails"]):
            self._rail(rail, node, x, top + above + number * self.row)
        return top + height + 8

    def _rail(self, rail: dict[str, t.Any], node: dict[str, t.Any], x: float, top: float) -> None:
        drawing, width = self.drawing, self.width
        middle = top + self.row / 2
        self.ports[node["name"], rail["netdev"]] = (x, x + width, middle)
        left, right = x + 18, x + width - 18
        marked = rail["verdict"] in ("fail", "warn")
        second = left
        if marked and self.narrow:
            drawing.icon(left, top + 20, rail["verdict"], 12)
            second += 17
        elif marked:
            drawing.icon(left, top + (6 if self.compact else 4), rail["verdict"], 13)
            left += 18
            second += 18
        if self.compact and not self.narrow:
            end = x + width * 0.7
            drawing.text(left, top + 17, rail["netdev"], "mono", room=end - len(rail["address"]) * 7.2 - left - 4, size=7.2)
            drawing.text(end, top + 17, rail["address"], f"mono{' faint' if rail['planned'] else ''}", "end")
            drawing.text(right, top + 17, rail["short"], "muted", "end")
            return
        size = 6.2 if self.narrow else 7.3
        drawing.text(left, top + 15, rail["netdev"], "mono strong", room=right - left - len(rail["address"]) * size - 4, size=size)
        drawing.text(right, top + 15, rail["address"], f"mono{' faint' if rail['planned'] else ''}", "end")
        if self.narrow:
            drawing.text(second, top + 30, rail["link"], "muted", room=right - second, size=5.5)
        else:
            drawing.text(second, top + 34, rail["device"], "muted", room=right - second - len(rail["link"]) * 6 - 8, size=6.2)
            drawing.text(right, top + 34, rail["link"], "muted", "end")


def _plug(drawing: Drawing, x: float, y: float, verdict: str) -> None:
    drawing.box(x - 5, y - 9, 10, 18, f"plug {verdict}", 3)


def _pill(drawing: Drawing, x: float, y: float, link: dict[str, t.Any], width: float) -> None:
    drawing.box(x - width / 2, y - 19, width, 38, f"pill {link['look']}", 8)
    marked = link["verdict"] in ("fail", "warn") or link["down"]
    if marked:
        drawing.icon(x - width / 2 + 8, y - 8, link["verdict"] if link["verdict"] != "ok" else "info", 16)
    shift = 11 if marked else 0
    drawing.text(x + shift, y - 3, link["subnet"], "mono", "middle", room=width - 8 - 2 * shift, size=7.2)
    drawing.text(x + shift, y + 12, link["text"], "muted", "middle", room=width - 8 - 2 * shift, size=5.8)


def wide(cluster: dict[str, t.Any]) -> dict[str, t.Any]:
    """The drawing for a wide screen and for paper.

    Args:
        cluster: {nodes: [{name, label, role, subtitle, remark, verdict, cages: [{label, idle, rails: [{netdev, device, address, planned, link,
            short, verdict}]}]}], links: [{subnet, text, verdict, look, down, down_ends, ends: [(node, netdev)], rails: {(node, netdev): look}}], shape}.
            A look is a verdict or "planned".

    Returns:
        {width, height, shapes}.
    """
    nodes, links = cluster["nodes"], cluster["links"]
    if len(nodes) == 1:
        return _single(nodes[0])
    if cluster["shape"] == "pair":
        return _pair(nodes, links)
    if cluster["shape"] == "ring" and len(nodes) == 3:
        return _triangle(nodes, links)
    if cluster["shape"] == "switch" and len(links) <= 2:
        return _switch(nodes, links)
    return lanes(cluster, WIDE)


def _single(node: dict[str, t.Any]) -> dict[str, t.Any]:
    drawing = Drawing(WIDE)
    cards = _Cards(drawing, 430, False)
    cards.draw(node, (WIDE - 430) / 2, 2)
    drawing.height = cards.height(node) + 4
    return drawing.finished()


def _pair(nodes: list[dict], links: list[dict]) -> dict[str, t.Any]:
    drawing = Drawing(WIDE)
    cards = _Cards(drawing, 420, False)
    right = WIDE - 420 - 2
    cards.draw(nodes[0], 2, 2)
    cards.draw(nodes[1], right, 2)
    drawing.height = max(cards.height(node) for node in nodes) + 4
    middle = WIDE / 2
    for link in links:
        ends = [cards.ports[end] for end in link["ends"] if end in cards.ports]
        if len(ends) < 2:
            continue
        one, other = ends[0], ends[1]
        drawing.line(f"M{one[1]},{one[2]} C{middle},{one[2]} {middle},{other[2]} {other[0]},{other[2]}", _style(link))
        _plug(drawing, one[1], one[2], link["look"])
        _plug(drawing, other[0], other[2], link["look"])
        _pill(drawing, middle, (one[2] + other[2]) / 2, link, 212)
    if not links:
        drawing.text(middle, drawing.height / 2, "not joined", "muted", "middle")
    return drawing.finished()


def _triangle(nodes: list[dict], links: list[dict]) -> dict[str, t.Any]:
    drawing = Drawing(WIDE)
    cards = _Cards(drawing, 370, False)
    first, second, third = nodes
    places = {first["name"]: ((WIDE - 370) / 2, 2.0)}
    below = cards.height(first) + 60
    places[second["name"]] = (62.0, below)
    places[third["name"]] = (WIDE - 370 - 62.0, below)
    for node in nodes:
        cards.draw(node, *places[node["name"]])
    drawing.height = below + max(cards.height(second), cards.height(third)) + 4
    lane = {"left": 14.0, "right": WIDE - 14.0}
    for link in links:
        ends = sorted((end for end in link["ends"] if end in cards.ports), key=lambda end: [node["name"] for node in nodes].index(end[0]))
        if len(ends) < 2:
            continue
        one, other = cards.ports[ends[0]], cards.ports[ends[1]]
        kind = _style(link)
        if ends[0][0] == second["name"]:
            drawing.line(f"M{one[1]},{one[2]} C{WIDE / 2},{one[2]} {WIDE / 2},{other[2]} {other[0]},{other[2]}", kind)
            _plug(drawing, one[1], one[2], link["look"])
            _plug(drawing, other[0], other[2], link["look"])
            _pill(drawing, WIDE / 2, (one[2] + other[2]) / 2, link, 158)
            continue
        left = ends[1][0] == second["name"]
        side = 0 if left else 1
        x = lane["left" if left else "right"]
        lane["left" if left else "right"] += 18 if left else -18
        turn = 12 if left else -12
        drawing.line(
            f"M{_n(one[side])},{one[2]} H{_n(x + turn)} Q{_n(x)},{one[2]} {_n(x)},{_n(one[2] + 12)} V{_n(other[2] - 12)} "
            f"Q{_n(x)},{other[2]} {_n(x + turn)},{other[2]} H{_n(other[side])}",
            kind,
        )
        _plug(drawing, one[side], one[2], link["look"])
        _plug(drawing, other[side], other[2], link["look"])
        _pill(drawing, 228 if left else WIDE - 228, one[2], link, 170)
    return drawing.finished()


def _switch(nodes: list[dict], links: list[dict]) -> dict[str, t.Any]:
    drawing = Drawing(WIDE)
    cards = _Cards(drawing, 372, len(nodes) > 4)
    gap = 14
    columns = (2.0, WIDE - 372 - 2.0)
    rows = [nodes[index : index + 2] for index in range(0, len(nodes), 2)]
    top = 46.0
    for row in rows:
        for node, x in zip(row, columns):
            cards.draw(node, x, top)
        top += max(cards.height(node) for node in row) + gap
    drawing.height = max(top - gap + 4, 150)
    left, right = columns[0] + 372 + 32, columns[1] - 32
    drawing.lines.append(
        {"shape": "box", "x": left, "y": 46, "width": right - left, "height": _n(drawing.height - 48), "radius": 14, "kind": "switch"}
    )
    drawing.text(WIDE / 2, 66, "switch", "label", "middle")
    places = (WIDE / 2,) if len(links) == 1 else (WIDE / 2 - 100, WIDE / 2 + 100)
    for number, link in enumerate(links):
        ends = [(end, cards.ports[end]) for end in link["ends"] if end in cards.ports]
        x = places[number]
        drawing.line(f"M{_n(x)},40 V{_n(max([place[2] for end, place in ends] or [90.0]))}", f"wire {_shared(link)} bus")
        for end, place in ends:
            edge = place[1] if place[0] < WIDE / 2 else place[0]
            spur = f"wire {link['rails'][end]}{' down' if end in link['down_ends'] else ''}"
            drawing.line(f"M{_n(edge)},{_n(place[2])} H{_n(x)}", spur)
            drawing.dot(x, place[2], 4.5, link["rails"][end])
            _plug(drawing, edge, place[2], link["rails"][end])
        _pill(drawing, x, 21, link, 190)
    return drawing.finished()


def lanes(cluster: dict[str, t.Any], width: int = NARROW) -> dict[str, t.Any]:
    """The drawing with the nodes below each other and a lane for each subnet to their right.

    Args:
        cluster: as for wide.
        width: of the drawing.

    Returns:
        {width, height, shapes}.
    """
    nodes = cluster["nodes"]
    links = [link for link in cluster["links"] if len(link["ends"]) > 1] if len(nodes) > 1 else []
    drawing = Drawing(width)
    narrow = width == NARROW
    pitch = min(18.0 if narrow else 30.0, (110.0 if narrow else 220.0) / (len(links) or 1))
    room = len(links) * pitch + (14 if links else 0)
    cards = _Cards(drawing, width - room - 4 if narrow else 480.0, len(nodes) > 4, narrow)
    top = 2.0
    for node in nodes:
        cards.draw(node, 2, top)
        top += cards.height(node) + 12
    for number, link in enumerate(links):
        x = _n(cards.width + 16 + number * pitch)
        ends = [(end, cards.ports[end]) for end in link["ends"] if end in cards.ports]
        if not ends:
            continue
        heights = [place[2] for end, place in ends]
        drawing.line(f"M{x},{min(heights)} V{max(heights)}", f"{_style(link) if len(ends) == 2 else f'wire {_shared(link)}'} bus")
        for end, place in ends:
            drawing.line(f"M{_n(place[1])},{place[2]} H{x}", f"wire {link['rails'][end]}{' down' if end in link['down_ends'] else ''}")
            drawing.dot(x, place[2], 7.5, link["rails"][end])
            drawing.text(x, place[2] + 3.2, str(number + 1), "number", "middle")
    # What the lanes are: below, or where there is room beside them.
    left, right = (5.0, width - 4.0) if narrow else (cards.width + room + 36, cards.width + room + 396)
    row = top if narrow else 10.0
    for number, link in enumerate(links):
        drawing.dot(left + 7, row + 7, 7.5, link["look"])
        drawing.text(left + 7, row + 10.2, str(number + 1), "number", "middle")
        drawing.text(left + 23, row + 11, link["subnet"], "mono")
        drawing.icon(right - 14, row, link["verdict"], 14)
        drawing.text(right - 20, row + 11, link["text"], "muted", "end", room=right - left - 165, size=5.6)
        row += 22 if narrow else 26
    drawing.height = max(top, row)
    return drawing.finished()
