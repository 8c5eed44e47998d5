"""The README's picture shows the accepted runs, and what can't be drawn is one sentence."""

import re
from pathlib import Path

import pytest

from filters.errors import UsageError, run_command
from leaderboard import picture
from leaderboard.board.picture import draw
from leaderboard.entries.submission import read_entry
from tests.leaderboard.conftest import ROOT

ENTRY = ROOT / "leaderboard" / "submissions" / "claims-settings.json"


def rounded(svg: str) -> str:
    """Coordinates to a tenth of a point: their last digits are the processor's."""
    return re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", svg).replace("-0.0", "0.0")


def test_the_readme_s_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    out = tmp_path / "again.svg"
    picture.main([str(ENTRY), "--out", str(out)])
    kept = (ROOT / "docs" / "learning-curves.svg").read_text(encoding="utf-8")
    assert rounded(out.read_text(encoding="utf-8")) == rounded(kept), "python -m leaderboard.picture"


def test_the_caption_s_words_hold() -> None:
    """On the right the area under iif's curve is below plain PPO's in all ten seeds."""
    cells = {(cell.task, cell.spec, cell.seed): cell for cell in read_entry(ENTRY).cells}
    (dtv,) = {task for task, _, _ in cells if "-dtv/" in task}
    areas = {spec: [cells[dtv, spec, seed].curve.mean() for seed in range(10)] for spec in ("none", "iif", "dtv-loo")}
    assert all(iif < none for iif, none in zip(areas["iif"], areas["none"], strict=True))
    assert sum(cells[dtv, "iif", seed].curve.max() < 0.1 for seed in range(10)) == 1


def test_bad_places_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for out in (tmp_path / "no" / "x.svg", tmp_path / "x.unknown"):
        with pytest.raises(UsageError, match="choose another --out"):
            draw(read_entry(ENTRY), out, titles={})
    assert run_command(lambda: picture.main([str(tmp_path / "absent.json")])) == 2
    assert capsys.readouterr().err.count("\n") == 1
