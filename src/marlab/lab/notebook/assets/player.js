// A player for replays on a canvas: play, step, scrub, speed; keys: space, arrows, home, end.
"use strict";

notebook.player = (element, options, tools) => {
  const { make, t } = tools;
  const { length, draw, label, fps = 10, width = 1, height = 1, changed = null, pick = null, most = 720 } = options;
  const last = Math.max(0, length - 1);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = Math.min(tools.memory.frame ?? 0, last);
  let playing = null; // {at, from}: when it began, and with which frame
  let speed = tools.memory.speed ?? 1;

  const canvas = make("canvas", { role: "img", tabindex: "0", "aria-label": label });
  const button = make("button", { type: "button", class: "play" });
  const back = make("button", { type: "button", text: "\u2039", "aria-label": t("player.back") });
  const forth = make("button", { type: "button", text: "\u203a", "aria-label": t("player.forth") });
  const scrub = make("input", { type: "range", min: 0, max: last, step: 1, value: frame, "aria-label": t("player.moment") });
  const told = make("output", { class: "moment" });
  const speeds = make("select", { "aria-label": t("player.speed") },
    ...[0.25, 0.5, 1, 2, 4, 8].map((x) => make("option", { value: x, text: x + "\u00d7", selected: x === speed })));
  const box = make("div", { class: "player" }, canvas,
    make("div", { class: "controls" }, button, back, forth, scrub, told, speeds));
  element.append(box);

  function size() {
    const wide = Math.min(box.clientWidth || 320, most);
    return { width: wide, height: Math.round((wide * height) / width) };
  }

  function redraw() {
    const area = size();
    const sharp = window.devicePixelRatio || 1;
    canvas.style.width = area.width + "px";
    canvas.style.height = area.height + "px";
    canvas.width = Math.round(area.width * sharp);
    canvas.height = Math.round(area.height * sharp);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
    ctx.clearRect(0, 0, area.width, area.height);
    draw(ctx, frame, area);
  }

  function show(next) {
    frame = Math.max(0, Math.min(last, Math.round(next)));
    tools.memory.frame = frame;
    box.dataset.frame = String(frame);
    scrub.value = String(frame);
    scrub.setAttribute("aria-valuetext", t("player.of", { frame, last }));
    told.textContent = `${frame} / ${last}`;
    redraw();
    if (changed) changed(frame);
  }

  function sayButton() {
    button.textContent = playing ? "\u275a\u275a" : "\u25b6";
    button.setAttribute("aria-label", t(playing ? "player.pause" : "player.play"));
    box.dataset.playing = playing ? "yes" : "no";
  }

  function tick(now) {
    if (!playing || !box.isConnected) return;
    const next = playing.from + ((now - playing.at) / 1000) * fps * speed;
    if (Math.round(next) !== frame) show(Math.min(next, last));
    if (next >= last) return pause();
    requestAnimationFrame(tick);
  }

  function play() {
    if (playing) return;
    if (frame >= last) show(0);
    playing = { at: performance.now(), from: frame };
    sayButton();
    requestAnimationFrame(tick);
  }

  function pause() { playing = null; sayButton(); }

  function step(by) { pause(); show(frame + by); }

  button.addEventListener("click", () => (playing ? pause() : play()));
  back.addEventListener("click", () => step(-1));
  forth.addEventListener("click", () => step(1));
  scrub.addEventListener("input", () => { pause(); show(Number(scrub.value)); });
  speeds.addEventListener("change", () => {
    speed = Number(speeds.value);
    tools.memory.speed = speed;
    if (playing) playing = { at: performance.now(), from: frame };
  });
  canvas.addEventListener("keydown", (event) => {
    const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), PageUp: () => step(-10), PageDown: () => step(10),
      Home: () => step(-length), End: () => step(length), " ": () => (playing ? pause() : play()) };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  if (pick) canvas.addEventListener("click", (event) => {
    const at = canvas.getBoundingClientRect();
    pick(event.clientX - at.left, event.clientY - at.top, frame);
  });
  let wide = 0; // drawing changes the height alone, and must not call for drawing
  const observer = new ResizeObserver(() => {
    if (!box.isConnected) return observer.disconnect();
    if (box.clientWidth === wide) return;
    wide = box.clientWidth;
    redraw();
  });
  observer.observe(box);
  tools.onTheme(redraw);
  sayButton();
  show(frame);
  if (options.autoplay && !still) play();
  return { element: box, canvas, show, play, pause, redraw, get frame() { return frame; } };
};
