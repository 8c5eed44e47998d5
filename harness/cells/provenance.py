"""Under which code, packages and hardware did a run come about?"""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("filtergym", "torch", "numpy", "gymnasium", "minigrid", "box2d", "ale-py", "highway-env", "envpool")
"""the packages that can change a result"""


def provenance(device: str, *, jobs: int) -> dict[str, Any]:
    """What to write beside a result; no machine names and no paths."""
    return {
        "code": code_version(),
        "python": platform.python_version(),
        "packages": packages(),
        **hardware(device),
        "jobs": jobs,
    }


def packages() -> dict[str, str]:
    """The installed versions of PACKAGES."""
    return {name: found for name in PACKAGES if (found := package_version(name))}


def hardware(device: str) -> dict[str, Any]:
    """What computes, as far as it can change a result."""
    return {
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpu": cpu_model()},
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
    }


def package_version(name: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def code_version() -> dict[str, Any]:
    """Commit of the checkout that this code runs from, and whether it was edited; both None outside a checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return {"commit": None, "dirty": None}
    commit, changes = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def cpu_model() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
