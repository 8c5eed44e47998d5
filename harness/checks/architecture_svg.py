"""What do the packages and their imports look like? The graph of `harness.checks.imports` as SVG text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from harness.checks.imports import ALLOWED, find_imports, find_modules, forbidden, package_of

SAYS = {
    "filters": "which records the update may use; imports nothing of ours",
    "algos": "agents that learn, one file each",
    "leaderboard": "reads files: metrics, statistics, board",
    "harness": "runs filters on tasks and seeds, and looks inside",
}
OWN_MODULES = {
    "filters": "interface, filters",
    "algos": "agents",
    "leaderboard": "commands",
    "harness": "commands",
}
"""what the modules directly in a package are, for their box"""

WIDTH, MARGIN, GAP, CHANNEL = 920, 20, 48, 60
HEADER, ROW, BOX = 58, 62, 34
"""pixels: a package's heading, from one row of boxes to the next, a box"""
COLOURS = {"box": "#57606a", "package": "#0550ae", "wrong": "#cf222e"}
"""of the arrows between boxes, between packages, and where none may be"""

Pair = tuple[str, str]
"""importer and imported"""
Point = tuple[float, float]
"""x and y in pixels from the top left"""


@dataclass(frozen=True)
class Frame:
    """A rectangle, in pixels from the top left."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """x of the centre"""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """x of the right edge"""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """y of the lower edge"""
        return self.y + self.height


@dataclass(frozen=True)
class Layout:
    """The boxes of a package in rows, and the slots through which longer arrows pass the rows between."""

    rows: list[list[str]]
    """names of boxes and slots from top to bottom, from left to right"""
    ways: dict[Pair, list[str]]
    """each arrow with its two boxes and the slots between them"""


def picture(root: Path) -> str:
    """The picture as SVG text; the same graph gives the same bytes.

    Every text stands on an opaque light ground of the picture's own, so that it reads the same on a dark page.
    """
    modules, imports = find_modules(root), find_imports(root)
    home = {module: ".".join(file.parent.parts[:2]) for module, file in modules.items()}
    pairs = sorted({(home[one.importer], home[one.imported]) for one in imports})
    layouts = {}
    for package in ALLOWED:
        boxes = sorted({box for box in home.values() if package_of(box) == package})
        layouts[package] = lay_out(boxes, [(a, b) for a, b in pairs if a != b and a in boxes and b in boxes])
    frames = package_frames({package: HEADER + ROW * len(layout.rows) for package, layout in layouts.items()})
    between = sorted({(package_of(a), package_of(b)) for a, b in pairs if package_of(a) != package_of(b)})
    wrong = {(package_of(one.importer), package_of(one.imported)) for one in forbidden(imports)}
    height = max(frame.bottom for frame in frames.values()) + MARGIN
    lines = list(head(height, "; ".join(f"{a} imports {b}" for a, b in between)))
    for package, layout in layouts.items():
        lines += package_lines(package, frames[package], layout)
    lines += [package_arrow(frames[a], frames[b], "wrong" if (a, b) in wrong else "package") for a, b in between]
    return "\n".join([*lines, "</svg>", ""])


def lay_out(boxes: Sequence[str], pairs: Sequence[Pair]) -> Layout:
    """Importers above what they import; boxes that import each other share a row."""
    level = levels(boxes, pairs)
    ways = {}
    rows: list[list[str]] = [[box for box in boxes if level[box] == k] for k in range(max(level.values()) + 1)]
    for a, b in without_detours(pairs):
        slots = {k: f"{a} to {b} over {k}" for k in range(level[a] + 1, level[b])}
        ways[a, b] = [a, *slots.values(), b]
        for k, slot in slots.items():
            rows[k].append(slot)
    links = [step for way in ways.values() for step in pairwise(way)]
    for _ in range(4):  # each pass puts every name below, then above, the names that it is linked with
        for k in [*range(1, len(rows)), *range(len(rows) - 2, -1, -1)]:
            rows[k] = nearest_order(rows, k, links)
    return Layout(rows, ways)


def nearest_order(rows: Sequence[Sequence[str]], k: int, links: Sequence[Pair]) -> list[str]:
    """Row k ordered by the mean place of each name's links in other rows; a name without any keeps its place."""
    place = {name: (j + 0.5) / len(row) for row in rows for j, name in enumerate(row)}

    def mean_place(name: str) -> float:
        near = [b if a == name else a for a, b in links if name in (a, b)]
        places = [place[other] for other in near if other not in rows[k]] or [place[name]]
        return sum(places) / len(places)

    return sorted(rows[k], key=lambda name: (round(mean_place(name), 9), name))


def levels(boxes: Sequence[str], pairs: Sequence[Pair]) -> dict[str, int]:
    """The row of each box, counted from the top: one below the lowest of its importers."""
    mutual = {(a, b) for a, b in pairs if a in reach(b, pairs)}
    level = dict.fromkeys(boxes, 0)
    for _ in boxes:
        for a, b in pairs:
            level[b] = max(level[b], level[a] + ((a, b) not in mutual))
    for box in set(boxes) - {b for _, b in pairs}:
        level[box] = max(min((level[b] for a, b in pairs if a == box), default=1) - 1, 0)  # just above what it needs
    return level


def reach(start: str, pairs: Sequence[Pair]) -> set[str]:
    """All boxes that `start` imports, over however many others."""
    seen: set[str] = set()
    left = [start]
    while left:
        box = left.pop()
        new = {b for a, b in pairs if a == box} - seen
        seen |= new
        left += new
    return seen


def without_detours(pairs: Sequence[Pair]) -> list[Pair]:
    """The arrows that no way over other boxes replaces; of boxes that import each other all stay."""
    reached = {box: reach(box, pairs) for pair in pairs for box in pair}

    def replaced(a: str, b: str) -> bool:
        over = [c for x, c in pairs if x == a and c != b and a not in reached[c]]
        return a not in reached[b] and any(b in reached[c] for c in over)

    return [(a, b) for a, b in pairs if not replaced(a, b)]


def package_frames(heights: Mapping[str, float]) -> dict[str, Frame]:
    """Where each package stands: on bands by what it may import, side by side within a band."""

    def depth(package: str) -> int:
        return 1 + max((depth(other) for other in ALLOWED[package]), default=-1)

    frames: dict[str, Frame] = {}
    y: float = MARGIN
    for level in sorted({depth(package) for package in ALLOWED}, reverse=True):
        band = [package for package in ALLOWED if depth(package) == level]
        width = (WIDTH - 2 * MARGIN - GAP * (len(band) - 1)) / len(band)
        height = max(heights[package] for package in band)
        for k, package in enumerate(band):
            frames[package] = Frame(MARGIN + k * (width + GAP), y, width, height)
        y += height + CHANNEL
    return frames


def head(height: float, described: str) -> Iterator[str]:
    """The opening lines: size, description, arrow heads and the ground."""
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
    yield '     role="img" font-family="system-ui, sans-serif" font-size="14">'
    yield "<title>The packages and their imports</title>"
    yield f"<desc>{escape(described)}</desc>"
    yield "<defs>"
    for kind, colour in COLOURS.items():
        yield f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        yield f'        markerUnits="userSpaceOnUse" orient="auto-start-reverse" fill="{colour}">'
        yield '<path d="M0,0 L8,4 L0,8 z"/></marker>'
    yield "</defs>"
    yield f'<rect width="{WIDTH}" height="{height:g}" rx="10" fill="#eef1f4"/>'


def package_lines(package: str, frame: Frame, layout: Layout) -> Iterator[str]:
    """A package: its frame and heading, the boxes inside and the arrows between them."""
    x, y = frame.x + 16, frame.y + 24
    yield f'<g id="{package}">'
    yield rectangle(frame, fill="#ffffff", stroke="#0550ae")
    yield f'<text x="{x:g}" y="{y:g}" font-weight="bold" fill="#1f2328">{package}/</text>'
    yield f'<text x="{x:g}" y="{y + 18:g}" font-size="12" fill="#57606a">{escape(SAYS[package])}</text>'
    places = dict(box_frames(frame, layout.rows))
    for (a, b), way in layout.ways.items():
        if (b, a) not in layout.ways or a < b:
            yield arrow(points([places[name] for name in way]), "box", both=(b, a) in layout.ways)
    for box in (box for way in layout.rows for box in way if " " not in box):
        text = OWN_MODULES[package] if box == package else box.partition(".")[2]
        yield rectangle(places[box], fill="#ddf4ff", stroke="#54aeff")
        x, y = places[box].middle, places[box].y + 22
        yield f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="#1f2328">{escape(text)}</text>'
    yield "</g>"


def box_frames(frame: Frame, rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, Frame]]:
    """Where the boxes and slots of a package stand: each row spread evenly over its width."""
    for k, row in enumerate(rows):
        pitch = frame.width / len(row)
        width = min(160, pitch - 24)
        for j, name in enumerate(row):
            yield name, Frame(frame.x + (j + 0.5) * pitch - width / 2, frame.y + HEADER + k * ROW, width, BOX)


def points(way: Sequence[Frame]) -> list[Point]:
    """Where an arrow runs: out of the first box, straight through the slots, into the last box."""
    first, *slots, last = way
    if first.y == last.y:
        return beside(first, last, first.y + BOX / 2)
    passed = [point for slot in slots for point in ((slot.middle, slot.y), (slot.middle, slot.bottom))]
    return [(first.middle, first.bottom), *passed, (last.middle, last.y)]


def beside(a: Frame, b: Frame, y: float) -> list[Point]:
    """From the edge of a frame to the facing edge of another that stands beside it."""
    return [(a.right, y), (b.x, y)] if a.x < b.x else [(a.x, y), (b.right, y)]


def package_arrow(a: Frame, b: Frame, kind: str) -> str:
    """An arrow between two packages, through the middle of the sides that face each other."""
    if a.y == b.y:
        return arrow(beside(a, b, a.y + BOX), kind, width=2.5)
    x = (max(a.x, b.x) + min(a.right, b.right)) / 2
    if a.y < b.y:
        return arrow([(x, a.bottom), (x, b.y)], kind, width=2.5)
    return arrow([(x + MARGIN, a.y), (x + MARGIN, b.bottom)], kind, width=2.5)


def arrow(points: Sequence[Point], kind: str, *, width: float = 1.2, both: bool = False) -> str:
    """An arrow through the points, with two heads if `both`."""
    way = " L".join(f"{x:g},{y:g}" for x, y in points)
    back = f' marker-start="url(#{kind})"' if both else ""
    stroke = f'stroke="{COLOURS[kind]}" stroke-width="{width:g}"'
    return f'<path d="M{way}" {stroke} fill="none"{back} marker-end="url(#{kind})"/>'


def rectangle(frame: Frame, *, fill: str, stroke: str) -> str:
    """A rounded rectangle."""
    size = f'x="{frame.x:g}" y="{frame.y:g}" width="{frame.width:g}" height="{frame.height:g}"'
    return f'<rect {size} rx="6" fill="{fill}" stroke="{stroke}"/>'
