"""What the documents show has to work: commands, filter, links and paths."""

import functools
import importlib
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tyro

from filters.registry import expand, parse
from harness.tasks.catalogue import find_suite, find_task

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"(?:python -m [a-z]|scripts/[a-z]).*")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[str]:
    """The lines of a page's indented and fenced blocks."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def spans(text: str) -> Iterator[str]:
    """A page's inline code, each on one line."""
    prose = re.sub(r"^(```.*?^```|    .*?)$", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))


def commands() -> dict[str, str]:
    """Every command that a page shows -> the page; inline ones with arguments only, as bare ones are names."""
    found: dict[str, str] = {}
    for page in PAGES:
        text = text_of(page)
        shown = [line for line in blocks(text) if COMMAND.fullmatch(line)]
        shown += [span for span in spans(text) if COMMAND.fullmatch(span) and len(command_words(span)) > 1]
        for command in shown:
            found.setdefault(shlex.join(shlex.split(command, comments=True)), page.name)
    return found


def command_words(command: str) -> list[str]:
    """What is run, a module or a script, and its arguments."""
    words = shlex.split(command, comments=True)
    return words[2:] if words[0] == "python" else words


def module_of(name: str) -> str:
    """The module behind `python -m NAME` or `scripts/NAME`; the script hands its arguments to it."""
    if name.startswith("scripts/"):
        started = re.search(r'^exec "\$python" -m (\S+) "\$@"$', text_of(ROOT / name), re.MULTILINE)
        assert started, f"{name} starts no module"
        name = started[1]
    file = ROOT / name.replace(".", "/")
    return f"{name}.__main__" if file.is_dir() else name


def parse_arguments(module: str, words: list[str]) -> Any:
    """What tyro makes of a command's arguments, without running it; None for a command that takes none.

    A `main` that takes arguments of its own is what tyro reads; otherwise it is the module's `Args`.
    """
    imported = importlib.import_module(module)
    main: Callable[..., Any] | None = getattr(imported, "main", None)
    if main is not None and set(inspect.signature(main).parameters) - {"argv"}:
        return tyro.cli(arguments_only(main), args=words)
    if hasattr(imported, "Args"):
        return tyro.cli(imported.Args, args=words)
    assert not words, f"{module} takes no arguments"
    return None


def arguments_only(main: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """A function with the arguments of `main` that only returns them."""

    @functools.wraps(main)
    def returned(**arguments: Any) -> dict[str, Any]:
        return arguments

    return returned


def flat(value: Any) -> Iterator[str]:
    """The strings in nested tuples."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from flat(one)


@pytest.mark.parametrize(("command", "page"), commands().items(), ids=commands())
def test_a_command_on_a_page_takes_its_arguments(command: str, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *words = command_words(command)
    if name == "scripts/test":  # pytest's arguments
        assert all((ROOT / word).exists() for word in words if word.startswith("tests"))
        return
    try:
        found = parse_arguments(module_of(name), words)
    except SystemExit:
        pytest.fail(f"{page}: {command}\n{capsys.readouterr().err}")
    arguments = found if isinstance(found, dict) else vars(found) if found else {}
    for task in flat(arguments.get("task", ())):
        find_task(task)
    for suite in flat(arguments.get("suite", ())):
        find_suite(suite)
    for spec in flat(arguments.get("filter", ())):
        if spec != "all" and not re.match(r"[\w.]+:[A-Z]", spec):  # what a reader's own module would hold
            [parse(one) for one in expand(spec)]


@pytest.mark.parametrize(
    "command",
    [
        "python -m harness.run --filtre iif",
        "python -m harness.status",
        "python -m algos.ppo --env-id CartPole-v1 --seeds 3",
        "python -m filters.check",
        "python -m harness.bench --rounds many",
        "scripts/bench --profile",
    ],
)
def test_a_command_that_takes_no_such_arguments_would_be_found(command: str) -> None:
    name, *words = command_words(command)
    with pytest.raises(SystemExit):
        parse_arguments(module_of(name), words)


def test_commands_are_found_in_blocks_and_in_prose() -> None:
    shown = commands()
    assert len(shown) > 40
    assert shown["scripts/run --filter iif"] == "README.md"
    assert shown["python -m harness.run --filter none --task LunarLander-adam"] == "results.md"
    assert shown["scripts/claims --part settings iif --jobs 1"] == "tasks.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_what_exists(page: Path) -> None:
    text = text_of(page)
    for module in re.findall(r"python -m\s+([a-z_.]+[a-z])", text):
        assert find_spec(module_of(module)), f"{page.name}: python -m {module}"
    for span in spans(text):
        if re.match(r"(filters|algos|harness|leaderboard|tests|scripts|docs)/[\w/.-]*(:\w+)?$", span):
            path, _, name = span.partition(":")
            there = (ROOT / path).exists() or path == "leaderboard/submissions/our-iif.json"
            assert there, f"{page.name}: {span}"
            assert not name or re.search(rf"^(def|class) {name}\b", text_of(ROOT / path), re.MULTILINE), span


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures inside the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text_of(page))
    return [target.partition("#")[0] for target in targets if not target.startswith(("http:", "https:"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_or_picture_leads_somewhere(page: Path) -> None:
    dead = [target for target in links(page) if not (page.parent / target).exists()]
    assert not dead, f"{page.name} leads to {', '.join(dead)}"


def test_the_readme_sells_on_one_screen_and_leads_to_every_page() -> None:
    lines = text_of(ROOT / "README.md").splitlines()
    assert len(lines) < 150
    first = "\n".join(lines[:20])
    assert "    scripts/run --filter iif " in first
    assert "    scripts/test " in first
    assert "![" in first
    assert {f"docs/{page.name}" for page in PAGES if page.parent.name == "docs"} <= set(links(ROOT / "README.md"))


def test_the_page_of_the_architecture_names_every_package() -> None:
    page = text_of(ROOT / "docs" / "architecture.md")
    for package in ("filters", "algos", "harness", "leaderboard"):
        for init in (ROOT / package).rglob("__init__.py"):
            assert f"| `{init.parent.relative_to(ROOT).as_posix()}` |" in page


def test_the_filter_in_contributing_is_whole_and_keeps_the_contract(tmp_path: Path) -> None:
    text = text_of(ROOT / "CONTRIBUTING.md")
    snippet = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippet is not None
    assert text.index("```python") < 100, "CONTRIBUTING opens with it"
    (tmp_path / "below_average.py").write_text(snippet[1])
    shown = re.findall(r"^    python -m (filters\.check|harness\.run) (.*)$", text, re.MULTILINE)
    assert [module for module, _ in shown] == ["filters.check", "harness.run"]
    for module, words in shown:
        quick = ["--task", "smoke-FrozenLake", "--seeds", "2", "--out", "runs"] if module == "harness.run" else []
        done = subprocess.run(
            [sys.executable, "-m", module, *words.split(), *quick],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "All tasks together" in done.stdout
