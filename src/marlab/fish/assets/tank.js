// The tank as an animation: two policies side by side in the same arena, trails, deaths, and the view of one fish.
"use strict";

{
  const ACTIONS = ["forward", "left", "right", "brake", "hold"];

  /** Little-endian whole numbers from base64. */
  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Int16Array(bytes.buffer);
  }

  /** A map of a round tank: pixels of a place in metres. */
  const mapping = (cx, cy, half, reach) => (x, y) => [cx + (x / reach) * half, cy - (y / reach) * half];

  function water(ctx, c, cx, cy, half) {
    ctx.fillStyle = c.shade;
    ctx.strokeStyle = c.soft;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.arc(cx, cy, half, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  }

  notebook.panel("fish.tank", (element, data, tools) => {
    const { make, number } = tools;
    const say = (key, values) => tools.t(`fish.tank.${key}`, values);
    const memory = tools.memory;
    memory.arena = memory.arena ?? 0;
    memory.fish = memory.fish ?? 0;
    memory.trails = memory.trails ?? true;
    const swims = data.names.map(() => null); // paths by policy, when they have arrived
    const [F, T, K] = [data.fish, data.steps, data.predators];
    let player = null;
    const narrow = (element.clientWidth || 800) < 560; // one tank above the other

    const place = (swim, t, f) => [swim.position[(t * F + f) * 2] / 1000, swim.position[(t * F + f) * 2 + 1] / 1000];
    const hunter = (swim, t, k) => [swim.predator[(t * K + k) * 2] / 1000, swim.predator[(t * K + k) * 2 + 1] / 1000];
    const lives = (swim, t, f) => swim.death[f] < 0 || t < swim.death[f];
    const alive = (swim, t) => { let n = 0; for (let f = 0; f < F; f += 1) n += lives(swim, t, f); return n; };

    // --- tanks -----------------------------------------------------------------------------------------------------

    const tanks = []; // where they were drawn: {map, cx, cy, half}

    function draw(ctx, t, size) {
      const c = tools.colours();
      const [columns, rows] = narrow ? [1, data.names.length] : [data.names.length, 1];
      const [cell, tall] = [size.width / columns, size.height / rows];
      ctx.font = "13px system-ui, sans-serif";
      ctx.textAlign = "center";
      data.names.forEach((name, p) => {
        const half = Math.min(cell, tall - 26) / 2 - 6;
        const [cx, cy] = [cell * ((narrow ? 0 : p) + 0.5), 24 + half + (narrow ? p * tall : 0)];
        tanks[p] = { map: mapping(cx, cy, half, data.radius), cx, cy, half };
        ctx.fillStyle = c.ink;
        const swim = swims[p];
        const told = swim ? `${name}: ${say("alive", { alive: alive(swim, t), fish: F })}` : name;
        ctx.fillText(told, cx, cy - half - 11);
        water(ctx, c, cx, cy, half);
        if (swim) swimmers(ctx, c, t, swim, tanks[p]);
      });
    }

    function swimmers(ctx, c, t, swim, { map, half }) {
      const unit = half / 300;
      for (let k = 0; k < K; k += 1) {
        const [x, y] = map(...hunter(swim, t, k));
        ctx.fillStyle = c.bad;
        for (const [reach, strength] of [[data.vision, 0.07], [data.kill, 0.2]]) {
          ctx.globalAlpha = strength;
          ctx.beginPath();
          ctx.arc(x, y, (reach / data.radius) * half, 0, 2 * Math.PI);
          ctx.fill();
        }
        ctx.globalAlpha = 1;
      }
      for (let f = 0; f < F; f += 1) {
        if (lives(swim, t, f)) continue;
        const [x, y] = map(...place(swim, swim.death[f], f)); // where it was eaten
        const fresh = t - swim.death[f] < 15;
        ctx.strokeStyle = fresh ? c.bad : c.soft;
        ctx.lineWidth = fresh ? 2 : 1;
        const r = (fresh ? 6 : 4) * Math.max(0.7, unit);
        ctx.beginPath();
        ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r);
        ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r);
        ctx.stroke();
      }
      if (memory.trails) trails(ctx, c, t, swim, map);
      for (let f = 0; f < F; f += 1) {
        if (!lives(swim, t, f)) continue;
        const [x, y] = map(...place(swim, t, f));
        const [bx, by] = map(...place(swim, Math.max(0, t - 1), f));
        const length = Math.hypot(x - bx, y - by) || 1;
        const [dx, dy] = t ? [(x - bx) / length, (y - by) / length] : [1, 0];
        const s = 6.5 * Math.max(0.75, unit);
        ctx.fillStyle = f === memory.fish ? c.series[1] : c.series[0];
        ctx.beginPath(); // a drop with its nose ahead
        ctx.moveTo(x + dx * s, y + dy * s);
        ctx.lineTo(x - dx * s - dy * s * 0.6, y - dy * s + dx * s * 0.6);
        ctx.lineTo(x - dx * s + dy * s * 0.6, y - dy * s - dx * s * 0.6);
        ctx.fill();
        if (f === memory.fish) {
          ctx.strokeStyle = c.series[1];
          ctx.lineWidth = 1.5;
          ctx.beginPath();
          ctx.arc(x, y, s * 2, 0, 2 * Math.PI);
          ctx.stroke();
        }
      }
      for (let k = 0; k < K; k += 1) {
        const [x, y] = map(...hunter(swim, t, k));
        ctx.fillStyle = c.bad;
        ctx.beginPath();
        ctx.arc(x, y, 8 * Math.max(0.7, unit), 0, 2 * Math.PI);
        ctx.fill();
      }
    }

    function trails(ctx, c, t, swim, map) {
      const from = Math.max(0, t - 20);
      ctx.lineWidth = 1.2;
      const line = (at, colour) => {
        ctx.strokeStyle = colour;
        ctx.globalAlpha = 0.4;
        ctx.beginPath();
        for (let k = from; k <= t; k += 1) { const [x, y] = map(...at(k)); if (k === from) ctx.moveTo(x, y); else ctx.lineTo(x, y); }
        ctx.stroke();
      };
      for (let f = 0; f < F; f += 1) if (lives(swim, t, f)) line((k) => place(swim, k, f), f === memory.fish ? c.series[1] : c.series[0]);
      for (let k = 0; k < K; k += 1) line((s) => hunter(swim, s, k), c.bad);
      ctx.globalAlpha = 1;
    }

    // --- the view of one fish --------------------------------------------------------------------------------------

    const eye = make("canvas", { class: "eye", role: "img", "aria-label": say("eye") });
    const facts = make("dl", { class: "eye-facts" });
    const chart = make("div");

    function look(t) {
      const c = tools.colours();
      const wide = 260;
      const sharp = window.devicePixelRatio || 1;
      eye.width = wide * sharp;
      eye.height = wide * sharp;
      const ctx = eye.getContext("2d");
      ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
      ctx.clearRect(0, 0, wide, wide);
      const swim = swims[0];
      if (!swim) return;
      const f = memory.fish;
      const dead = !lives(swim, t, f);
      const now = dead ? swim.death[f] : t;
      const [x, y] = place(swim, now, f);
      const map = (px, py) => [wide / 2 + ((px - x) / data.vision) * (wide / 2 - 4), wide / 2 - ((py - y) / data.vision) * (wide / 2 - 4)];
      ctx.save();
      ctx.beginPath();
      ctx.arc(wide / 2, wide / 2, wide / 2 - 2, 0, 2 * Math.PI);
      ctx.clip();
      ctx.fillStyle = c.line;
      ctx.fillRect(0, 0, wide, wide);
      const [ax, ay] = map(0, 0);
      ctx.fillStyle = c.shade;
      ctx.beginPath();
      ctx.arc(ax, ay, (data.radius / data.vision) * (wide / 2 - 4), 0, 2 * Math.PI);
      ctx.fill();
      for (let other = 0; other < F; other += 1) {
        if (other === f || !lives(swim, now, other)) continue;
        ctx.fillStyle = c.series[0];
        ctx.beginPath();
        ctx.arc(...map(...place(swim, now, other)), 4, 0, 2 * Math.PI);
        ctx.fill();
      }
      let nearest = Infinity;
      for (let k = 0; k < K; k += 1) {
        const at = hunter(swim, now, k);
        nearest = Math.min(nearest, Math.hypot(at[0] - x, at[1] - y));
        ctx.fillStyle = c.bad;
        ctx.globalAlpha = 0.25;
        ctx.beginPath();
        ctx.arc(...map(...at), (data.kill / data.vision) * (wide / 2 - 4), 0, 2 * Math.PI);
        ctx.fill();
        ctx.globalAlpha = 1;
        ctx.beginPath();
        ctx.arc(...map(...at), 8, 0, 2 * Math.PI);
        ctx.fill();
      }
      ctx.restore();
      ctx.fillStyle = c.series[1];
      ctx.beginPath();
      ctx.arc(wide / 2, wide / 2, 6, 0, 2 * Math.PI);
      ctx.fill();
      ctx.strokeStyle = c.soft;
      ctx.beginPath();
      ctx.arc(wide / 2, wide / 2, wide / 2 - 2, 0, 2 * Math.PI);
      ctx.stroke();
      const before = place(swim, Math.max(0, now - 1), f);
      const speed = Math.hypot(x - before[0], y - before[1]) / data.dt;
      const chosen = swim.action ? ACTIONS[swim.action[Math.min(T - 1, now) * F + f]] : null;
      const rows = { fish: memory.fish, state: dead ? say("eaten", { step: swim.death[f] }) : say("lives"), distance: `${number(nearest, 3)} m`,
        sees: nearest <= data.vision ? say("yes") : say("no"), speed: `${number(speed, 3)} m/s`, does: dead || !chosen ? "\u2013" : say(chosen) };
      facts.dataset.distance = String(nearest);
      facts.replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [make("dt", { text: say(name) }), make("dd", { text: String(value), "data-key": name })]));
    }

    // --- controls --------------------------------------------------------------------------------------------------

    const arenas = make("select", { "aria-label": say("arena"), onchange: () => { memory.arena = Number(arenas.value); load(); } },
      ...data.seeds.map((seed, i) => make("option", { value: i, text: say("arena_is", { number: i + 1, seed }) })));
    arenas.value = String(memory.arena);
    const fishes = make("input", { type: "number", min: 0, max: F - 1, value: memory.fish, "aria-label": say("fish"),
      oninput: () => { memory.fish = Math.max(0, Math.min(F - 1, Number(fishes.value) || 0)); player.redraw(); look(player.frame); } });
    const tail = make("input", { type: "checkbox", onchange: () => { memory.trails = tail.checked; player.redraw(); } });
    tail.checked = memory.trails;
    const box = make("div");
    element.append(make("div", { class: "chooser" }, make("label", {}, `${say("arena")} `, arenas), make("label", {}, tail, ` ${say("trails")}`)), box);
    const status = make("p", { class: "axis", "aria-live": "off" });

    function changed(t) {
      look(t);
      const counts = swims.map((swim) => (swim ? alive(swim, t) : null));
      box.dataset.alive = counts.join(" ");
      status.textContent = data.names.map((name, p) => (counts[p] === null ? "" : `${name}: ${say("alive", { alive: counts[p], fish: F })}`)).join(" · ");
      if (chart.firstChild) chart.cursor(t);
    }

    player = notebook.player(box, { length: T + 1, fps: 20, width: narrow ? 1 : data.names.length, height: narrow ? 1.06 * data.names.length : 1.06, most: data.names.length * 520, label: say("title"), draw, changed,
      pick: (px, py) => {
        for (let p = 0; p < tanks.length; p += 1) {
          const { map, cx, cy, half } = tanks[p];
          if (!swims[p] || Math.hypot(px - cx, py - cy) > half) continue;
          let best = 0;
          let least = Infinity;
          for (let f = 0; f < F; f += 1) {
            const [x, y] = map(...place(swims[p], player.frame, f));
            const far = Math.hypot(px - x, py - y);
            if (far < least) { least = far; best = f; }
          }
          memory.fish = best;
          fishes.value = String(best);
          player.redraw();
          look(player.frame);
        }
      } }, tools);
    element.append(status, make("div", { class: "pair" },
      make("section", { class: "one-fish" }, make("h3", { text: say("eye") }), make("div", { class: "chooser" }, make("label", {}, `${say("fish")} `, fishes)),
        make("div", { class: "eye-row" }, eye, facts)),
      make("section", {}, chart)), make("p", { class: "axis", text: say("legend") }));

    function load() {
      const wanted = memory.arena;
      Promise.all(data.names.map((_, p) => tools.part(`arena-${wanted}-${p}`))).then((parts) => {
        if (wanted !== memory.arena) return;
        parts.forEach((part, p) => { swims[p] = { ...part, position: unpack(part.position), predator: unpack(part.predator), action: part.action ? unpack(part.action) : null }; });
        const steps = Array.from({ length: T + 1 }, (_, k) => k);
        const made = notebook.chart({ title: say("survivors"), x: steps, xlabel: say("step"), pick: (x) => player.show(Math.round(x)),
          lines: data.names.map((name, p) => ({ name, y: steps.map((k) => alive(swims[p], k)) })) });
        chart.replaceChildren(made.element);
        chart.cursor = made.cursor;
        element.dataset.arena = String(wanted);
        player.show(player.frame);
      });
    }
    load();
  });

  // --- where fish die ------------------------------------------------------------------------------------------------

  notebook.panel("fish.deaths", (element, data, tools) => {
    const { make } = tools;
    const say = (key, values) => tools.t(`fish.deaths.${key}`, values);
    const row = make("div", { class: "pair" });
    data.policies.forEach((policy) => {
      const svg = make("svg", { viewBox: "-10.6 -10.6 21.2 21.2", class: "chart tank-map", role: "img", "aria-label": say("of", { name: policy.name, count: policy.deaths.length }),
        "data-deaths": policy.deaths.length });
      svg.append(make("circle", { cx: 0, cy: 0, r: data.radius * (10 / data.radius), class: "water" }));
      for (const [x, y, step] of policy.deaths) {
        const s = 10 / data.radius;
        svg.append(make("circle", { cx: x * s, cy: -y * s, r: 0.22, class: step <= 1 ? "death first" : step <= 100 ? "death early" : "death late" }));
      }
      row.append(make("figure", { class: "small-chart" }, make("figcaption", { text: say("of", { name: policy.name, count: policy.deaths.length }) }), svg));
    });
    const key = (name) => make("span", {}, make("i", { class: `dot ${name}` }), say(name));
    element.append(row, make("div", { class: "keys" }, key("first"), key("early"), key("late")));
  });

  // --- by heading ----------------------------------------------------------------------------------------------------

  notebook.panel("fish.polar", (element, data, tools) => {
    const { make } = tools;
    const say = (key, values) => tools.t(`fish.polar.${key}`, values);
    const most = Math.max(1, ...data.bins.map((bin) => bin.reduce((a, b) => a + b, 0)));
    const svg = make("svg", { viewBox: "-130 -118 260 236", class: "chart polar", role: "img", "aria-label": say("title"), "data-total": data.bins.flat().reduce((a, b) => a + b, 0) });
    for (const share of [0.5, 1]) {
      svg.append(make("circle", { cx: 0, cy: 0, r: 95 * share, class: "ring" }), make("text", { x: 3, y: -95 * share - 2, class: "tick", text: String(Math.round(most * share * 10) / 10) }));
    }
    data.bins.forEach((bin, i) => {
      let inner = 0;
      bin.forEach((count, k) => {
        if (!count) return;
        const outer = inner + count;
        const [a, b] = [i, i + 1].map((edge) => -(edge / data.bins.length) * 2 * Math.PI);
        const at = (angle, r) => `${(Math.cos(angle) * r).toFixed(2)} ${(Math.sin(angle) * r).toFixed(2)}`;
        const [r0, r1] = [95 * inner / most, 95 * outer / most];
        svg.append(make("path", { d: `M${at(a, r0)}L${at(a, r1)}A${r1} ${r1} 0 0 0 ${at(b, r1)}L${at(b, r0)}A${r0} ${r0} 0 0 1 ${at(a, r0)}Z`, fill: `var(--series-${k})`, class: "petal" }));
        inner = outer;
      });
    });
    ["east", "north", "west", "south"].forEach((name, i) => {
      const [x, y] = [[106, 4], [0, -106], [-106, 4], [0, 114]][i];
      svg.append(make("text", { x, y, "text-anchor": i === 0 ? "start" : i === 2 ? "end" : "middle", class: "tick", text: say(name) }));
    });
    const keys = data.classes.map((name, k) => { const sign = make("i"); sign.style.background = `var(--series-${k})`; return make("span", {}, sign, name); });
    element.append(make("figure", { class: "small-chart narrow" }, svg, make("div", { class: "keys" }, ...keys)));
  });

  // --- what a fish does around the predator ------------------------------------------------------------------------------

  notebook.panel("fish.field", (element, data, tools) => {
    const { make } = tools;
    const say = (key, values) => tools.t(`fish.field.${key}`, values);
    const memory = tools.memory;
    memory.heading = memory.heading ?? 1;
    const host = make("div", { class: "field" });
    const buttons = data.headings.map((name, h) => make("button", { type: "button", text: say(name), "aria-pressed": String(h === memory.heading),
      onclick: () => { memory.heading = h; show(); } }));
    const colours = [0, 2, 1, 3, 6];
    function show() {
      buttons.forEach((button, h) => button.setAttribute("aria-pressed", String(h === memory.heading)));
      const n = data.action[0].length;
      const svg = make("svg", { viewBox: `0 0 ${n} ${n}`, class: "chart field-map", role: "img", "aria-label": say("title"), "data-heading": data.headings[memory.heading] });
      data.action[memory.heading].forEach((line, row) => line.forEach((action, column) => {
        svg.append(make("rect", { x: column, y: n - 1 - row, width: 1.02, height: 1.02, fill: `var(--series-${colours[action]})`,
          "fill-opacity": (0.15 + 0.75 * data.chance[memory.heading][row][column]).toFixed(2) }));
      }));
      const [mid, unit] = [n / 2, n / (2 * data.reach)];
      svg.append(make("circle", { cx: mid, cy: mid, r: data.vision * unit, class: "sight" }), make("circle", { cx: mid, cy: mid, r: data.kill * unit, class: "kill" }),
        make("line", { x1: mid, y1: mid, x2: mid + 1.4 * unit, y2: mid, class: "course" }));
      host.replaceChildren(svg);
    }
    show();
    const keys = ACTIONS.map((name, a) => { const sign = make("i"); sign.style.background = `var(--series-${colours[a]})`; return make("span", {}, sign, tools.t(`fish.tank.${name}`)); });
    element.append(make("div", { class: "chooser", role: "group", "aria-label": say("heading") }, make("span", { text: say("heading") }), ...buttons), host, make("div", { class: "keys" }, ...keys));
  });
}
