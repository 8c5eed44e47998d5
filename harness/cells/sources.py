"""Which source files decide a result, and are they still the same?

A module's sources are its own file and those that it imports, wherever in the file, from the same package, from
beside it, or from this project. Packages that are installed are known by their version instead.
"""

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from filters.api import Filter

OURS = ("filters", "algos", "harness", "leaderboard")
"""the packages of this project"""


def filter_sources(filter: Filter) -> dict[str, str]:
    """SHA-256 by module of the sources of a filter, and of the filters in it, that are not of this project."""
    found: dict[str, str] = {}
    for part in (filter, *inner_filters(filter)):
        for cls in type(part).__mro__:
            if is_foreign(cls.__module__, cls.__module__):
                home = cls.__module__
                found |= digests(home, lambda name, home=home: is_foreign(name, home))  # type: ignore[misc]
    return dict(sorted(found.items()))


def inner_filters(filter: Filter) -> Iterator[Filter]:
    """The filters that are fields of a filter, at any depth."""
    for value in vars(filter).values():
        if isinstance(value, Filter):
            yield value
            yield from inner_filters(value)


def project_sources(agent: str, filter: Filter) -> dict[str, str]:
    """The start of the SHA-256 by module of this project's sources behind an agent and a filter."""
    found = digests(f"algos.{agent}", is_ours)
    for part in (filter, *inner_filters(filter)):
        for cls in type(part).__mro__:
            if is_ours(cls.__module__):
                found |= digests(cls.__module__, is_ours)
    return {name: digest[:16] for name, digest in sorted(found.items())}


def is_ours(name: str) -> bool:
    """Whether a module belongs to the parts of this project that decide results."""
    return name.partition(".")[0] in ("filters", "algos")


def is_foreign(name: str, home: str) -> bool:
    """Whether a module counts among the sources of a filter that lives in the module `home`, from outside."""
    top = name.partition(".")[0]
    if top in OURS:
        return False
    if top != home.partition(".")[0]:
        package = source_file(top)  # looked at first: asking for a module imports the packages above it
        if package is None or is_installed(package):
            return False
    return source_file(name) is not None


def is_installed(file: Path) -> bool:
    """Whether a file lies among installed packages or in the standard library."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(file.is_relative_to(folder) for folder in folders if folder)


def digests(name: str, counts: Callable[[str], bool]) -> dict[str, str]:
    """SHA-256 by module of a module and of all that it imports and that counts."""
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module not in found and counts(module) and (file := source_file(module)):
            found[module], imported = scan(module, file)
            waiting += imported
    return found


@lru_cache(maxsize=4096)
def scan(module: str, file: Path) -> tuple[str, tuple[str, ...]]:
    """A module's digest and the names that it imports, as they are when this process first asks.

    A process runs what it imported at its start, so later edits of the file don't count for it.
    """
    source = file.read_bytes()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    parents = [module[:end] for end, char in enumerate(module) if char == "."]
    try:
        imported = tuple(imports(ast.parse(source), package))
    except (SyntaxError, ValueError):
        imported = ()
    return hashlib.sha256(source).hexdigest(), (*parents, *imported)


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The modules that a source imports; `from a import b` may mean the module a.b as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@lru_cache(maxsize=4096)
def source_file(name: str) -> Path | None:
    """The Python file of a module; None if it has none. Imports nothing but the packages above it."""
    loaded = sys.modules.get(name)
    try:
        file = getattr(loaded, "__file__", None) if loaded else getattr(importlib.util.find_spec(name), "origin", None)
    except (ImportError, AttributeError, ValueError):
        return None
    return Path(file) if file and file.endswith(".py") else None
