// Runs side by side: settings with differences marked, results, curves with bands over runs that differ in their seed alone.
"use strict";

{
  const { make, t, say } = notebook;

  notebook.panel("comparison", async (element, data, tools) => {
    const places = location.hash.slice(1).split("&").filter(Boolean).map(decodeURIComponent);
    if (places.length < 2) {
      element.append(make("p", { text: t("compare.choose") }), make("a", { href: "../index.html", text: t("index.title") }));
      return;
    }
    const entries = await notebook.load("runs", notebook.assets() + "runs.js");
    const chosen = places.map((place) => entries.find((e) => e.place === place)).filter(Boolean);
    const missing = places.filter((place) => !chosen.some((e) => e.place === place));
    if (missing.length) element.append(make("p", { class: "fault", text: t("compare.missing", { runs: missing.join(", ") }) }));
    const runs = await Promise.all(chosen.map(async (e) => ({ ...(await notebook.load(e.data, `../${e.data_at}`)), place: e.place, href: "../" + e.href })));
    if (runs.length < 2) return;
    element.append(make("ul", { class: "chosen" }, ...runs.map((run) => make("li", {}, make("a", { href: run.href, text: run.id }), " ",
      make("button", { type: "button", text: "×", "aria-label": t("compare.remove", { run: run.id }), onclick: () => {
        location.hash = runs.filter((other) => other !== run).map((other) => encodeURIComponent(other.place)).join("&");
        location.reload();
      } })))));
    const judgement = make("section");
    element.append(judgement);
    judge(judgement, runs);
    results(element, runs);
    curves(element, runs, data, tools);
    settings(element, runs, data, tools);
    element.dataset.ready = "yes";
  });

  const head = (element, key) => element.append(make("h2", { text: t(key) }));

  // --- what the differences are worth ------------------------------------------------------------------------------

  async function judge(element, runs) {
    const words = runs.map((run) => run.place).join(" ");
    if (!notebook.served) {
      element.append(make("p", { class: "lead" }, ...notebook.spans(t("compare.static", { command: "marlab compare " + words }))));
      return;
    }
    const answer = await fetch(notebook.server("_compare?") + runs.map((run) => "run=" + encodeURIComponent(run.place)).join("&"));
    const found = await answer.json();
    if (!answer.ok) { element.append(make("p", { class: "lead", text: found.error })); return; }
    element.append(make("div", { class: "verdict", role: "note" }, ...found.verdict.map((s) => make("p", {}, ...notebook.spans(say(s))))));
    const columns = ["compare.group", "compare.trainings", found.measure, "compare.gap", "compare.outcome"];
    element.append(notebook.table({ columns, sort: false, rows: found.rows.map((row) => [row.name, row.marks.length,
      { value: row.value, low: row.low, high: row.high, unit: found.unit }, [row.gap, row.interval].filter(Boolean).join(" "), "compare.outcome." + row.outcome.replace(/ /g, "_")]) }));
    element.dataset.judged = "yes";
  }

  // --- results -------------------------------------------------------------------------------------------------------

  function results(element, runs) {
    const names = [...new Map(runs.flatMap((run) => run.results.map((r) => [r.name.en, r]))).values()];
    names.sort((a, b) => b.key - a.key);
    if (!names.length) return;
    head(element, "run.results");
    const rows = names.map((r) => [say(r.name), ...runs.map((run) => {
      const own = run.results.find((other) => other.name.en === r.name.en);
      return own ? { value: own.value, low: own.low, high: own.high } : null;
    })]);
    element.append(notebook.table({ columns: ["run.result", ...runs.map((run) => run.id)], rows, sort: false }));
  }

  // --- curves --------------------------------------------------------------------------------------------------------

  /** Runs that differ in nothing but their seed are one line: the mean, with Student's 95 % band. */
  function groups(runs, seeds) {
    const found = new Map();
    for (const run of runs) {
      const own = Object.entries(run.settings).filter(([key]) => !seeds.includes(key)).sort();
      const key = own.length ? JSON.stringify(own) : run.place;
      found.set(key, [...(found.get(key) || []), run]);
    }
    return [...found.values()];
  }

  notebook.joined = (members, metric, student) => {
    const lines = members.map((run) => run.lines.find((line) => line.metric === metric)).filter(Boolean);
    if (!lines.length) return null;
    if (lines.length === 1) return lines[0];
    const known = lines.map((line) => new Map(line.x.map((x, i) => [x, line.y[i]])));
    const steps = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const shared = steps.filter((x) => known.every((line) => Number.isFinite(line.get(x))));
    const rows = shared.map((x) => known.map((line) => line.get(x)));
    const mean = rows.map((row) => row.reduce((a, b) => a + b, 0) / row.length);
    const half = rows.map((row, i) => {
      const spread = Math.sqrt(row.reduce((sum, y) => sum + (y - mean[i]) ** 2, 0) / (row.length - 1));
      return (student[Math.min(row.length, student.length + 1) - 2] * spread) / Math.sqrt(row.length);
    });
    return { x: shared, y: mean, low: mean.map((m, i) => m - half[i]), high: mean.map((m, i) => m + half[i]) };
  };

  function curves(element, runs, data, tools) {
    const metrics = [...new Map(runs.flatMap((run) => run.lines.map((line) => [line.metric, line]))).values()];
    if (!metrics.length) return;
    head(element, "run.curves");
    const count = (line) => runs.filter((run) => run.lines.some((other) => other.metric === line.metric)).length;
    const judged = runs.map((run) => run.judged).find((m) => metrics.some((line) => line.metric === m));
    metrics.sort((a, b) => (b.metric === judged) - (a.metric === judged) || count(b) - count(a));
    const together = groups(runs, data.seeds).map((members, colour) => {
      const clocks = members.map((run) => run.clock).filter(Boolean);
      return { members, colour, name: members.length > 1 ? t("compare.of", { name: members[0].id, count: members.length }) : members[0].id,
        seconds: clocks.length ? (step) => clocks.reduce((sum, clock) => sum + notebook.secondsAt(clock, step), 0) / clocks.length : null };
    });
    element.append(notebook.keys(together), make("p", { class: "caption", text: t("compare.band") }));
    notebook.curves(element, { metrics, judged, first: judged ? 1 : 2, stages: [], longest: Math.max(0, ...runs.map((run) => (run.clock ? run.clock.y.at(-1) : 0))),
      lines: (metric) => together.map(({ members, ...look }) => ({ ...look, line: notebook.joined(members, metric, data.student) })).filter((found) => found.line)
        .map(({ line, ...look }) => ({ ...line, ...look })),
    }, tools);
  }

  // --- settings --------------------------------------------------------------------------------------------------------

  function settings(element, runs, data, tools) {
    const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))];
    if (!keys.length) return;
    head(element, "run.settings");
    const value = (run, key) => run.settings[key] ?? t("compare.not_set");
    const differs = (key) => new Set(runs.map((run) => value(run, key))).size > 1;
    const some = keys.filter(differs);
    const box = make("input", { type: "checkbox" });
    box.checked = Boolean(tools.memory.all);
    const place = make("div");
    const show = () => {
      tools.memory.all = box.checked;
      const shown = box.checked ? [...some, ...keys.filter((key) => !differs(key))] : some;
      const table = notebook.table({ columns: ["run.setting", ...runs.map((run) => run.id)], sort: false,
        rows: shown.map((key) => [key, ...runs.map((run) => ({ text: value(run, key) }))]) });
      [...table.querySelectorAll("tbody tr")].forEach((row, i) => row.classList.toggle("differs", differs(shown[i])));
      place.replaceChildren(shown.length ? table : make("p", { text: t("compare.same") }));
    };
    box.addEventListener("change", show);
    element.append(make("p", { class: "lead", text: t("compare.differ", { count: some.length, total: keys.length }) }),
      make("label", {}, box, " " + t("compare.show_all")), place);
    show();
  }
}
