// How do the tables sort and the figures draw? Names and specs are other people's text: they only ever become text
// nodes, attribute values or, for Plotly, escaped labels.
"use strict";

(() => {
  const MOST = 6;
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star"];
  const STROKES = { solid: "", dash: "7 5", dot: "2 4", dashdot: "7 4 2 4", longdash: "12 5", longdashdot: "12 4 2 4" };
  const received = new Map();
  const waiting = new Map();

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const short = (text, most = 28) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const show = (value) => (value === null || value === undefined ? "–" : String(value).replace("-", "−"));
  const range = (mean, low, high) => (low === null ? show(mean) : `${show(mean)} [${show(low)}, ${show(high)}]`);

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // Data: a script a piece, asked for when it is first needed.

  window.board = {
    receive(data) {
      received.set(data.key, data);
      waiting.get(data.key)?.resolve(data);
    },
  };

  function load(key) {
    if (received.has(key)) return Promise.resolve(received.get(key));
    if (!waiting.has(key)) {
      const request = {};
      request.promise = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
      waiting.set(key, request);
      const script = element("script", undefined, { src: `data/entry-${key}.js` });
      script.onerror = () => request.reject(new Error(`data/entry-${key}.js is missing`));
      document.head.append(script);
    }
    return waiting.get(key).promise;
  }

  // Tables

  function cellValue(row, column) {
    const value = row.cells[column].dataset.v ?? "";
    return value !== "" && !Number.isNaN(Number(value)) ? Number(value) : value;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en");
  }

  function sort(table, heading) {
    const headings = all("thead th", table);
    const column = headings.indexOf(heading);
    const first = heading.dataset.first === "desc" ? "descending" : "ascending";
    const other = first === "descending" ? "ascending" : "descending";
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    for (const each of headings) each.setAttribute("aria-sort", each === heading ? order : "none");
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies[0].rows].map((row) => [cellValue(row, column), row]);
    keyed.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // what is missing stays at the end
      return sign * compare(a, b);
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  }

  function find(section, words) {
    const rows = all("table.ranking tbody tr", section);
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = all("th, .words", row).map((cell) => cell.textContent).join(" ").toLowerCase(); // names, not numbers
      row.hidden = !wanted.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    section.querySelector(".shown").textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
  }

  // What is drawn: one series a ticked row, and the baseline of each of their entries

  function chosen(section) {
    const places = new Map(section.points.map((point, place) => [point.id, place]));
    return all(".pick:checked", section)
      .sort((a, b) => places.get(a.value) - places.get(b.value))
      .map((box) => section.points[places.get(box.value)]);
  }

  async function seriesOf(section) {
    const points = chosen(section);
    const entries = await Promise.all(points.map((point) => load(point.key)));
    const series = points.map((point, place) => ({
      id: point.id,
      label: point.label,
      says: point.says,
      row: entries[place].rows.find((row) => row.id === point.id),
      taus: entries[place].taus,
      colour: `series-${place % MOST}`,
      dash: DASHES[place % MOST],
      symbol: SYMBOLS[place % MOST],
    }));
    const distinct = [...new Map(entries.map((entry) => [entry.key, entry])).values()];
    const baselines = distinct.map((entry, place) => ({
      label: distinct.length > 1 ? `baseline (${entry.name})` : "baseline",
      row: entry.rows.find((row) => row.baseline),
      taus: entry.taus,
      colour: "baseline",
      dash: DASHES[place % MOST],
      symbol: `${SYMBOLS[place % MOST]}-open`,
    }));
    const drawn = [...series, ...baselines.filter((each) => each.row)];
    return drawn.map((each, place) => ({ ...each, letter: String.fromCharCode(65 + place) }));
  }

  function legend(section, series) {
    const list = section.querySelector(".legend");
    list.replaceChildren(
      ...series.map((each) => {
        const item = element("li");
        item.append(element("span", each.letter, { class: "letter" }), sample(each), element("bdi", each.label));
        return item;
      }),
    );
  }

  function sample(series) {
    const space = "http://www.w3.org/2000/svg";
    const image = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    const sizes = { width: 40, height: 12, viewBox: "0 0 40 12", "aria-hidden": "true" };
    for (const [name, value] of Object.entries(sizes)) image.setAttribute(name, value);
    const strokes = { x1: 0, x2: 40, y1: 6, y2: 6, stroke: colour(series.colour), "stroke-width": 3 };
    for (const [name, value] of Object.entries(strokes)) line.setAttribute(name, value);
    if (STROKES[series.dash]) line.setAttribute("stroke-dasharray", STROKES[series.dash]);
    image.append(line);
    return image;
  }

  // Figures: each gives Plotly its traces, and everybody else a sentence and a table

  const FIGURES = {
    curves: { draw: drawCurves, x: "environment steps", y: "mean return" },
    ends: { draw: drawEnds, x: "letter in the legend above", y: "episode return" },
    kept: { draw: drawKept, x: "round", y: "kept fraction" },
    profile: { draw: drawProfile, x: "normalised final return τ", y: "share of runs above τ" },
    scatter: { draw: drawScatter, x: "training time saved %", y: "environment steps saved %" },
  };

  function transparent(hex, share) {
    const parts = [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
    return `rgba(${parts.join(",")},${share})`;
  }

  function lineTrace(series, x, y, extra = {}) {
    const line = { color: colour(series.colour), dash: series.dash, width: 2.5 };
    const name = escaped(short(`${series.letter} ${series.label}`));
    return { type: "scatter", mode: "lines", x, y, name, line, hoverinfo: "x+y+name", ...extra };
  }

  function bandTrace(series, x, low, high) {
    return {
      type: "scatter",
      mode: "lines",
      x: [...x, ...x.toReversed()],
      y: [...high, ...low.toReversed()],
      fill: "toself",
      fillcolor: transparent(colour(series.colour), 0.16),
      line: { width: 0 },
      hoverinfo: "skip",
    };
  }

  function drawCurves(series, task, section) {
    const axis = section.querySelector(".axis").value;
    const drawn = series.filter((each) => each.row.tasks[task]);
    const curves = drawn.map((each) => ({ each, curve: each.row.tasks[task].curve }));
    const banded = curves.filter(({ curve }) => curve.low.every((value) => value !== null));
    const mode = (curve) => (curve.mean.length > 1 ? "lines" : "markers");
    return {
      x: axis === "steps" ? "environment steps" : "training seconds",
      traces: [
        ...banded.map(({ each, curve }) => bandTrace(each, curve[axis], curve.low, curve.high)),
        ...curves.map(({ each, curve }) => lineTrace(each, curve[axis], curve.mean, { mode: mode(curve) })),
      ],
      says: curves.map(({ each, curve }) => {
        const end = curve.mean.length - 1;
        return `${each.label} ends at ${range(curve.mean[end], curve.low[end], curve.high[end])}`;
      }),
      head: ["Filter", "Environment steps", "Training seconds", "Mean return [95 % interval]"],
      body: curves.flatMap(({ each, curve }) =>
        curve.mean.map((mean, k) => [
          each.label,
          curve.steps[k].toLocaleString("en"),
          show(curve.seconds[k]),
          range(mean, curve.low[k], curve.high[k]),
        ]),
      ),
    };
  }

  function violin(series, place, side, values) {
    const tone = colour(series.colour);
    return {
      type: "violin",
      x: values.map(() => place),
      y: values,
      side,
      width: 0.85,
      spanmode: "hard",
      points: false,
      fillcolor: transparent(tone, side === "negative" ? 0.2 : 0.75),
      line: { color: tone, width: 1.5 },
      meanline: { visible: true },
      name: escaped(`${short(series.label)}, ${side === "negative" ? "worst" : "best"}`),
      hoverinfo: "y+name",
    };
  }

  function drawEnds(series, task) {
    const drawn = series.filter((each) => each.row.tasks[task]);
    const ends = drawn.map((each) => ({ each, ends: each.row.tasks[task].ends }));
    const mean = (values) => Number((values.reduce((a, b) => a + b, 0) / values.length).toPrecision(4));
    const summary = (values) => [Math.min(...values), mean(values), Math.max(...values)].map(show);
    return {
      traces: ends.flatMap(({ each, ends: { worst, best } }, place) => [
        violin(each, place, "negative", worst),
        violin(each, place, "positive", best),
      ]),
      layout: {
        violinmode: "overlay",
        xaxis: {
          tickvals: ends.map((_, place) => place),
          ticktext: ends.map(({ each }) => each.letter), // of the legend; names would not fit
          range: [-0.6, ends.length - 0.4],
        },
      },
      says: ends.map(
        ({ each, ends: { worst, best } }) =>
          `${each.label}: worst episodes ${show(mean(worst))} on average, best ${show(mean(best))}`,
      ),
      head: ["Filter", "Episodes a seed", "Worst: lowest", "Mean", "Highest", "Best: lowest", "Mean", "Highest"],
      body: ends.map(({ each, ends: data }) => [
        each.label,
        show(data.each),
        ...summary(data.worst),
        ...summary(data.best),
      ]),
    };
  }

  function drawKept(series, task) {
    const drawn = series.filter((each) => each.row.tasks[task]);
    const lines = drawn.map((each) => ({ each, line: each.row.tasks[task].kept }));
    const mode = (line) => (line.kept.length > 1 ? "lines" : "markers");
    const few = lines.every(({ line }) => line.round.at(-1) <= 10); // no ticks between whole rounds
    return {
      traces: lines.map(({ each, line }) => lineTrace(each, line.round, line.kept, { mode: mode(line) })),
      layout: { xaxis: few ? { dtick: 1 } : {}, yaxis: { range: [0, 1.05] } },
      says: lines.map(({ each, line }) => `${each.label} keeps ${show(line.kept[0])} at first, ${show(line.kept.at(-1))} at last`),
      head: ["Filter", "Round", "Kept fraction"],
      body: lines.flatMap(({ each, line }) => line.kept.map((kept, k) => [each.label, show(line.round[k]), show(kept)])),
    };
  }

  function drawProfile(series) {
    const drawn = series.filter((each) => each.row.profile);
    const half = (each) => each.row.profile.fraction[each.taus.indexOf(0.5)];
    const banded = drawn.filter((each) => each.row.profile.low[0] !== null);
    return {
      traces: [
        ...banded.map((each) => bandTrace(each, each.taus, each.row.profile.low, each.row.profile.high)),
        ...drawn.map((each) => lineTrace(each, each.taus, each.row.profile.fraction)),
      ],
      layout: { yaxis: { range: [0, 1.05] } },
      says: drawn.map((each) => `${each.label}: share ${show(half(each))} of the runs above 0.5`),
      head: ["Filter", "τ", "Share of runs above τ [95 %]"],
      body: drawn.flatMap(({ label, taus, row: { profile } }) =>
        taus.map((tau, k) => [label, show(tau), range(profile.fraction[k], profile.low[k], profile.high[k])]),
      ),
    };
  }

  function drawScatter(series, _task, section) {
    const points = section.points.filter((point) => point.x !== null && point.y !== null);
    const styles = new Map(series.filter((each) => each.id).map((each) => [each.id, each]));
    const marked = points.filter((point) => styles.has(point.id));
    const trace = (some, marker) => ({
      type: "scatter",
      mode: "markers",
      x: some.map((point) => point.x),
      y: some.map((point) => point.y),
      text: some.map((point) => escaped(short(point.label, 60))),
      hoverinfo: "text+x+y",
      marker,
    });
    const style = (point) => styles.get(point.id);
    const symbol = (point, shape) => (point.bound ? `${shape}-open` : shape);
    const others = points.filter((point) => !styles.has(point.id));
    return {
      traces: [
        trace(others, { color: colour("faint"), size: 8, opacity: 0.7, symbol: others.map((point) => symbol(point, "circle")) }),
        trace(marked, {
          color: marked.map((point) => colour(style(point).colour)),
          symbol: marked.map((point) => symbol(point, style(point).symbol)),
          size: 14,
          line: { width: 2 },
        }),
      ],
      layout: { xaxis: { zeroline: true }, yaxis: { zeroline: true } },
      says: marked.map((point) => `${point.label}: ${show(point.y)} % of the steps and ${show(point.x)} % of the time saved`),
      head: ["Filter", "Steps saved %", "Time saved %", "Only a bound"],
      body: points.map((point) => [point.label, show(point.y), show(point.x), point.bound ? "yes" : "no"]),
    };
  }

  function layoutOf(kind, made) {
    const grid = { gridcolor: colour("line"), linecolor: colour("line"), zerolinecolor: colour("faint"), zeroline: false };
    const title = (text) => ({ title: { text, standoff: 8 }, automargin: true });
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("text"), family: "system-ui, sans-serif", size: 13 },
      margin: { l: 50, r: 10, t: 10, b: 45 },
      showlegend: false,
      dragmode: false, // a finger scrolls the page
      hovermode: "closest",
      hoverlabel: { namelength: -1, bgcolor: colour("raised"), bordercolor: colour("faint"), font: { color: colour("text") } },
      ...made.layout,
      xaxis: { ...grid, ...title(made.x ?? FIGURES[kind].x), ...made.layout?.xaxis },
      yaxis: { ...grid, ...title(FIGURES[kind].y), ...made.layout?.yaxis },
    };
  }

  async function drawFigure(figure, series, section) {
    const plot = figure.querySelector(".plot");
    const { kind, task } = plot.dataset;
    const made = FIGURES[kind].draw(series, task, section);
    const title = figure.querySelector("h4").textContent;
    plot.setAttribute("aria-label", `${title}. ${made.says.join("; ") || "Nothing is chosen"}.`);
    fillTable(figure, made);
    await Plotly.react(plot, made.traces, layoutOf(kind, made), { displayModeBar: false, responsive: true });
  }

  function fillTable(figure, { head, body }) {
    const details = figure.querySelector("details");
    const fill = () => {
      const table = element("table");
      const top = table.createTHead().insertRow();
      top.append(...head.map((text) => element("th", text, { scope: "col" })));
      const rows = table.createTBody();
      for (const [first, ...rest] of body) {
        rows.insertRow().append(element("th", first, { scope: "row" }), ...rest.map((text) => element("td", text)));
      }
      details.querySelector(".numbers").replaceChildren(table);
    };
    details.ontoggle = () => details.open && fill(); // thousands of cells that few will open
    if (details.open) fill();
  }

  async function draw(section) {
    const note = section.querySelector(".note");
    const turn = (section.turn = (section.turn ?? 0) + 1);
    try {
      const series = await seriesOf(section);
      if (turn !== section.turn) return; // ticked again meanwhile
      legend(section, series);
      await Promise.all(all("figure", section).map((figure) => drawFigure(figure, series, section)));
      section.dataset.drawn = String(turn);
    } catch (error) {
      note.textContent = `The figures can't be drawn: ${error.message}.`;
    }
  }

  function pick(section, box) {
    const note = section.querySelector(".note");
    const many = all(".pick:checked", section).length;
    if (many > MOST) box.checked = false;
    note.textContent = many > MOST ? `At most ${MOST} filters at once: untick one first.` : "";
    if (many <= MOST) draw(section);
  }

  for (const table of all("table.sortable")) {
    for (const heading of all("thead th", table)) {
      heading.querySelector("button").addEventListener("click", () => sort(table, heading));
    }
  }
  for (const section of all("section.board")) {
    section.points = JSON.parse(section.querySelector(".points").textContent);
    section.querySelector(".find").addEventListener("input", (event) => find(section, event.target.value));
    section.querySelector(".axis").addEventListener("change", () => draw(section));
    for (const box of all(".pick", section)) box.addEventListener("change", () => pick(section, box));
    // drawn when they come near, so that a board of many suites opens at once
    const near = new IntersectionObserver((seen) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      near.disconnect();
      draw(section);
    }, { rootMargin: "600px" });
    near.observe(section.querySelector(".figures"));
  }
  dark.addEventListener("change", () => all("section.board[data-drawn]").forEach(draw));
})();
