// The index: all runs, filtered and sorted in the page, drawn a screenful at a time.
"use strict";

{
  const { make, t, say } = notebook;
  const PAGE = 60;
  const FIELDS = ["find", "world", "status", "tag", "sort"];
  const byId = (id) => document.getElementById(id);
  const chosen = new Set(); // places of runs that are to be compared
  let all = [];
  let shown = [];
  let drawn = 0;
  let sweep = ""; // only trials of this sweep

  // --- what is shown ---------------------------------------------------------------------------------------------

  const fieldOf = (run) => [run.id, run.kind, run.preset, run.goal, run.group, run.command, run.reason, ...run.tags,
    ...run.verdict.flatMap((s) => Object.values(s))].filter(Boolean).join("\n").toLowerCase();

  function accepts(run) {
    const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    run.field = run.field || fieldOf(run);
    return (sweep ? run.sweep === sweep : !run.sweep)
      && (!byId("world").value || run.world === byId("world").value)
      && (!byId("status").value || run.status === byId("status").value)
      && (!byId("tag").value || run.tags.includes(byId("tag").value))
      && words.every((w) => run.field.includes(w));
  }

  const when = (run) => Date.parse(run.created || "") || 0;
  const figureName = (run) => (run.figures.length ? run.figures[0].name.en : "\uffff");
  const figureValue = (run) => (run.figures.length ? run.figures[0].value * (run.better === "lower" ? -1 : 1) : -Infinity);
  const ORDERS = {
    newest: (a, b) => when(b) - when(a) || a.id.localeCompare(b.id),
    oldest: (a, b) => when(a) - when(b) || a.id.localeCompare(b.id),
    name: (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }),
    figure: (a, b) => figureName(a).localeCompare(figureName(b)) || figureValue(b) - figureValue(a),
    duration: (a, b) => (b.seconds || 0) - (a.seconds || 0),
  };

  function update() {
    const order = ORDERS[byId("sort").value] || ORDERS.newest;
    shown = all.filter(accepts).sort(order);
    const total = all.filter((run) => (sweep ? run.sweep === sweep : !run.sweep)).length;
    byId("count").textContent = shown.length === total ? t("index.count", { total }) : t("index.some", { count: shown.length, total });
    if (sweep) byId("count").append(" ", make("button", { type: "button", text: t("index.leave_sweep", { sweep }), onclick: () => { sweep = ""; update(); } }));
    byId("runs").replaceChildren();
    drawn = 0;
    more();
    remember();
  }

  function more() {
    const list = byId("runs");
    list.append(...shown.slice(drawn, drawn + PAGE).map(row));
    drawn = Math.min(shown.length, drawn + PAGE);
    byId("more").hidden = drawn >= shown.length;
  }

  // --- one run ---------------------------------------------------------------------------------------------------

  function row(run) {
    const far = notebook.served && run.place.startsWith("../"); // a server reads the folder of runs alone
    const box = make("input", { type: "checkbox", disabled: far, "aria-label": t("index.choose", { run: run.id }) });
    box.checked = chosen.has(run.place);
    box.addEventListener("change", () => { box.checked ? chosen.add(run.place) : chosen.delete(run.place); choice(); });
    const link = make("a", { href: far ? null : run.href, title: far ? t("index.far") : null, class: "name", text: run.id });
    const chips = make("span", { class: "chips" }, make("span", { class: "status " + run.status, text: t("status." + run.status) }),
      bar(run), ...[run.preset, run.group, ...run.tags].filter(Boolean).map((text) => make("span", { class: "chip", text })));
    if (run.trials) chips.append(make("button", { type: "button", text: t("index.trials", { count: run.trials }), onclick: () => { sweep = run.place; update(); } }));
    const told = make("div", { class: "told" }, link, chips);
    if (run.verdict.length) told.append(make("p", { class: "sentence" }, ...notebook.spans(say(run.verdict[0]))));
    else if (run.reason || run.goal) told.append(make("p", { class: "sentence soft", text: run.reason || run.goal }));
    return make("li", { "data-place": run.place }, box, picture(run), told, figures(run),
      make("span", { class: "when", text: `${date(run)}\n${lasted(run.seconds)}` }));
  }

  function bar(run) {
    if (run.progress === null || run.status === "finished") return null;
    const share = Math.round(100 * run.progress);
    return make("progress", { max: 100, value: share, "aria-label": t("index.progress"), title: share + " %" });
  }

  function picture(run) {
    if (run.thumb && !(notebook.served && run.place.startsWith("../"))) return make("img", { class: "thumb" + (/\.svg$/i.test(run.thumb) ? " drawing" : ""), src: run.thumb, alt: "", loading: "lazy", width: 96, height: 64 });
    return make("span", { class: "thumb none " + run.world, "aria-hidden": "true", text: run.world.slice(0, 1) });
  }

  function figures(run) {
    const box = make("div", { class: "key" });
    run.figures.forEach((f, i) => {
      const line = make("div", { class: i ? "minor" : "major" }, make("span", { class: "label", text: say(f.name) }), " ", make("strong", { text: notebook.number(f.value) }));
      const band = notebook.interval([f.low, f.high], 3);
      if (band) line.append(" ", make("span", { class: "band", text: band }));
      box.append(line);
      if (!i && run.spark.length > 1) box.append(notebook.spark(run.spark, run.spark_of));
    });
    if (!run.figures.length && run.spark.length > 1) box.append(notebook.spark(run.spark, run.spark_of));
    return box;
  }

  /** A curve as small as a word. */
  notebook.spark = (heights, name) => {
    const [wide, tall] = [120, 26];
    const x = (i) => (2 + (i * (wide - 4)) / (heights.length - 1)).toFixed(1);
    const y = (h) => (tall - 3 - (h * (tall - 6)) / 100).toFixed(1);
    const points = heights.map((h, i) => (h === null ? null : `${x(i)},${y(h)}`)).filter(Boolean);
    return make("svg", { class: "spark", viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, role: "img", "aria-label": t("index.spark", { name: name || "" }) },
      make("polyline", { points: points.join(" ") }));
  };

  const date = (run) => (run.created ? run.created.slice(0, 16).replace("T", " ") : "");

  function lasted(seconds) {
    if (seconds === null || seconds === undefined) return "";
    if (seconds < 60) return t("time.s", { s: Math.round(seconds) });
    if (seconds < 3600) return t("time.min", { min: Math.floor(seconds / 60), s: Math.round(seconds % 60) });
    return t("time.h", { h: Math.floor(seconds / 3600), min: Math.round((seconds % 3600) / 60) });
  }

  // --- choosing, and what the address remembers ------------------------------------------------------------------------

  function choice() {
    byId("compare").disabled = chosen.size < 2;
    byId("compare").textContent = chosen.size ? t("index.compare_some", { count: chosen.size }) : t("index.compare");
    byId("clear").hidden = !chosen.size;
  }

  function remember() {
    const state = new URLSearchParams();
    for (const id of FIELDS) if (byId(id).value && byId(id).value !== "newest") state.set(id, byId(id).value);
    if (sweep) state.set("sweep", sweep);
    const address = state.toString() ? "#" + state : location.pathname + location.search;
    history.replaceState(null, "", address);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const id of FIELDS) if (state.has(id)) byId(id).value = state.get(id);
    if (!byId("sort").value) byId("sort").value = "newest";
    sweep = state.get("sweep") || "";
  }

  function options(id, values, key) {
    const kept = byId(id).value;
    byId(id).replaceChildren(byId(id).firstElementChild, ...values.map((value) => make("option", { value, text: key ? t(key + value) : value })));
    byId(id).value = kept;
  }

  function fillOptions() {
    const of = (f) => [...new Set(all.flatMap(f))].sort();
    options("world", of((run) => [run.world]));
    options("status", of((run) => [run.status]), "status.");
    options("tag", of((run) => run.tags));
    byId("tag").hidden = byId("tag").options.length < 2;
  }

  function take(runs) {
    const trials = new Map();
    for (const run of runs) if (run.sweep) trials.set(run.sweep, (trials.get(run.sweep) || 0) + 1);
    all = runs.map((run) => ({ ...run, trials: trials.get(run.place) || 0 }));
    fillOptions();
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const address = notebook.assets() + "runs.js";
    take(await notebook.load("runs", address));
    recall();
    update();
    choice();
    document.documentElement.dataset.ready = "yes";
    notebook.readyAt = performance.now();
    for (const id of FIELDS) byId(id).addEventListener("input", update);
    byId("tools").addEventListener("submit", (event) => event.preventDefault());
    byId("more").addEventListener("click", more);
    byId("clear").addEventListener("click", () => { chosen.clear(); choice(); update(); });
    byId("compare").addEventListener("click", () => {
      location.href = notebook.assets() + "compare.html#" + [...chosen].map(encodeURIComponent).join("&");
    });
    document.addEventListener("notebook:language", () => { fillOptions(); choice(); update(); });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      byId("find").focus();
    });
    new IntersectionObserver((seen) => { if (seen[0].isIntersecting && !byId("more").hidden) more(); }, { rootMargin: "400px" }).observe(byId("more"));
    document.addEventListener("notebook:changed", async () => {
      notebook.forget("runs");
      take(await notebook.load("runs", address + "?" + Date.now()));
      const kept = window.scrollY;
      const count = Math.max(drawn, PAGE);
      update();
      while (drawn < Math.min(count, shown.length)) more();
      window.scrollTo(0, kept);
    });
  });
}
