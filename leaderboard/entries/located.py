"""What is the source of a module that is installed here? Found without importing anything."""

import ast
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path


def source_without_import(module: str) -> str | None:
    """The text of a module's file, line ends as \\n; None if there is no such module, or none with a source file.

    `importlib.util.find_spec` would import the parents of a module, and so run code that a stranger's text chose.
    """
    folders: list[str] | None = None
    name, found = "", None
    for part in module.split("."):
        if found is not None and folders is None:  # the module before is no package
            return None
        name = f"{name}.{part}".lstrip(".")
        found = _find(name, folders)
        if found is None:
            return None
        folders = list(found.submodule_search_locations) if found.submodule_search_locations is not None else None
    if found is None or not isinstance(found.loader, SourceFileLoader) or found.origin is None:
        return None
    try:
        return Path(found.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def defines_filter(text: str, class_name: str) -> bool:
    """Whether a module's text defines that class and imports from `filters`: whoever chose it chose a filter.

    Any module can be imported by name, and some do things when they are.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    defined = any(isinstance(node, ast.ClassDef) and node.name == class_name for node in body)
    sources = [
        (node.module or "").split(".")[0] for node in body if isinstance(node, ast.ImportFrom) and not node.level
    ]
    return defined and "filters" in sources


def _find(name: str, folders: Sequence[str] | None) -> ModuleSpec | None:
    """As the import system looks for it, and no further."""
    found = (finder.find_spec(name, folders, None) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)
