"""What is the source of a module that is installed here? Found without importing anything."""

import sys
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path


def source_without_import(module: str) -> str | None:
    """The text of a module's file, line ends as \\n; None if there is no such module, or none with a source file.

    `importlib.util.find_spec` would import the parents of a module, and so run code that a stranger's text chose.
    """
    folders: list[str] | None = list(sys.path)
    name, found = "", None
    for part in module.split("."):
        if folders is None:
            return None
        name = f"{name}.{part}".lstrip(".")
        found = PathFinder.find_spec(name, folders)
        if found is None:
            return None
        folders = list(found.submodule_search_locations) if found.submodule_search_locations is not None else None
    if found is None or not isinstance(found.loader, SourceFileLoader) or found.origin is None:
        return None
    try:
        return Path(found.origin).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
