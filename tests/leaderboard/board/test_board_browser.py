"""Does the site work where people open it: in a browser, from a file, by mouse or keyboard, on a phone, in the dark?"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from leaderboard.board.rows import summarise
from leaderboard.build import build
from leaderboard.entries.submission import Entry, FilterSource
from tests.leaderboard.made_up import make_entry

HACK = "window.hacked = true"
NASTY = (
    f"""</script><script>{HACK}</script><img src=x onerror="{HACK}">'"><svg onload='{HACK}'> \u202e{{{{7*7}}}} %{{x}}"""
)
SPEC = f"""m:F"><script>{HACK}</script><b onmouseover='{HACK}'>$x$</b>"""


def hostile_entry() -> Entry:
    """What validation would refuse, in every field that holds text."""
    entry = make_entry("hostile", 7, gains={"iif": 0.9})
    cells = tuple(replace(cell, spec=SPEC) if cell.spec == "iif" else cell for cell in entry.cells)
    source = FilterSource(
        class_path=NASTY, fields={NASTY: {NASTY: NASTY}}, sha256=NASTY, source=f"</code></pre>{NASTY}"
    )
    return replace(
        entry,
        name=NASTY,
        authors=(NASTY, NASTY),
        url=f"javascript:{HACK}",
        created=NASTY,
        command=f"python -m harness.run {NASTY}",
        digest=NASTY,
        cells=cells,
        filters={SPEC: source},
        provenance={NASTY: {NASTY: NASTY}},
        rerun={NASTY: [NASTY]},
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    gains = {"iif": 0.3, "dtv-loo": 0.2, "random": -0.1, "reward": -0.3}
    entries = [make_entry("group-0", 0, gains=gains), hostile_entry(), make_entry("group-1", 1, gains=gains)]
    build(map(summarise, entries), out=folder / "site", markdown=folder / "LEADERBOARD.md")
    return folder / "site"


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("the board is tested in Chromium: install Debian's packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # only files of this test are opened; containers often lack what the sandbox and shared memory need
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


class Page:
    """A page of the site in the browser."""

    def __init__(self, browser: webdriver.Chrome, site: Path) -> None:
        self.browser, self.site = browser, site

    def open(self, name: str = "index.html", *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Open a page anew, as a screen of that size and colour scheme shows it, and wait for its figures."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.scheme(scheme)
        for log in ("browser", "performance"):
            self.browser.get_log(log)  # what earlier pages left
        self.browser.get((self.site / name).as_uri())
        self.run("document.querySelector('.figures').scrollIntoView()")
        self.until_drawn(1)

    def scheme(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def value(self, expression: str, *arguments: Any) -> Any:
        return self.run(f"return {expression}", *arguments)

    def until(self, condition: Callable[[], Any]) -> None:
        WebDriverWait(self.browser, 30).until(lambda _: condition())

    def until_drawn(self, times: int) -> None:
        self.until(lambda: int(self.find("section.board").get_attribute("data-drawn") or 0) >= times)

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def column(self, heading: str) -> tuple[WebElement, Callable[[], list[str]]]:
        """The heading's button, and what the ranking shows below it from top to bottom, as sort keys."""
        headings = self.all("table.ranking thead th")
        place = next(k for k, each in enumerate(headings) if each.text.startswith(heading))
        script = (
            "[...document.querySelectorAll('table.ranking tbody tr')].map(row => row.cells[arguments[0]].dataset.v)"
        )
        return headings[place].find_element(By.TAG_NAME, "button"), lambda: self.value(script, place)

    def order(self, button: WebElement) -> str | None:
        return button.find_element(By.XPATH, "..").get_attribute("aria-sort")

    def hover(self, plot: str, name: str) -> str:
        """What Plotly says of the first point of the trace whose name holds `name`."""
        script = """
            const plot = document.querySelector(arguments[0]);
            const curve = plot.data.findIndex((trace) => trace.name?.includes(arguments[1]));
            Plotly.Fx.hover(plot, [{ curveNumber: curve, pointNumber: 0 }]);
            return plot.querySelector(".hoverlayer").textContent;
        """
        return str(self.run(script, plot, name))

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        events = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@pytest.fixture
def page(chromium: webdriver.Chrome, site: Path) -> Page:
    return Page(chromium, site)


def test_the_pages_open_without_an_error_or_a_request_elsewhere(page):
    for name in ("index.html", "entry-group-0.html"):
        page.open(name)
        page.find("select.axis").send_keys("training seconds")
        page.until_drawn(2)
        assert page.errors() == []
        requests = page.requests()
        assert f"{page.site.as_uri()}/assets/plotly.min.js" in requests
        assert any("/data/entry-group-" in url for url in requests)
        elsewhere = [url for url in requests if not url.startswith((page.site.as_uri() + "/", "data:", "blob:"))]
        assert elsewhere == []


def test_the_table_sorts_by_mouse(page):
    page.open()
    button, shown = page.column("p (Holm)")
    at_first = shown()
    button.click()
    ascending = [float(value) for value in shown()]
    assert page.order(button) == "ascending"
    assert ascending == sorted(map(float, at_first))
    assert ascending != [float(value) for value in at_first]
    button.click()
    assert page.order(button) == "descending"
    assert [float(value) for value in shown()] == sorted(ascending, reverse=True)
    difference, shown = page.column("Δ AUC")
    difference.click()  # larger is better, so the largest comes first
    assert (page.order(difference), page.order(button)) == ("descending", "none")
    assert [float(value) for value in shown()] == sorted(map(float, shown()), reverse=True)


def test_the_table_sorts_and_chooses_by_keyboard(page):
    page.open()
    button, shown = page.column("Filter")
    page.run("arguments[0].focus()", button)
    page.browser.switch_to.active_element.send_keys(Keys.ENTER)
    names = shown()
    assert names == page.value("arguments[0].toSorted((a, b) => a.localeCompare(b, 'en'))", names)
    page.browser.switch_to.active_element.send_keys(Keys.SPACE)
    assert shown() == page.value("arguments[0].toSorted((a, b) => b.localeCompare(a, 'en'))", names)
    page.browser.switch_to.active_element.send_keys(Keys.TAB)
    following, _ = page.column("Δ AUC")
    assert page.browser.switch_to.active_element == following
    box = page.find(".pick:not(:checked)")
    page.run("arguments[0].focus()", box)
    box.send_keys(Keys.SPACE)
    page.until_drawn(2)
    assert box.is_selected()
    entries = {row.get_attribute("data-key") for row in page.all("tr:has(.pick:checked)")}
    assert len(page.all(".legend li")) == 4 + len(entries)  # a filter more, and each entry's baseline


def test_missing_values_stay_last_both_ways(page):
    page.open("entry-group-0.html")
    table = page.all("table.sortable")[1]
    heading = next(
        each for each in table.find_elements(By.CSS_SELECTOR, "thead button") if each.text.startswith("Δ AUC")
    )
    for _ in range(2):
        page.run("arguments[0].click()", heading)
        last = table.find_elements(By.CSS_SELECTOR, "tbody tr")[-1]
        assert "baseline" in last.text


def test_rows_are_found_by_what_they_say(page):
    page.open()
    rows = len(page.all("table.ranking tbody tr"))
    page.find(".find").send_keys("harms Group 1")
    visible = [row for row in page.all("table.ranking tbody tr") if row.is_displayed()]
    assert 0 < len(visible) < rows
    assert all("harms" in row.text and "Group 1" in row.text for row in visible)
    assert page.find(".shown").text == f"{len(visible)} of {rows} rows"


def test_every_figure_draws_and_says_its_numbers(page):
    page.open("entry-group-0.html")
    count = "document.querySelectorAll(arguments[0]).length"
    assert page.value(count, ".curves .scatterlayer path.js-line") == 2 * (4 + 4)  # two tasks; lines and bands
    assert page.value(count, ".ends .violinlayer path.violin") == 2 * 4 * 2  # worst and best halves
    assert page.value(count, ".kept .scatterlayer path.js-line") == 2 * 4
    assert page.value(count, ".profile .scatterlayer path.js-line") == 4 + 4
    assert page.value(count, ".scatter .scatterlayer path.point") == 4
    heights = "[...document.querySelectorAll('.curves path.js-line')].map(path => path.getBoundingClientRect().height)"
    assert min(page.value(heights)) > 20
    figures = page.all("figure")
    assert len(figures) == 2 * 3 + 2
    for figure in figures:
        plot = figure.find_element(By.CLASS_NAME, "plot")
        assert plot.get_attribute("role") == "img"
        label = plot.get_attribute("aria-label")
        assert "iif" in label
        assert any(character.isdigit() for character in label.partition(". ")[2])
        figure.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        page.until(lambda figure=figure: figure.find_elements(By.CSS_SELECTOR, "details tbody td"))
    # the table behind the curves holds every checkpoint of every series
    assert len(figures[0].find_elements(By.CSS_SELECTOR, "details tbody tr")) == 4 * 20


def test_at_most_six_filters_are_drawn(page):
    page.open()
    for box in page.all(".pick:not(:checked)")[:4]:
        page.run("arguments[0].click()", box)
    assert len(page.all(".pick:checked")) == 6
    assert "At most 6" in page.find(".note").text


def test_hostile_text_is_shown_and_nothing_of_it_runs(page):
    for name in ("index.html", "entry-hostile.html"):
        page.open(name)
        box = page.find("[data-key=hostile] .pick")
        assert box.is_selected()  # its curves, legend, hover labels and tables are on the page
        for figure in page.all("figure summary"):
            figure.send_keys(Keys.ENTER)
        page.until(lambda: page.find("figure:last-of-type details tbody td"))
        assert page.value("window.hacked") is None
        assert page.errors() == []
        made = "main img, main b, main script:not([type]), [onerror], [onload]"
        assert page.all(made) == []
        handlers = "[...document.querySelectorAll('*')].some(e => e.getAttributeNames().some(n => n.startsWith('on')))"
        assert page.value(handlers) is False
        links = page.value("[...document.querySelectorAll('a[href], [*|href]')].map(a => a.getAttribute('href') ?? '')")
        assert not [link for link in links if "script" in link.lower()]
        widths = "[...document.querySelectorAll('table.ranking tr')].map(row => row.cells.length)"
        assert len(set(page.value(widths))) == 1
        assert SPEC in page.value("document.querySelector('[data-key=hostile] th bdi').textContent")
        assert SPEC in page.value("document.querySelector('.curves .plot').getAttribute('aria-label')")
        assert SPEC in page.value("document.querySelector('.curves details').textContent")
        assert SPEC[:20] in page.hover(".curves .plot", "m:F")
    assert page.find("h1").text.startswith("</script><script>")
    assert HACK in page.value("document.querySelector('.source pre').textContent")
    assert page.value("document.title").startswith("</script><script>")


def test_the_policy_stops_what_escaping_might_miss(page):
    page.open()
    page.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", f'<img src="data:," onerror="{HACK}">')
    page.until(lambda: any("Content Security Policy" in message for message in page.errors()))
    assert page.value("window.hacked") is None


@pytest.mark.parametrize("name", ["index.html", "entry-group-0.html", "entry-hostile.html"])
def test_a_phone_never_scrolls_sideways(page, name):
    page.open(name, width=390, height=844)
    assert page.value("document.documentElement.scrollWidth") <= 390
    sizes = "[...document.querySelectorAll('.plot .main-svg')].map(plot => plot.getBoundingClientRect().right)"
    assert 0 < max(page.value(sizes)) <= 390


def test_figures_follow_the_dark(page):
    back = "getComputedStyle(document.body).backgroundColor"
    label = "getComputedStyle(document.querySelector('.curves .xtick text')).fill"
    page.open(scheme="light")
    assert (page.value(back), page.value(label)) == ("rgb(255, 255, 255)", "rgb(27, 31, 36)")
    page.scheme("dark")  # while the page is open
    page.until_drawn(2)
    assert (page.value(back), page.value(label)) == ("rgb(15, 20, 25)", "rgb(230, 237, 243)")
