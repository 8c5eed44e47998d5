"""Which filter does a spec such as `iif:fraction=0.25,warmup=5` or `my_pkg.my_mod:MyFilter` mean?"""

import difflib
import hashlib
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from filters.api import Filter
from filters.errors import UsageError

BUILT_IN = ("none", "uniform", "iif", "i_ppo", "dtv", "heuristics")
GROUP = "filtergym.filters"
_registered: dict[str, type[Filter]] = {}
F = TypeVar("F", bound=type[Filter])
Defaults = Mapping[str, Mapping[str, Any]]


def register(name: str) -> Callable[[F], F]:
    """Class decorator that makes a filter available as `--filter NAME`; a name that is taken raises ValueError."""

    def add(cls: F) -> F:
        taken = _registered.get(name)
        if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"filter name {name!r} is taken by {taken.__module__}.{taken.__qualname__}")
        _registered[name] = cls
        return cls

    return add


def built_in() -> dict[str, type[Filter]]:
    """The filters of FilterGym by name; imports nothing of others."""
    modules = [f"filters.{module}" for module in BUILT_IN]
    for module in modules:
        importlib.import_module(module)
    return {name: cls for name, cls in _registered.items() if cls.__module__ in modules}


def names() -> list[str]:
    """Names of all filters: built in, registered, and from the entry points of installed packages.

    Raises:
        UsageError: if two of them have the same name.
    """
    built_in()
    found = {name: f"{cls.__module__}:{cls.__qualname__}" for name, cls in _registered.items()}
    for point in entry_points():
        if found.setdefault(point.name, point.value) != point.value:
            raise UsageError(
                f"two filters are called {point.name!r}: {found[point.name]} and {point.value} of an installed "
                "package; rename or uninstall one"
            )
    return sorted(found)


@cache
def entry_points() -> importlib.metadata.EntryPoints:
    """The filters of installed packages, looked for once: it takes 20 ms, and sweeps have thousands of cells."""
    return importlib.metadata.entry_points(group=GROUP)


@dataclass(frozen=True)
class Spec:
    """A parsed filter spec: the name or import path, and the fields that it sets."""

    name: str
    settings: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """The canonical text: settings sorted by field, nothing left out that was said."""
        return self.name + (":" + ",".join(f"{key}={value}" for key, value in self.settings) if self.settings else "")


def parse(text: str) -> Spec:
    """Split `name:field=value,…` or `module:Class:field=value,…`; raises UsageError if the form is wrong."""
    name, _, rest = text.strip().partition(":")
    head, _, tail = rest.partition(":")
    if head and "=" not in head:
        name, rest = f"{name}:{head}", tail
    settings: dict[str, str] = {}
    for item in rest.split(",") if rest else []:
        key, equals, value = item.partition("=")
        if not key.strip() or not equals:
            raise UsageError(f"filter {text!r}: {item!r} is not field=value; write for example iif:fraction=0.25")
        if key.strip() in settings:
            raise UsageError(f"filter {text!r} sets the field {key.strip()!r} twice; say it once")
        settings[key.strip()] = value.strip()
    return Spec(name=name, settings=tuple(sorted(settings.items())))


def make(text: str, defaults: Defaults | None = None) -> Filter:
    """Build the filter that a spec names.

    Args:
        text: `name:field=value,…`, or an import path `module:Class` with the same settings behind another colon. A
            field that is itself a filter takes a spec with `;` for `,`: `random-matched:of=iif:fraction=1;warmup=5`.
        defaults: by filter name, field values that stand in where the spec sets none, such as a task's own.

    Raises:
        UsageError: unknown name or field (near misses first), or a value of the wrong type or range.
    """
    spec = parse(text)
    cls = find(spec.name)
    kinds = {field.name: get_type_hints(cls)[field.name] for field in fields(cls) if field.init}
    settings = dict((defaults or {}).get(spec.name, {}))
    for key, value in spec.settings:
        if key not in kinds:
            raise UsageError(f"filter {spec.name!r} has no field {key!r}; {suggest(key, list(kinds))}")
        if isinstance(kinds[key], type) and issubclass(kinds[key], Filter):
            settings[key] = make(value.replace(";", ","), defaults)
        else:
            settings[key] = _parse_value(spec.name, field=key, kind=kinds[key], text=value)
    for field in fields(cls):
        if field.name not in settings and "spec" in field.metadata:
            settings[field.name] = make(field.metadata["spec"], defaults)
    try:
        return cls(**settings)
    except (TypeError, ValueError) as error:
        raise UsageError(f"filter {text!r}: {error}") from error


def expand(text: str) -> list[str]:
    """The specs of a family: `iif:fraction={0.05,0.125}` is two, and two braces give every pair.

    Raises:
        UsageError: a brace is not closed, or there is nothing in it.
    """
    before, brace, rest = text.partition("{")
    inside, closing, after = rest.partition("}")
    if not brace and "}" not in text:
        return [text]
    if not closing or "{" in inside or not all(value.strip() for value in inside.split(",")):
        raise UsageError(f"filter {text!r}: write a family of settings as in iif:fraction={{0.05,0.125}}")
    return [spec for value in inside.split(",") for spec in expand(f"{before}{value.strip()}{after}")]


def canonical(text: str, settings: Sequence[Defaults | None] = (None,)) -> str:
    """The one spelling of a spec: numbers as Python writes them, and no setting that changes nothing.

    Args:
        text: as for `make`.
        settings: the defaults of every task that the filter is for; a field goes if it says on all of them what would
            hold without it.

    Raises:
        UsageError: as `make`.
    """
    spec = parse(text)
    cls = find(spec.name)
    kinds = {field.name: get_type_hints(cls)[field.name] for field in fields(cls) if field.init}
    for defaults in settings:
        make(text, defaults)
    kept = []
    for key, value in spec.settings:
        rest = Spec(spec.name, tuple(item for item in spec.settings if item[0] != key))
        if any(make(str(rest), defaults) != make(text, defaults) for defaults in settings):
            kept.append((key, _spelling(spec.name, key, kinds[key], value, settings)))
    return str(Spec(spec.name, tuple(kept)))


def _spelling(name: str, key: str, kind: Any, text: str, settings: Sequence[Defaults | None]) -> str:
    if isinstance(kind, type) and issubclass(kind, Filter):
        return canonical(text.replace(";", ","), settings).replace(",", ";")
    value = _parse_value(name, field=key, kind=kind, text=text)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return text if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def find(name: str) -> type[Filter]:
    """The class behind a name or an import path; raises UsageError if there is none or it is no filter."""
    if ":" in name:
        return _filter_class(_import(name), name)
    known = names()
    if name in _registered:
        return _registered[name]
    for point in entry_points().select(name=name):
        return _filter_class(_load(point), name)
    raise UsageError(f"unknown filter {name!r}; {suggest(name, known)}")


def source_of(cls: type) -> str | None:
    """The text of the file that defines a class, line ends as \\n; None where there is no such file."""
    try:
        file = inspect.getsourcefile(cls)
        return Path(file).read_text(encoding="utf-8") if file else None
    except (OSError, TypeError, UnicodeDecodeError):
        return None


def text_hash(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def suggest(word: str, known: list[str]) -> str:
    """Near misses of `word` first, then everything there is."""
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{meant}there is: {', '.join(sorted(known)) or 'nothing'}"


def _import(path: str) -> object:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(
            f"can't import {module_name!r} for filter {path!r}: {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, attribute):
        raise UsageError(
            f"module {module_name!r} has no {attribute!r}; write module:Class, as in my_pkg.my_mod:MyFilter"
        )
    return getattr(module, attribute)


def _load(point: importlib.metadata.EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"filter {point.name!r} of the installed package entry point {point.value!r} can't be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _filter_class(found: object, name: str) -> type[Filter]:
    if not (isinstance(found, type) and issubclass(found, Filter) and is_dataclass(found)):
        raise UsageError(f"{name!r} is no filter: it must be a dataclass that inherits from filters.api.Filter")
    return found


def _parse_value(name: str, *, field: str, kind: Any, text: str) -> Any:
    kinds = get_args(kind) or (kind,)
    if NoneType in kinds and text.lower() == "none":
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for parse_as in (int, float, str):
        if parse_as in kinds:
            try:
                return parse_as(text)
            except ValueError:
                continue
    for choice in kinds:
        if not isinstance(choice, type) and str(choice) == text:
            return choice
    expected = " or ".join(getattr(k, "__name__", repr(k)) for k in kinds if k is not NoneType)
    raise UsageError(f"filter {name!r}: field {field!r} takes {expected}, got {text!r}")
