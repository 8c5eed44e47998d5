"""Which optional packages does an environment need, and which command installs them?"""

from importlib.util import find_spec

from filters.errors import UsageError

MODULES = {
    "atari": ("ale_py", "cv2"),
    "box2d": ("Box2D",),
    "envpool": ("envpool",),
    "highway": ("highway_env",),
}
"""what each extra brings in, by the names that are imported"""

PREFIXES = {
    "ALE/": "atari",
    "BipedalWalker": "box2d",
    "CarRacing": "box2d",
    "LunarLander": "box2d",
    "highway-": "highway",
}
"""the extra of the environment ids that start so; all other ids need none"""


def extra_for(env_id: str, backend: str = "gymnasium") -> str | None:
    """The extra that this environment needs on this backend, or None."""
    if backend == "envpool":
        return "envpool"
    return next((extra for prefix, extra in PREFIXES.items() if env_id.startswith(prefix)), None)


def is_installed(extra: str) -> bool:
    """Whether everything that the extra brings in can be found; nothing is imported."""
    return all(find_spec(module) for module in MODULES[extra])


def require_extra(env_id: str, backend: str = "gymnasium") -> None:
    """Raise UsageError with the command that installs what this environment lacks."""
    extra = extra_for(env_id, backend)
    if extra and not is_installed(extra):
        raise UsageError(
            f"environment {env_id!r} needs the extra {extra!r} on the {backend} backend; "
            f"install it with: pip install 'filtergym[{extra}]'"
        )
