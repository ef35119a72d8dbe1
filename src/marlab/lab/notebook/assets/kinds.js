// Kinds of panels that every world can use; their data is described in `marlab.lab.notebook.panels`.
"use strict";

{
  const { make, say } = notebook;
  const safe = (href) => (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith("//") ? undefined : href);

  // --- tables ----------------------------------------------------------------------------------------------------

  const valueOf = (cell) => (cell !== null && typeof cell === "object" ? cell.value ?? cell.text ?? null : cell);

  function fill(outer, cell) {
    if (cell === null || cell === undefined) return outer;
    const td = outer.appendChild(make("span", { class: "cell" })); // stays together where a row becomes a card
    if (typeof cell === "object" && "text" in cell) {
      td.append(cell.href ? make("a", { href: safe(cell.href), text: say(cell.text) }) : document.createTextNode(say(cell.text)));
    } else if (typeof cell === "object" && "en" in cell) {
      td.append(say(cell));
    } else if (typeof cell === "object") {
      td.append(make("strong", { text: notebook.number(cell.value) }));
      const band = notebook.interval([cell.low, cell.high]);
      if (band) td.append(" ", make("span", { class: "band", text: band }));
      if (cell.unit) td.append(" ", make("span", { class: "unit", text: say(cell.unit) }));
    } else td.append(typeof cell === "number" ? notebook.number(cell) : say(cell));
    return outer;
  }

  function compareCells(a, b) {
    const [x, y] = [valueOf(a), valueOf(b)];
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
  }

  /** A table that can be sorted by its headings; on a phone every row becomes a card. */
  notebook.table = (data, tools) => {
    const memory = tools ? tools.memory : {};
    const body = make("tbody");
    const heads = data.columns.map((name, column) => {
      const th = make("th", { scope: "col" });
      if (data.sort === false) { th.textContent = say(name); return th; }
      th.append(make("button", { type: "button", class: "sorter", text: say(name), onclick: () => {
        memory.reverse = memory.column === column ? !memory.reverse : false;
        memory.column = column;
        rows();
      } }));
      return th;
    });

    function rows() {
      const order = [...data.rows];
      if (memory.column !== undefined) {
        order.sort((a, b) => compareCells(a[memory.column], b[memory.column]) * (memory.reverse ? -1 : 1));
      }
      heads.forEach((th, column) => {
        if (memory.column === column) th.setAttribute("aria-sort", memory.reverse ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
      });
      body.replaceChildren(...order.map((row) => make("tr", {}, ...row.map((cell, column) => {
        const numeric = typeof valueOf(cell) === "number";
        const td = make(column ? "td" : "th", { class: numeric ? "number" : null, scope: column ? null : "row",
          "data-label": column ? say(data.columns[column]) : null });
        return fill(td, cell);
      }))));
    }

    rows();
    return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": tools ? tools.title || "" : "" },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
  };

  notebook.panel("table", (element, data, tools) => element.append(notebook.table(data, tools)));

  // --- intervals: rows from top to bottom; one bad row cannot ruin the scale ---------------------------------------

  /** Bounds of what most rows need: quartiles of all ends, three ranges wide, and nothing cut if all fit. */
  notebook.bulk = (rows, reference) => {
    const ends = rows.flatMap((r) => [r.value, r.low, r.high]).filter((x) => Number.isFinite(x));
    if (reference && Number.isFinite(reference.value)) ends.push(reference.value);
    if (!ends.length) return [0, 1];
    ends.sort((a, b) => a - b);
    const at = (share) => ends[Math.min(ends.length - 1, Math.floor(share * (ends.length - 1) + 0.5))];
    const [q1, q3] = [at(0.25), at(0.75)];
    const room = Math.max(3 * (q3 - q1), 1e-12);
    let [low, high] = [Math.max(ends[0], q1 - room), Math.min(ends[ends.length - 1], q3 + room)];
    if (low === high) { low -= 0.5; high += 0.5; }
    const pad = 0.04 * (high - low);
    return [low - pad, high + pad];
  };

  notebook.panel("intervals", (element, data, tools) => {
    const rows = data.rows;
    const [low, high] = notebook.bulk(rows, data.reference);
    const paint = () => {
      const wide = Math.max(280, element.clientWidth || 640);
      const narrow = wide < 560;
      const left = narrow ? 8 : Math.min(250, 24 + Math.max(30, ...rows.map((r) => breadth(say(r.name)))));
      const right = narrow ? 8 : 190;
      const step = narrow ? 46 : 30;
      const top = 8 + (data.reference ? 18 : 0);
      const tall = top + rows.length * step + 34;
      const x = (value) => left + ((value - low) / (high - low)) * (wide - left - right);
      const svg = make("svg", { viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", class: "intervals",
        "aria-label": rows.map((r) => `${say(r.name)} ${notebook.number(r.value)} ${notebook.interval([r.low, r.high])}`).join("; ") });
      for (const value of notebook.ticks(low, high, narrow ? 4 : 6)) {
        svg.append(make("line", { x1: x(value), x2: x(value), y1: top, y2: tall - 28, class: "grid" }),
          make("text", { x: x(value), y: tall - 12, class: "tick", "text-anchor": "middle", text: notebook.number(value) }));
      }
      if (data.reference && data.reference.value >= low && data.reference.value <= high) {
        const at = x(data.reference.value);
        svg.append(make("line", { x1: at, x2: at, y1: top, y2: tall - 28, class: "reference" }),
          make("text", { x: at, y: 14, class: "tick", "text-anchor": at > wide * 0.6 ? "end" : "start", text: say(data.reference.name) }));
      }
      rows.forEach((row, i) => {
        const y = top + i * step + (narrow ? 32 : step / 2);
        const told = `${notebook.number(row.value)} ${notebook.interval([row.low, row.high])}`;
        svg.append(make("text", { x: narrow ? left : left - 10, y: narrow ? y - 12 : y + 4, "text-anchor": narrow ? "start" : "end",
          class: "name", text: cut(say(row.name), narrow ? 190 : 230) }));
        svg.append(make("text", { x: narrow ? wide - 8 : wide - right + 12, y: narrow ? y - 12 : y + 4, "text-anchor": narrow ? "end" : "start",
          class: "told", text: told }));
        for (const mark of row.marks || []) if (mark >= low && mark <= high) svg.append(make("circle", { cx: x(mark), cy: y, r: 2.4, class: "one" }));
        if (row.value < low || row.value > high) { // beyond the bulk: an arrow, and the number stands beside it
          const [at, sign] = row.value < low ? [x(low), 1] : [x(high), -1];
          svg.append(make("polygon", { points: `${at},${y} ${at + 10 * sign},${y - 6} ${at + 10 * sign},${y + 6}`, class: "beyond" }));
          return;
        }
        if (Number.isFinite(row.low) && Number.isFinite(row.high)) {
          svg.append(make("line", { x1: x(Math.max(row.low, low)), x2: x(Math.min(row.high, high)), y1: y, y2: y, class: "band" }));
        }
        svg.append(make("circle", { cx: x(row.value), cy: y, r: 5, class: "mean" }));
      });
      const beyond = rows.some((r) => r.value < low || r.value > high);
      element.replaceChildren(svg, ...(data.unit ? [make("p", { class: "axis", text: say(data.unit) })] : []),
        ...(beyond ? [make("p", { class: "axis", text: tools.t("intervals.beyond") })] : []));
    };
    follow(element, paint);
  });

  /** About how many pixels a label takes; Chinese letters are twice as wide. */
  const breadth = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 13.5 : 7.3), 0);
  const cut = (text, most) => { let kept = text; while (breadth(kept) > most) kept = kept.slice(0, -2) + "…"; return kept; };

  /** Paint now and whenever the width changes. */
  function follow(element, paint) {
    let wide = element.clientWidth;
    paint();
    const observer = new ResizeObserver(() => {
      if (!element.isConnected) return observer.disconnect();
      if (Math.abs(element.clientWidth - wide) < 2) return;
      wide = element.clientWidth;
      paint();
    });
    observer.observe(element);
  }
  notebook.follow = follow;

  // --- plots -------------------------------------------------------------------------------------------------------

  const faint = (colour) => (colour.startsWith("#") ? colour + "30" : colour);

  notebook.traces = (lines, c) => lines.flatMap((line, i) => {
    const place = line.colour ?? i;
    const colour = c.series[place % c.series.length];
    const found = [];
    if (line.raw) found.push({ x: line.x, y: line.raw, mode: "lines", line: { color: faint(colour), width: 1.5 }, hoverinfo: "skip", showlegend: false });
    if (line.low && line.high) {
      found.push({ x: [...line.x, ...[...line.x].reverse()], y: [...line.high, ...[...line.low].reverse()], fill: "toself",
        fillcolor: faint(colour), line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines", legendgroup: line.name });
    }
    found.push({ x: line.x, y: line.y, name: say(line.name), mode: line.x.length < 3 ? "lines+markers" : "lines", legendgroup: line.name,
      line: { color: colour, width: 2, dash: ["solid", "dash", "dot", "dashdot"][Math.floor(place / c.series.length) % 4] } });
    return found;
  });

  notebook.axes = (data, c) => ({
    height: data.height || 340,
    xaxis: { title: { text: say(data.x || "") } },
    yaxis: { title: { text: say(data.y || "") } },
    showlegend: data.lines ? data.lines.length > 1 : false,
    shapes: [
      ...(data.marks || []).map((m) => ({ type: "line", x0: m.x, x1: m.x, yref: "paper", y0: 0, y1: 1, line: { color: c.soft, width: 1, dash: "dot" } })),
      ...(data.references || []).map((r) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: r.y, y1: r.y, line: { color: c.soft, width: 1.5, dash: "dash" } })),
    ],
    annotations: [
      ...(data.marks || []).map((m) => ({ x: m.x, yref: "paper", y: 1, text: plain(m.name), showarrow: false, xanchor: "left", yanchor: "top", textangle: 0, font: { size: 11, color: c.soft } })),
      ...(data.references || []).map((r) => ({ xref: "paper", x: 1, y: r.y, text: plain(r.name), showarrow: false, xanchor: "right", yanchor: "bottom", font: { size: 11, color: c.soft } })),
    ],
  });

  /** Plotly reads a little HTML in its texts; names of runs must not be read so. */
  const plain = (text) => say(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  notebook.plain = plain;

  notebook.panel("curves", (element, data, tools) => {
    const lines = data.lines.map((line) => ({ ...line, name: plain(line.name) }));
    tools.plot(element, (c) => notebook.traces(lines, c), (c) => notebook.axes({ ...data, lines }, c));
  });

  /** Colours from low to high, or, around a middle such as 0, from bad to good; pale enough for the ink upon them. */
  function scale(data, c) {
    if (data.middle === undefined) return c.dark ? [[0, "#14303f"], [0.5, "#2a7fa8"], [1, "#c9ecff"]] : [[0, "#eef6fb"], [0.5, "#4c9fce"], [1, "#08395c"]];
    return c.dark ? [[0, "#7a3410"], [0.5, "#1f252b"], [1, "#0f5f46"]] : [[0, "#f4b48f"], [0.5, "#f7f8f9"], [1, "#8fd6bd"]];
  }

  /** An axis of names; long ones are cut, because a plot is there for its values, and shown in full under the mouse. */
  const names = (labels) => ({ type: "category", tickvals: labels.map(plain), ticktext: labels.map((label) => plain(cut(say(label), 190))) });

  notebook.panel("heat", (element, data, tools) => {
    tools.plot(element, (c) => [{ type: "heatmap", x: data.x.map(plain), y: data.y.map(plain), z: data.z, xgap: 1, ygap: 1,
      colorscale: scale(data, c), zmid: data.middle, textfont: data.middle === undefined ? undefined : { color: c.ink },
      text: data.text || data.z.map((row) => row.map((v) => (v === null ? "" : notebook.number(v, 3)))), texttemplate: data.x.length <= 14 ? "%{text}" : undefined,
      colorbar: { thickness: 12, title: { text: plain(data.unit || "").replace(/(.{18}\S*) /g, "$1<br>"), side: "right" } }, hovertemplate: "%{y} / %{x}: %{text}<extra></extra>" }],
    () => ({ height: Math.max(260, 90 + 34 * data.y.length), xaxis: names(data.x), yaxis: { ...names(data.y), autorange: "reversed" }, hovermode: "closest", showlegend: false }));
  });

  // --- small ones ----------------------------------------------------------------------------------------------------

  notebook.panel("facts", (element, data) => {
    element.append(make("dl", { class: "facts" }, ...data.map((fact) => make("div", {}, make("dt", { text: say(fact.name) }), fill(make("dd"), fact.value)))));
  });

  notebook.panel("figure", (element, data) => {
    element.append(make("img", { src: safe(data.src), alt: data.alt, loading: "lazy" }));
  });

  notebook.panel("prose", (element, data) => {
    for (const text of data.text.split(/\n\s*\n/)) element.append(make("p", {}, ...notebook.spans(text)));
  });
}

// --- many curves: the first at once, others folded by the first part of their names; smoothing, log and time for all ----
{
  const { make, t, say } = notebook;

  /** A running mean that weighs the past with `share`, corrected at its start, as TensorBoard has it. */
  notebook.smoothed = (y, share) => {
    let [sum, seen] = [0, 0];
    return y.map((v) => {
      if (!Number.isFinite(v)) return v;
      sum = share * sum + (1 - share) * v;
      return sum / (1 - share ** ++seen);
    });
  };

  /** Seconds of work at a step, between the records of `clock` ({x: steps, y: seconds}). */
  notebook.secondsAt = (clock, step) => {
    const i = clock.x.findIndex((x) => x >= step);
    if (i < 1) return i ? clock.y[clock.y.length - 1] : clock.y[0];
    return clock.y[i - 1] + ((step - clock.x[i - 1]) / (clock.x[i] - clock.x[i - 1])) * (clock.y[i] - clock.y[i - 1]);
  };

  /** data: {metrics: [{metric, names, note}], lines: f(metric) -> [{name, x, y, colour, seconds: f(step)}], judged, first, longest, stages} */
  notebook.curves = (element, data, tools) => {
    const memory = tools.memory;
    const chosen = memory.chosen ||= { log: false, smooth: 0, time: false, ...JSON.parse(notebook.store.get("curves") || "{}") };
    const redraw = []; // of every plot on the page
    const [unit, size] = data.longest >= 7200 ? ["h", 3600] : data.longest >= 120 ? ["min", 60] : ["s", 1];
    const at = (line, step) => (chosen.time && line.seconds ? line.seconds(step) / size : step);

    function shaped(line) {
      const smooth = (y) => (y && chosen.smooth > 0 ? notebook.smoothed(y, chosen.smooth) : y);
      return { ...line, name: notebook.plain(line.name), x: line.x.map((step) => at(line, step)), y: smooth(line.y), low: smooth(line.low),
        high: smooth(line.high), raw: chosen.smooth > 0 && !line.low ? line.y : null };
    }

    function layout(lines, height, c) {
      const now = memory.stage ? data.stages[Number(memory.stage)] : null;
      const stages = now || data.stages.length < 2 || data.stages.length > 12 ? [] : data.stages;
      const timed = chosen.time && lines.some((line) => line.seconds);
      const found = notebook.axes({ x: timed ? t("curves.time_axis", { unit }) : t("step"), height,
        marks: stages.map((s) => ({ x: at(lines[0], s.first), name: height > 300 ? s.name : "" })) }, c);
      found.xaxis.range = now ? [at(lines[0], now.first - 0.5), at(lines[0], now.last + 0.5)] : undefined;
      found.yaxis.type = chosen.log && lines.some((line) => line.y.some((v) => v > 0)) ? "log" : "linear";
      return found;
    }

    function one({ metric, names, note }) {
      const box = make("div", { class: "plot" });
      const wide = metric === data.judged;
      redraw.push(() => {
        const lines = data.lines(metric).map(shaped);
        box.dataset.lines = String(lines.length);
        tools.plot(box, (c) => notebook.traces(lines, c), (c) => layout(lines, wide ? 360 : 260, c));
      });
      redraw.at(-1)();
      return make("figure", { class: wide ? "wide" : "" }, make("figcaption", {}, make("strong", { text: say(names) }), " ", make("code", { text: metric }), note ? " " + note : null), box);
    }

    const set = (name, value) => {
      chosen[name] = value;
      notebook.store.set("curves", JSON.stringify({ smooth: chosen.smooth, time: chosen.time }));
      redraw.forEach((draw) => draw());
    };
    const box = (name, word) => {
      const input = make("input", { type: "checkbox", onchange: () => set(name, input.checked) });
      input.checked = chosen[name];
      return make("label", {}, input, " " + t(word));
    };
    const slider = make("input", { type: "range", min: 0, max: 0.99, step: 0.01, value: chosen.smooth, oninput: () => set("smooth", Number(slider.value)) });
    const controls = make("div", { class: "chooser" }, make("label", {}, t("curves.smooth") + " ", slider), box("log", "curves.log"), data.longest > 0 ? box("time", "curves.time") : null);
    if (data.stages.length > 1) {
      const select = make("select", { onchange: () => { memory.stage = select.value; redraw.forEach((draw) => draw()); } }, make("option", { value: "", text: t("run.all_stages") }),
        ...data.stages.map((s, i) => make("option", { value: i, text: `${s.name} (${s.first}–${s.last})`, selected: String(i) === memory.stage })));
      controls.append(make("label", { class: "stage" }, t("run.stage") + " ", select));
    }
    element.append(controls, make("div", { class: "plots" }, ...data.metrics.slice(0, data.first).map(one)));
    const groups = new Map();
    for (const metric of data.metrics.slice(data.first)) {
      const group = metric.metric.includes("/") ? metric.metric.split("/")[0] : "";
      groups.set(group, [...(groups.get(group) || []), metric]);
    }
    for (const [group, metrics] of groups) {
      const inside = make("div", { class: "plots" });
      const more = make("details", {}, make("summary", { text: t("run.more_curves", { group: group || t("run.others"), count: metrics.length }) }), inside);
      more.addEventListener("toggle", () => { if (more.open && !inside.childElementCount) inside.append(...metrics.map(one)); });
      element.append(more);
    }
  };

  notebook.panel("training", (element, data, tools) => notebook.curves(element, {
    metrics: data.lines.map((line) => ({ ...line, note: line.low ? t("run.band", { seeds: line.seeds }) : "" })),
    lines: (metric) => data.lines.filter((line) => line.metric === metric).map((line) => ({ ...line, name: say(line.names), seconds: data.clock && ((step) => notebook.secondsAt(data.clock, step)) })),
    judged: data.judged, first: data.lines.some((line) => line.metric === data.judged) ? 1 : 2, longest: data.clock ? data.clock.y.at(-1) : 0, stages: data.stages,
  }, tools));
}
