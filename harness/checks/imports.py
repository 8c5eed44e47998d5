"""Which module imports which, and which of these imports must not be?

Everything is read from the source, and an import counts wherever it stands: at the top of a file, inside a function or
under TYPE_CHECKING. What is found by a name that only exists at run time (the filters of `filters.registry`, the agents
of a task) is no import here.
"""

import ast
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ALLOWED: dict[str, tuple[str, ...]] = {
    "filters": (),
    "algos": ("filters",),
    "leaderboard": ("filters",),
    "harness": ("algos", "filters", "leaderboard"),
}
"""each package with the packages that it may import besides itself"""
MOST_MODULES = 14
"""in one directory, `__init__.py` aside"""

Modules = dict[str, Path]
"""dotted name -> file, relative to the root; a package stands for its `__init__.py`"""


@dataclass(frozen=True)
class Import:
    """One module imports another."""

    importer: str
    """dotted name of the module that holds the statement"""
    imported: str
    """dotted name of the module that it runs"""
    line: int
    """of the first such statement in the importer's file"""
    stated: bool
    """whether a statement names it, rather than a module inside it"""


def find_modules(root: Path) -> Modules:
    """All modules of the four packages below `root`, sorted by name."""
    files = [file for package in ALLOWED for file in (root / package).rglob("*.py")]
    return dict(sorted((dotted(file.relative_to(root)), file.relative_to(root)) for file in files))


def dotted(file: Path) -> str:
    """`harness/cells/cell.py` -> `harness.cells.cell`; a package's `__init__.py` -> the package."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(root: Path) -> list[Import]:
    """Every pair of modules of which one imports the other, sorted.

    Importing `a.b.c` also runs the packages `a` and `a.b`, so these count as imported as well, unless the importer
    itself lies inside them and they run before it anyway.
    """
    modules = find_modules(root)
    found: dict[tuple[str, str], list[tuple[int, bool]]] = {}
    for importer, file in modules.items():
        for target, line in statements(root / file, importer, modules):
            for imported in loaded(target, importer, modules):
                found.setdefault((importer, imported), []).append((line, imported == target))
    return [
        Import(importer, imported, line=min(line for line, _ in where), stated=any(stated for _, stated in where))
        for (importer, imported), where in sorted(found.items())
    ]


def statements(file: Path, importer: str, modules: Modules) -> Iterator[tuple[str, int]]:
    """The modules of ours that a file names in import statements and `import_module("...")`, with their lines."""
    package = importer if file.name == "__init__.py" else importer.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), file)):
        match node:
            case ast.Import(names=names):
                targets = [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                base = absolute(module or "", level, package)
                inner = [f"{base}.{alias.name}" for alias in names]
                targets = [name if name in modules else base for name in inner]
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                targets = [name]
            case _:
                continue
        yield from ((target, node.lineno) for target in targets if target in modules)


def absolute(module: str, level: int, package: str) -> str:
    """The dotted name behind `from ..module import` in a module of `package`; level 0 is absolute already."""
    if level == 0:
        return module
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *filter(None, [module])])


def loaded(target: str, importer: str, modules: Modules) -> Iterator[str]:
    """`target` and the packages around it, without those that the importer itself lies in."""
    yield target
    parts = target.split(".")
    for end in range(1, len(parts)):
        package = ".".join(parts[:end])
        if package in modules and not f"{importer}.".startswith(f"{package}."):
            yield package


def forbidden(imports: Sequence[Import]) -> list[Import]:
    """The imports that point from a package to one that it may not know, as the statements name them."""
    return [
        one
        for one in imports
        if one.stated
        and (home := package_of(one.importer)) != (there := package_of(one.imported))
        and there not in ALLOWED[home]
    ]


def package_of(module: str) -> str:
    """The top-level package: `harness.cells.cell` -> `harness`."""
    return module.partition(".")[0]


def circles(imports: Sequence[Import]) -> list[list[Import]]:
    """For every import that lies on a circle the shortest one through it; each set of modules once."""
    by_pair = {(one.importer, one.imported): one for one in imports}
    following: dict[str, list[str]] = {}
    for one in imports:
        following.setdefault(one.importer, []).append(one.imported)
    found: dict[frozenset[str], list[Import]] = {}
    for one in imports:
        back = shortest_path(one.imported, one.importer, following)
        if back is not None:
            found.setdefault(frozenset(back), [one, *(by_pair[pair] for pair in pairwise(back))])
    return list(found.values())


def shortest_path(start: str, end: str, following: dict[str, list[str]]) -> list[str] | None:
    """The modules from `start` to `end`, both included, along imports; None if there is no way."""
    came_from = {start: start}
    queue = deque([start])
    while queue:
        module = queue.popleft()
        if module == end:
            path = [module]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for other in following.get(module, []):
            if other not in came_from:
                came_from[other] = module
                queue.append(other)
    return None


def crowded(modules: Modules) -> dict[Path, int]:
    """The directories that hold more than `MOST_MODULES` modules, with their numbers."""
    counts: dict[Path, int] = {}
    for file in modules.values():
        if file.name != "__init__.py":
            counts[file.parent] = counts.get(file.parent, 0) + 1
    return {directory: count for directory, count in sorted(counts.items()) if count > MOST_MODULES}


def faults(root: Path) -> list[str]:
    """What is wrong with the imports below `root`, a sentence each; empty if nothing is."""
    modules = find_modules(root)
    imports = find_imports(root)

    def words(one: Import) -> str:
        return f"{modules[one.importer].as_posix()}:{one.line} imports {modules[one.imported].as_posix()}"

    arrows = [
        f"forbidden arrow: {words(one)}, and {package_of(one.importer)} may import {allowed(package_of(one.importer))}"
        for one in forbidden(imports)
    ]
    rounds = [f"circle: {', '.join(words(one) for one in circle)}" for circle in circles(imports)]
    full = [
        f"crowded: {directory.as_posix()}/ holds {count} modules, more than {MOST_MODULES}; make a package of some"
        for directory, count in crowded(modules).items()
    ]
    return arrows + rounds + full


def allowed(package: str) -> str:
    """What a package may import, in words."""
    return f"only itself and {', '.join(ALLOWED[package])}" if ALLOWED[package] else "only itself"
