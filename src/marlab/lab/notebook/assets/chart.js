// Small line charts that follow a player: light, with a cursor, and a click that leads to the moment.
"use strict";

{
  const { make } = notebook;

  /** Round numbers between two limits, at most `wanted` and a few. */
  const ticks = notebook.ticks = (low, high, wanted) => {
    const span = high - low || 1;
    const power = 10 ** Math.floor(Math.log10(span / wanted));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => span / s <= wanted) || 10 * power;
    const found = [];
    for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9 * span; v += step) found.push(Math.abs(v) < 1e-9 * step ? 0 : Number(v.toPrecision(12)));
    return found;
  };

  const short = (v) => (Math.abs(v) >= 1e6 ? `${Number((v / 1e6).toFixed(1))}M` : Math.abs(v) >= 1e4 ? `${Number((v / 1e3).toFixed(0))}k`
    : String(Number(v.toPrecision(4)))).replace("-", "\u2212");

  const colour = (line, i) => `var(--series-${(line.colour ?? i) % 8})`;

  /** Which colour is which line. */
  notebook.keys = (lines) => make("div", { class: "keys" }, ...lines.map((line, i) => {
    const sign = make("i");
    sign.style.background = colour(line, i);
    return make("span", {}, sign, line.name);
  }));

  /** notebook.chart({title, x: [...], lines: [{name, y: [...], colour?, dash?}], unit?, xlabel?, zero?, marks?: [{x, name}], pick?: f(x)})
   *  -> {element, cursor(x)}. `colour` is a number of a series; null in y is a gap. */
  notebook.chart = ({ title, x, lines, unit = "", xlabel = "", zero = false, marks = [], pick = null, height = 210 }) => {
    const wide = window.innerWidth < 560 ? 380 : 560; // so that letters stay readable on a phone
    const [left, right, top, bottom] = [52, 12, 10, 36];
    const known = lines.flatMap((line) => line.y).filter((v) => v !== null && Number.isFinite(v));
    let low = known.length ? Math.min(...known) : 0;
    let high = known.length ? Math.max(...known) : 1;
    if (zero) { low = Math.min(0, low); high = Math.max(0, high); }
    if (low === high) { low -= 1; high += 1; }
    const room = 0.05 * (high - low);
    if (!(zero && low === 0)) low -= room;
    high += room;
    const [first, last] = [x.length ? x[0] : 0, x.length ? x[x.length - 1] : 1];
    const px = (v) => left + ((v - first) / (last - first || 1)) * (wide - left - right);
    const py = (v) => height - bottom - ((v - low) / (high - low)) * (height - top - bottom);
    const svg = make("svg", { viewBox: `0 0 ${wide} ${height}`, role: "img", "aria-label": title, class: pick ? "chart pick" : "chart" });
    for (const v of ticks(low, high, 5)) {
      svg.append(make("line", { x1: left, x2: wide - right, y1: py(v), y2: py(v), class: "grid" }),
        make("text", { x: left - 6, y: py(v) + 4, "text-anchor": "end", class: "tick", text: short(v) }));
    }
    for (const v of ticks(first, last, wide < 500 ? 5 : 8)) svg.append(make("text", { x: px(v), y: height - bottom + 16, "text-anchor": "middle", class: "tick", text: short(v) }));
    if (xlabel) svg.append(make("text", { x: (left + wide - right) / 2, y: height - 4, "text-anchor": "middle", class: "tick", text: xlabel }));
    for (const mark of marks) {
      svg.append(make("line", { x1: px(mark.x), x2: px(mark.x), y1: top, y2: height - bottom, class: "reference" }),
        make("text", { x: px(mark.x) + 3, y: top + 10, class: "tick", text: mark.name }));
    }
    lines.forEach((line, i) => {
      let path = "";
      let down = false;
      line.y.forEach((v, k) => {
        if (v === null || !Number.isFinite(v)) { down = false; return; }
        path += `${down ? "L" : "M"}${px(x[k]).toFixed(1)} ${py(v).toFixed(1)}`;
        down = true;
      });
      svg.append(make("path", { d: path, class: "curve", stroke: colour(line, i), "stroke-dasharray": line.dash ? "6 4" : null }));
    });
    const rule = make("line", { y1: top, y2: height - bottom, class: "now", visibility: "hidden" });
    svg.append(rule);
    if (pick) svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * wide;
      pick(Math.min(last, Math.max(first, first + ((at - left) / (wide - left - right)) * (last - first))));
    });
    const names = lines.length > 1 ? [notebook.keys(lines)] : [];
    const element = make("figure", { class: "small-chart" },
      make("figcaption", { text: unit ? `${title} (${unit})` : title }), svg, ...names);
    return { element, cursor(v) {
      rule.setAttribute("x1", px(v));
      rule.setAttribute("x2", px(v));
      rule.setAttribute("visibility", "visible");
    } };
  };
}
