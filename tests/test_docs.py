"""What the documents show has to work."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_filter_in_contributing_is_whole_and_keeps_the_contract(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    snippet = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippet is not None
    assert text.index("```python") < 100, "CONTRIBUTING opens with it"
    (tmp_path / "below_average.py").write_text(snippet[1])
    commands = re.findall(r"^    python -m (filters\.check|harness\.run) (.*)$", text, re.MULTILINE)
    assert [module for module, _ in commands] == ["filters.check", "harness.run"]
    for module, words in commands:
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


def test_the_readme_calls_the_scripts_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for script in set(re.findall(r"scripts/\w+", text)):
        assert (ROOT / script).is_file(), script
    for module in set(re.findall(r"python -m ([a-z_.]+)", text)):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module
