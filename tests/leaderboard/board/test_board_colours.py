"""Can colour-blind eyes tell the lines of the figures apart, and everyone tell them from the page?"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import leaderboard

CSS = (Path(leaderboard.__file__).parent / "site" / "board.css").read_text(encoding="utf-8")
LIGHT, DARK = CSS.split("@media (prefers-color-scheme: dark)")
# Machado, Oliveira & Fernandes 2009, severity 1: matrices on linear RGB
VISIONS = {
    "all three cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def colours(css: str, name: str) -> list[np.ndarray]:
    """Linear RGB of the variables whose names start so."""
    found = re.findall(rf"--{name}[^:]*: #(\w{{6}});", css)
    values = [np.array([int(code[k : k + 2], 16) for k in (0, 2, 4)]) / 255 for code in found]
    return [np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4) for value in values]


def lab(linear: np.ndarray) -> np.ndarray:
    """CIELAB."""
    ratio = TO_XYZ @ np.clip(linear, 0, 1) / WHITE
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a: np.ndarray, b: np.ndarray) -> float:
    """WCAG 2's contrast ratio."""
    low, high = sorted(float(TO_XYZ[1] @ colour) for colour in (a, b))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("css", [LIGHT, DARK], ids=["light", "dark"])
def test_series_stay_apart(css, vision):
    series = colours(css, "series-") + colours(css, "baseline")
    assert len(series) == 7
    seen = [lab(np.array(VISIONS[vision]) @ colour) for colour in series]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 25


@pytest.mark.parametrize("css", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out_from_the_page(css):
    (back,) = colours(css, "back(?=:)")
    for name in ("text", "faint", "link", "up", "down"):
        (colour,) = colours(css, f"{name}(?=:)")
        assert contrast(colour, back) >= 4.5
    assert min(contrast(colour, back) for colour in colours(css, "series-")) >= 3
