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

  function ticks(low, high, count) {
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const found = [];
    for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) found.push(Math.abs(x) < 1e-9 * step ? 0 : Number(x.toPrecision(12)));
    return found;
  }

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
      for (const value of ticks(low, high, narrow ? 4 : 6)) {
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
    const colour = c.series[i % c.series.length];
    const found = [];
    if (line.low && line.high) {
      found.push({ x: [...line.x, ...[...line.x].reverse()], y: [...line.high, ...[...line.low].reverse()], fill: "toself",
        fillcolor: faint(colour), line: { width: 0 }, hoverinfo: "skip", showlegend: false, mode: "lines", legendgroup: line.name });
    }
    found.push({ x: line.x, y: line.y, name: say(line.name), mode: line.x.length < 3 ? "lines+markers" : "lines", legendgroup: line.name,
      line: { color: colour, width: 2, dash: ["solid", "dash", "dot", "dashdot"][Math.floor(i / c.series.length) % 4] } });
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
      colorbar: { thickness: 12, title: { text: plain(data.unit || ""), side: "right" } }, hovertemplate: "%{y} / %{x}: %{text}<extra></extra>" }],
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

// --- the curves of a training, stage by stage -------------------------------------------------------------------------
{
  const { make, t, say } = notebook;

  notebook.panel("training", (element, data, tools) => {
    const plots = []; // {element, line} that are drawn
    const stage = () => data.stages[Number(tools.memory.stage)] || null;

    function layout(line, c) {
      const now = stage();
      const stages = now ? [] : data.stages;
      const height = line.metric === data.judged ? 360 : 260;
      const found = notebook.axes({ x: t("step"), y: "", lines: [], height, marks: stages.length > 1 && stages.length < 13 ? stages.map((s) => ({ x: s.first, name: height > 300 ? s.name : "" })) : [] }, c);
      found.xaxis.range = now ? [now.first - 0.5, now.last + 0.5] : undefined;
      found.showlegend = false;
      return found;
    }

    function one(line) {
      const box = make("div", { class: "plot" });
      const band = line.low ? " " + t("run.band", { seeds: line.seeds }) : "";
      const figure = make("figure", { class: line.metric === data.judged ? "wide" : "" },
        make("figcaption", {}, make("strong", { text: say(line.names) }), " ", make("code", { text: line.metric }), band), box);
      const drawnLine = { ...line, name: notebook.plain(say(line.names)) };
      const draw = () => tools.plot(box, (c) => notebook.traces([drawnLine], c), (c) => layout(line, c));
      plots.push(draw);
      draw();
      return figure;
    }

    if (data.stages.length > 1) {
      const select = make("select", { "aria-label": t("run.stage") }, make("option", { value: "", text: t("run.all_stages") }),
        ...data.stages.map((s, i) => make("option", { value: i, text: `${s.name} (${s.first}–${s.last})`, selected: String(i) === tools.memory.stage })));
      select.addEventListener("change", () => { tools.memory.stage = select.value; plots.forEach((draw) => draw()); });
      element.append(make("label", { class: "stage" }, t("run.stage") + " ", select));
    }
    const first = data.lines.some((line) => line.metric === data.judged) ? 1 : 2; // drawn at once
    const main = data.lines.slice(0, first);
    element.append(make("div", { class: "plots" }, ...main.map(one)));
    const groups = new Map();
    for (const line of data.lines.slice(first)) {
      const group = line.metric.includes("/") ? line.metric.split("/")[0] : "";
      groups.set(group, [...(groups.get(group) || []), line]);
    }
    for (const [group, lines] of groups) {
      const inside = make("div", { class: "plots" });
      const more = make("details", {}, make("summary", { text: t("run.more_curves", { group: group || t("run.others"), count: lines.length }) }), inside);
      more.addEventListener("toggle", () => { if (more.open && !inside.childElementCount) inside.append(...lines.map(one)); });
      element.append(more);
    }
  });
}
