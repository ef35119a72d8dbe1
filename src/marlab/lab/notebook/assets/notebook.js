// The notebook's own script: words, theme, data and panels. Everything from a run is put into the page as text, never as HTML.
"use strict";

const notebook = (() => {
  const root = document.documentElement;
  const store = {
    get(key) { try { return localStorage.getItem("marlab." + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("marlab." + key, value); } catch { /* private windows have no store */ } },
  };
  const LANGUAGES = ["en", "zh"];
  const asked = new URLSearchParams(location.search);
  const words = { en: {}, zh: {} };
  const kinds = new Map();
  const waiting = new Map(); // name of data -> {promise, resolve}
  const themed = new Set();
  const drawn = []; // panels on this page: {host, data, again}
  let language = [asked.get("lang"), store.get("language"), root.lang].find((l) => LANGUAGES.includes(l)) || "en";
  let theme = [asked.get("theme"), store.get("theme")].find((t) => t === "light" || t === "dark") || "auto";
  const served = location.protocol === "http:" || location.protocol === "https:";

  // --- words ---------------------------------------------------------------------------------------------------

  function learn(more) {
    for (const l of LANGUAGES) Object.assign(words[l], more[l] || {});
  }

  function t(key, numbers) {
    const said = words[language][key] ?? words.en[key] ?? key;
    if (!numbers) return said;
    return said.replace(/\{(\w+)(?:\|(\w+))?\}/g, (whole, name, plural) => (!(name in numbers) ? whole : !plural ? String(numbers[name]) : Number(numbers[name]) === 1 ? "" : plural));
  }

  /** A key, a text in every language, or a text as it is. */
  function say(text) {
    if (text !== null && typeof text === "object") return text[language] ?? text.en ?? "";
    return known(text) ? t(text) : String(text);
  }

  function known(key) { return key in words.en; }

  /** A sentence with `code` in it, as nodes. */
  function spans(text) {
    return text.split("`").map((part, i) => (i % 2 ? make("code", { text: part }) : document.createTextNode(part)));
  }

  function speak() {
    root.lang = language === "zh" ? "zh-CN" : "en";
    for (const e of document.querySelectorAll("[data-t]")) if (known(e.dataset.t)) e.textContent = t(e.dataset.t, numbersOf(e));
    for (const name of ["aria-label", "placeholder", "title", "alt", "data-label"]) {
      for (const e of document.querySelectorAll(`[data-t-${name}]`)) e.setAttribute(name, t(e.getAttribute(`data-t-${name}`), numbersOf(e)));
    }
    for (const e of document.querySelectorAll("[data-said]")) {
      const said = JSON.parse(e.dataset.said);
      e.replaceChildren(...spans(said[language] ?? said.en));
    }
  }

  function numbersOf(e) { return e.dataset.n ? JSON.parse(e.dataset.n) : undefined; }

  function setLanguage(next) {
    language = next;
    store.set("language", next);
    speak();
    for (const panel of drawn) panel.again();
    document.dispatchEvent(new Event("notebook:language"));
  }

  // --- light and dark --------------------------------------------------------------------------------------------

  const darkScreen = matchMedia("(prefers-color-scheme: dark)");

  function isDark() { return theme === "auto" ? darkScreen.matches : theme === "dark"; }

  function applyTheme() { root.dataset.theme = isDark() ? "dark" : "light"; }

  function setTheme(next) {
    theme = next;
    store.set("theme", next);
    applyTheme();
    for (const f of themed) f();
  }

  darkScreen.addEventListener("change", () => setTheme(theme));
  applyTheme();

  function colours() {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue("--" + name).trim();
    const series = Array.from({ length: 8 }, (_, i) => of("series-" + i));
    return { ink: of("ink"), soft: of("soft"), paper: of("paper"), line: of("line"), shade: of("shade"), accent: of("accent"),
      good: of("good"), bad: of("bad"), series, dark: isDark() };
  }

  function onTheme(f) { themed.add(f); return () => themed.delete(f); }

  // --- DOM without HTML ------------------------------------------------------------------------------------------

  /** make("button", {type: "button", text: "go", onclick: f}, child, ...) */
  function make(tag, attributes = {}, ...children) {
    const svg = ["svg", "g", "path", "line", "circle", "rect", "text", "polyline", "polygon", "title"].includes(tag) && tag !== "title";
    const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "text") e.textContent = value;
      else if (name.startsWith("on") && typeof value === "function") e.addEventListener(name.slice(2), value);
      else e.setAttribute(name, value === true ? "" : value);
    }
    e.append(...children.filter((child) => child !== null && child !== undefined));
    return e;
  }

  // --- numbers ---------------------------------------------------------------------------------------------------

  function number(x, digits = 4) {
    if (x === null || x === undefined) return t("unknown");
    if (typeof x !== "number") return String(x);
    if (!Number.isFinite(x)) return String(x);
    if (x === 0) return "0";
    const size = Math.abs(x);
    let said;
    if (Number.isInteger(x) && size < 1e15) said = x.toLocaleString("en-US");
    else if (size >= 1e6 || size < 1e-4) said = x.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    else said = String(Number(x.toPrecision(digits)));
    return said.replace(/-/g, "\u2212");
  }

  function interval(pair, digits = 4) {
    if (!pair || pair[0] === null || pair[0] === undefined || pair[1] === null || pair[1] === undefined) return "";
    return `[${number(pair[0], digits)}, ${number(pair[1], digits)}]`;
  }

  // --- data ------------------------------------------------------------------------------------------------------

  function entry(name) {
    if (!waiting.has(name)) {
      const item = {};
      item.promise = new Promise((resolve, reject) => Object.assign(item, { resolve, reject }));
      waiting.set(name, item);
    }
    return waiting.get(name);
  }

  /** Data files call this with their content. */
  function receive(name, value) { entry(name).resolve(value); }

  /** Data by name: from inside the page (one file for all), or from the script at `address`. */
  function load(name, address) {
    if (waiting.has(name)) return waiting.get(name).promise;
    const inside = document.getElementById("data:" + name);
    const item = entry(name);
    if (inside) item.resolve(JSON.parse(inside.textContent));
    else script(address).catch(() => { waiting.delete(name); item.reject(new Error(t("data.missing", { name }))); });
    return item.promise;
  }

  /** Forget data, so that it is read again (a served notebook follows a run). */
  function forget(name) { waiting.delete(name); }

  function script(address) {
    return new Promise((resolve, reject) => {
      const e = make("script", { src: address });
      e.onload = resolve;
      e.onerror = () => { e.remove(); reject(new Error(address)); };
      document.head.append(e);
    });
  }

  function assets() { return root.dataset.assets || ""; }

  /** Where the server takes questions: beside the shared files, so that the token in the address stays in front. */
  function server(path) { return `${assets()}../${path}`; }

  // --- panels ----------------------------------------------------------------------------------------------------

  function panel(kind, draw) { kinds.set(kind, draw); }

  function toolsFor(element, host) {
    const memory = {};
    let undo = [];
    return {
      tools: {
        t, number, interval, make, colours, memory, served, plot,
        get language() { return language; },
        part: (name) => load(`${host.dataset.name}-${name}`, `${host.dataset.folder}${host.dataset.name}-${name}.js`),
        onTheme: (f) => undo.push(onTheme(f)),
        act: (name, message) => act(host.dataset.kind.split(".")[0], name, message),
      },
      reset() { undo.forEach((f) => f()); undo = []; element.replaceChildren(); },
    };
  }

  async function draw(host) {
    const element = host.querySelector(".content");
    const kind = host.dataset.kind;
    const { tools, reset } = toolsFor(element, host);
    try {
      const panel = { host, data: await load(host.dataset.name, `${host.dataset.folder}${host.dataset.name}.js`) };
      panel.again = () => {
        reset();
        const paint = kinds.get(kind);
        if (!paint) element.append(make("p", { class: "fault", text: t("panel.unknown", { kind }) }));
        else paint(element, panel.data, tools);
        host.dataset.drawn = "yes";
      };
      drawn.push(panel);
      panel.again();
    } catch (error) {
      host.dataset.drawn = "failed";
      element.replaceChildren(make("p", { class: "fault", text: error.message }));
      console.error(error);
    }
  }

  async function act(world, name, message) {
    const answer = await fetch(server(`_act/${world}/${name}`), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(message),
    });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    return said;
  }

  // --- plots -----------------------------------------------------------------------------------------------------

  let plotly = null;

  function withPlotly() {
    if (window.Plotly) return Promise.resolve(window.Plotly);
    plotly = plotly || script(assets() + "plotly.min.js").then(() => window.Plotly);
    return plotly;
  }

  function look(layout) {
    const c = colours();
    const axis = { gridcolor: c.line, zerolinecolor: c.line, linecolor: c.line, tickcolor: c.line, automargin: true };
    const merged = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: c.series,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: c.ink },
      margin: { l: 56, r: 16, t: 12, b: 44 }, hovermode: "x unified", showlegend: true,
      legend: { orientation: "h", y: -0.18, x: 0 },
      hoverlabel: { bgcolor: c.shade, bordercolor: c.line, font: { color: c.ink } },
      ...layout,
    };
    for (const name of Object.keys(merged).filter((n) => /^[xy]axis\d*$/.test(n))) merged[name] = { ...axis, ...merged[name] };
    merged.xaxis = merged.xaxis || { ...axis };
    merged.yaxis = merged.yaxis || { ...axis };
    return merged;
  }

  /** Plotly in the colours of the page. `traces` and `layout` may be functions of the colours. */
  async function plot(element, traces, layout = {}) {
    const lib = await withPlotly();
    const of = (value) => (typeof value === "function" ? value(colours()) : value);
    const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "toImage"] };
    const show = () => lib.react(element, of(traces), look(of(layout)), config);
    await show();
    if (element.unthemed) element.unthemed(); // drawn before, with other traces
    element.unthemed = onTheme(() => (element.isConnected ? show() : element.unthemed()));
    return element;
  }

  // --- the frame of every page -----------------------------------------------------------------------------------

  function frame() {
    const themeButton = document.getElementById("theme");
    const languageButton = document.getElementById("language");
    themeButton?.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
    languageButton?.addEventListener("click", () => setLanguage(language === "en" ? "zh" : "en"));
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", async () => {
        const text = document.getElementById(button.dataset.copy).textContent;
        await copy(text);
        button.textContent = t("copied");
        setTimeout(() => { button.textContent = t("copy"); }, 1500);
      });
    }
  }

  async function copy(text) {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = make("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy"); // pages from file:// have no other way
      area.remove();
    }
  }

  // --- a served notebook follows its runs --------------------------------------------------------------------------

  let stamp = 0;

  async function ask() {
    if (document.hidden) return;
    const answer = await fetch(server(`_changed?since=${stamp}`)).catch(() => null); // the server may have ended
    if (!answer || !answer.ok) return;
    const news = await answer.json();
    const known = stamp;
    stamp = news.stamp;
    if (!known || known === news.stamp) return;
    const own = root.dataset.place;
    if (own === undefined || own === "") document.dispatchEvent(new Event("notebook:changed"));
    else if (news.runs.includes(own)) await follow();
  }

  /** The page of a run that goes on: its words and its curves are read again, and nothing that is being watched stops. */
  async function follow() {
    const text = await (await fetch(location.pathname)).text();
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const names = (page) => [...page.querySelectorAll(".panel[data-kind]")].map((e) => e.dataset.name).join();
    if (fresh.documentElement.dataset.status !== root.dataset.status || names(fresh) !== names(document)) return location.reload();
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
      if (now) old.replaceChildren(...now.childNodes);
    }
    speak();
    for (const panel of drawn.filter((p) => !p.host.dataset.kind.includes("."))) {
      forget(panel.host.dataset.name);
      panel.data = await load(panel.host.dataset.name, `${panel.host.dataset.folder}${panel.host.dataset.name}.js?${stamp}`);
      panel.again();
    }
    root.dataset.followed = String(stamp);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (served) { ask(); setInterval(ask, 2000); }
    frame();
    speak();
    for (const host of document.querySelectorAll(".panel[data-kind]")) draw(host);
  });

  return { learn, t, say, known, spans, make, number, interval, receive, load, forget, script, assets, server, panel, plot, colours, onTheme, served, store,
    get language() { return language; } };
})();
