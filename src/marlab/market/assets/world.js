// A world of the market day by day: the chain of factories, prices and balances, the day's negotiations with their reasons.
"use strict";

notebook.panel("market.world", (element, data, tools) => {
  const { make, t, number } = tools;
  const say = (key, values) => t(`market.world.${key}`, values);
  const memory = tools.memory;
  const factories = data.factories;
  const short = (factory) => factory.id.split("@")[0];
  const called = (index) => (index < 0 ? say("market") : factories[index].id);
  const money = (value) => Math.round(value).toLocaleString("en-US").replace("-", "\u2212");
  const narrow = (element.clientWidth || 800) < 560;
  const OUTCOMES = ["agreed", "broken", "timed_out"];
  let contracts = null; // arrives a moment later
  let day = 0;
  let player = null;
  memory.factory = memory.factory ?? Math.max(0, factories.findIndex((f) => f.explained));
  if (memory.negotiation === undefined) memory.negotiation = null;

  // --- the chain ---------------------------------------------------------------------------------------------------

  const levels = Array.from({ length: data.levels }, (_, level) => factories.map((f, i) => [f, i]).filter(([f]) => f.level === level));
  const rows = Math.max(...levels.map((level) => level.length));
  const boxes = []; // where factories were drawn: [x, y, w, h]
  const most = Math.max(1, ...data.flows.stock.flat());

  function draw(ctx, frame, size) {
    const c = tools.colours();
    const edge = Math.min(54, size.width * 0.07);
    const wide = (size.width - 2 * edge) / data.levels;
    const w = Math.min(190, wide * (size.width < 560 ? 0.82 : 0.62));
    const tall = (size.height - 26) / rows;
    const h = Math.min(76, tall - 10);
    const font = Math.max(10, Math.min(13, w / 9));
    levels.forEach((level, l) => level.forEach(([, i], k) => {
      const gap = (size.height - 26) / level.length;
      boxes[i] = [edge + l * wide + (wide - w) / 2, 22 + k * gap + (gap - h) / 2, w, h];
    }));
    ctx.font = `${font}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = c.soft;
    ctx.textAlign = "center";
    for (let l = 0; l < data.levels; l += 1) ctx.fillText(say("level", { level: l }), edge + (l + 0.5) * wide, 9);
    lines(ctx, frame, size, c, edge);
    factories.forEach((factory, i) => card(ctx, frame, c, factory, i, font));
  }

  /** Contracts that are due today, as lines as thick as their quantities. */
  function lines(ctx, frame, size, c, edge) {
    if (!contracts) return;
    const due = new Map();
    contracts.delivery.forEach((delivery, k) => {
      if (delivery !== frame || !contracts.executed[k]) return;
      const key = `${contracts.seller[k]} ${contracts.buyer[k]}`;
      due.set(key, (due.get(key) || 0) + contracts.quantity[k]);
    });
    for (const [key, quantity] of due) {
      const [seller, buyer] = key.split(" ").map(Number);
      const from = seller < 0 ? [4, boxes[buyer][1] + boxes[buyer][3] / 2] : [boxes[seller][0] + boxes[seller][2], boxes[seller][1] + boxes[seller][3] / 2];
      const to = buyer < 0 ? [size.width - 4, boxes[seller][1] + boxes[seller][3] / 2] : [boxes[buyer][0], boxes[buyer][1] + boxes[buyer][3] / 2];
      const mine = seller === memory.factory || buyer === memory.factory;
      const middle = (from[0] + to[0]) / 2;
      ctx.strokeStyle = mine ? c.accent : c.soft;
      ctx.globalAlpha = mine ? 0.9 : 0.45;
      ctx.lineWidth = Math.min(12, 1 + quantity * 0.6);
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.bezierCurveTo(middle, from[1], middle, to[1], ...to);
      ctx.stroke();
      ctx.globalAlpha = 1;
      if (mine || seller < 0 || buyer < 0) {
        ctx.fillStyle = c.ink;
        const at = seller < 0 ? edge / 2 + 4 : buyer < 0 ? size.width - edge / 2 - 4 : middle;
        ctx.fillText(String(quantity), at, (from[1] + to[1]) / 2 - 9);
      }
    }
  }

  function card(ctx, frame, c, factory, i, font) {
    const [x, y, w, h] = boxes[i];
    const gone = factory.bankrupt >= 0 && frame > factory.bankrupt;
    ctx.fillStyle = c.shade;
    ctx.strokeStyle = i === memory.factory ? c.accent : c.line;
    ctx.lineWidth = i === memory.factory ? 3 : 1.5;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, 7);
    ctx.fill();
    ctx.stroke();
    ctx.textAlign = "left";
    ctx.fillStyle = gone ? c.bad : c.ink;
    const fit = (text) => { let cut = text; while (cut.length > 3 && ctx.measureText(cut).width > w - 12) cut = cut.slice(0, -2) + "\u2026"; return cut; };
    const balance = data.balance[i][frame + 1];
    const change = balance - data.balance[i][frame];
    ctx.font = `600 ${font}px system-ui, sans-serif`;
    ctx.fillText(fit(`${short(factory)} ${factory.type}`), x + 6, y + h * 0.2);
    ctx.font = `${font}px system-ui, sans-serif`;
    ctx.fillText(gone ? say("bankrupt") : fit(money(balance)), x + 6, y + h * 0.47);
    if (!gone) {
      ctx.fillStyle = change < 0 ? c.bad : c.good;
      ctx.textAlign = "right";
      const said = `${change < 0 ? "\u2212" : "+"}${money(Math.abs(change))}`;
      if (ctx.measureText(said).width + ctx.measureText(money(balance)).width < w - 16) ctx.fillText(said, x + w - 6, y + h * 0.47);
    }
    ctx.textAlign = "left";
    ctx.fillStyle = c.soft;
    ctx.fillText(fit(say("stock_is", { stock: data.flows.stock[i][frame] })), x + 6, y + h * 0.72);
    ctx.fillStyle = c.line;
    ctx.fillRect(x + 6, y + h - 8, w - 12, 4);
    ctx.fillStyle = c.series[1];
    ctx.fillRect(x + 6, y + h - 8, (w - 12) * (data.flows.stock[i][frame] / most), 4);
    ctx.textAlign = "center";
  }

  // --- beside it ---------------------------------------------------------------------------------------------------

  const days = Array.from({ length: data.days + 1 }, (_, d) => d);
  const go = (x) => player.show(Math.min(data.days - 1, Math.round(x)));
  const prices = notebook.chart({ title: say("prices"), x: days, xlabel: say("day"), pick: go,
    lines: data.prices.map((y, p) => ({ name: say("product", { product: p }), y })) });
  const balances = notebook.chart({ title: say("balances"), x: days, xlabel: say("day"), pick: go,
    lines: data.balance.map((y, i) => ({ name: called(i), y, colour: i, dash: i >= 8 })) });
  const books = make("div", { class: "books" });
  const ahead = make("div");
  const asked = make("select", { "aria-label": say("of_factory"), onchange: () => { memory.factory = Number(asked.value); memory.negotiation = null; refresh(); } },
    ...factories.map((f, i) => make("option", { value: i, text: `${f.id} ${f.type}` })));
  const talks = make("div", { class: "talks" });
  const ladder = make("div", { class: "ladder", "aria-live": "polite" });
  const why = make("div");

  const head = make("div");
  element.append(head);
  player = notebook.player(head, { length: data.days, fps: 4, width: narrow ? 5.2 : 12, height: Math.max(3.4, 1.15 * rows + 0.4), most: 1120,
    label: say("title"), draw, changed: (frame) => { day = frame; refresh(); },
    pick: (x, y) => {
      const hit = boxes.findIndex(([bx, by, bw, bh]) => x >= bx && x <= bx + bw && y >= by && y <= by + bh);
      if (hit >= 0) { memory.factory = hit; memory.negotiation = null; refresh(); player.redraw(); }
    } }, tools);
  element.append(make("p", { class: "axis", text: say("legend") }), books,
    make("div", { class: "pair" }, prices.element, balances.element),
    make("div", { class: "chooser" }, make("label", {}, `${say("of_factory")} `, asked)),
    make("div", { class: "pair" }, make("section", {}, make("h3", { text: say("talks") }), talks, ahead), make("section", {}, ladder)), why);
  tools.part("contracts").then((value) => { contracts = value; player.redraw(); refresh(); });

  function refresh() {
    if (!player) return;
    asked.value = String(memory.factory);
    prices.cursor(day);
    balances.cursor(day);
    showBooks();
    showAhead();
    showTalks();
  }

  function showBooks() {
    const columns = ["factory", "balance", "change", "bought", "supplied", "produced", "shortfall", "stock"];
    const body = factories.map((factory, i) => {
      const values = { balance: data.balance[i][day + 1], change: data.balance[i][day + 1] - data.balance[i][day] };
      for (const name of columns.slice(3)) values[name] = data.flows[name][i][day];
      const choose = make("button", { type: "button", class: "link", text: factory.id, title: factory.type,
        onclick: () => { memory.factory = i; memory.negotiation = null; refresh(); player.redraw(); } });
      return make("tr", { class: i === memory.factory ? "picked" : null, "data-factory": i },
        make("th", { scope: "row" }, choose, ` ${factory.type}`),
        ...columns.slice(1).map((name) => make("td", { class: "number", "data-label": say(name), "data-key": name, "data-value": values[name],
          text: name === "balance" || name === "change" ? money(values[name]) : number(values[name]) })));
    });
    books.replaceChildren(scrolling(say("books", { day }), make("table", { "data-day": day },
      make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col", text: say(name) })))), make("tbody", {}, ...body))));
  }

  function scrolling(label, table) {
    return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": label }, table);
  }

  /** What is signed so far, by delivery day, of the chosen factory. */
  function showAhead() {
    if (!contracts) return;
    const reach = data.horizon + 1;
    const [coming, going] = [new Array(reach).fill(0), new Array(reach).fill(0)];
    contracts.day.forEach((signed, k) => {
      const slot = contracts.delivery[k] - day;
      if (signed > day || slot < 0 || slot >= reach) return;
      if (contracts.buyer[k] === memory.factory) coming[slot] += contracts.quantity[k];
      if (contracts.seller[k] === memory.factory) going[slot] += contracts.quantity[k];
    });
    const wide = narrow ? 380 : 560;
    const tall = 190;
    const step = (wide - 60) / reach;
    const scale = 62 / Math.max(1, ...coming, ...going);
    const svg = make("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "chart", role: "img", "aria-label": say("ahead", { id: called(memory.factory) }) },
      make("line", { x1: 50, x2: wide - 8, y1: 84, y2: 84, class: "grid" }));
    for (let k = 0; k < reach; k += 1) {
      const x = 52 + k * step;
      svg.append(make("rect", { x, width: step * 0.7, y: 84 - coming[k] * scale, height: coming[k] * scale, fill: "var(--series-0)" }),
        make("rect", { x, width: step * 0.7, y: 84, height: going[k] * scale, fill: "var(--series-1)" }),
        make("text", { x: x + step * 0.35, y: 172, "text-anchor": "middle", class: "tick", text: String(day + k) }));
      if (coming[k]) svg.append(make("text", { x: x + step * 0.35, y: 80 - coming[k] * scale, "text-anchor": "middle", class: "tick", text: String(coming[k]) }));
      if (going[k]) svg.append(make("text", { x: x + step * 0.35, y: 97 + going[k] * scale, "text-anchor": "middle", class: "tick", text: String(going[k]) }));
    }
    svg.append(make("text", { x: wide / 2, y: 187, "text-anchor": "middle", class: "tick", text: say("delivery_day") }));
    const key = (colour, name) => { const sign = make("i"); sign.style.background = `var(--series-${colour})`; return make("span", {}, sign, name); };
    ahead.replaceChildren(make("figure", { class: "small-chart", "data-coming": coming.join(" "), "data-going": going.join(" ") },
      make("figcaption", { text: say("ahead", { id: called(memory.factory) }) }), svg,
      make("div", { class: "keys" }, key(0, say("arrives")), key(1, say("leaves")))));
  }

  // --- negotiations ------------------------------------------------------------------------------------------------

  function showTalks() {
    const wanted = day;
    const first = Math.floor(day / data.part) * data.part;
    tools.part(`days-${first}`).then((part) => {
      if (wanted !== day) return;
      const mine = part.negotiations.filter(([, row]) => row[0] === day && (row[1] === memory.factory || row[2] === memory.factory));
      if (!mine.some(([n]) => n === memory.negotiation)) { // the most telling one: agreed, or at least with offers
        const first = mine.find(([, row, offers]) => row[5] === 0 && offers.length) || mine.find(([, , offers]) => offers.length) || mine[0];
        memory.negotiation = first ? first[0] : null;
      }
      const body = mine.map(([n, row, offers]) => {
        const last = offers[offers.length - 1];
        const deal = row[5] === 0 && last ? say("deal", { quantity: last[2], price: last[4], day: last[3] }) : "";
        const other = row[1] === memory.factory ? row[2] : row[1];
        const choose = () => { memory.negotiation = n; showTalks(); };
        return make("tr", { class: n === memory.negotiation ? "picked" : null, "data-negotiation": n },
          make("th", { scope: "row" }, make("button", { type: "button", class: "link", text: called(other), onclick: choose })),
          make("td", { text: say(row[1] === memory.factory ? "sells" : "buys"), "data-label": say("side") }),
          make("td", { class: `outcome ${OUTCOMES[row[5]]}`, text: say(OUTCOMES[row[5]]), "data-label": say("outcome") }),
          make("td", { text: deal, "data-label": say("terms") }),
          make("td", { class: "number", text: String(offers.length), "data-label": say("offers") }));
      });
      talks.dataset.day = String(day);
      talks.replaceChildren(mine.length ? scrolling(say("talks"), make("table", {},
        make("thead", {}, make("tr", {}, ...["partner", "side", "outcome", "terms", "offers"].map((name) => make("th", { scope: "col", text: say(name) })))),
        make("tbody", {}, ...body))) : make("p", { class: "axis", text: say("no_talks") }));
      const chosen = mine.find(([n]) => n === memory.negotiation);
      ladder.replaceChildren(...(chosen ? [climb(chosen)] : []));
      why.replaceChildren(...(chosen ? reasons(part.reasons, chosen) : []));
    });
  }

  /** The offers of one negotiation: price over rounds, both sides, and how it ended. */
  function climb([n, row, offers]) {
    const [, seller, buyer, , , outcome, endedBy, , , , low, high] = row;
    const wide = narrow ? 380 : 560;
    const tall = 230;
    const rounds = Math.max(1, ...offers.map((o) => o[0]));
    const px = (r) => 56 + (r / rounds) * (wide - 110);
    const py = (p) => 186 - ((p - low) / (high - low || 1)) * 150;
    const svg = make("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "chart", role: "img", "data-negotiation": n, "data-outcome": OUTCOMES[outcome],
      "data-offers": offers.length, "aria-label": say("ladder", { seller: called(seller), buyer: called(buyer) }) });
    for (const p of [low, high]) {
      svg.append(make("line", { x1: 48, x2: wide - 10, y1: py(p), y2: py(p), class: "grid" }),
        make("text", { x: 44, y: py(p) + 4, "text-anchor": "end", class: "tick", text: String(p) }));
    }
    for (const [side, colour] of [[seller, 0], [buyer, 1]]) {
      const own = offers.filter((o) => o[1] === side);
      svg.append(make("polyline", { points: own.map((o) => `${px(o[0])},${py(o[4])}`).join(" "), class: "curve", stroke: `var(--series-${colour})`, "stroke-opacity": 0.5 }));
    }
    offers.forEach((o, k) => {
      const up = o[1] === seller;
      const [x, y] = [px(o[0]), py(o[4])];
      const final = k === offers.length - 1;
      svg.append(make("polygon", { points: up ? `${x - 6},${y - 5} ${x + 6},${y - 5} ${x},${y + 6}` : `${x - 6},${y + 5} ${x + 6},${y + 5} ${x},${y - 6}`,
        fill: `var(--series-${up ? 0 : 1})`, "data-offer": o.join(" ") }));
      if (offers.length <= 12 || final || k === 0) svg.append(make("text", { x, y: up ? y - 9 : y + 18, "text-anchor": "middle", class: "tick", text: `${o[2]}\u00d7, ${o[3]}` }));
      if (final) {
        const sign = ["\u2713", "\u2715", "\u231b"][outcome];
        svg.append(make("text", { x: x + 16, y: y + 6, class: `end ${OUTCOMES[outcome]}`, text: sign }));
      }
    });
    svg.append(make("text", { x: wide / 2, y: tall - 6, "text-anchor": "middle", class: "tick", text: say("round") }));
    const last = offers[offers.length - 1];
    const sayEnd = outcome === 0 && last ? say("end_agreed", { who: called(last[1] === seller ? buyer : seller), quantity: last[2], price: last[4], day: last[3] })
      : outcome === 1 ? say("end_broken", { who: called(endedBy) }) : say("end_timed_out");
    const key = (colour, name) => { const sign = make("i"); sign.style.background = `var(--series-${colour})`; return make("span", {}, sign, name); };
    return make("figure", { class: "small-chart" },
      make("figcaption", { text: say("ladder", { seller: called(seller), buyer: called(buyer) }) }), svg,
      make("div", { class: "keys" }, key(0, say("asks", { id: called(seller) })), key(1, say("bids", { id: called(buyer) }))),
      make("p", { class: "axis", text: sayEnd }), make("p", { class: "axis", text: say("ladder_legend") }));
  }

  /** Why the chosen factory did what it did, round by round, where it keeps a decision log. */
  function reasons(told, [, row]) {
    const log = told.agents[String(memory.factory)];
    if (!log) return [make("p", { class: "axis", text: say("no_reasons", { id: called(memory.factory) }) })];
    const other = row[1] === memory.factory ? row[2] : row[1];
    const selling = row[1] === memory.factory ? 1 : 0;
    const mine = log.decisions.filter((d) => d[0] === day && d[1] === other && d[2] === selling);
    const few = (values) => (values ? values.map((v) => (v === null ? "?" : number(v, 3))).join(" / ") : "");
    const rowsOf = mine.map((d) => {
      const [, , , round, op, offer, baseline, alpha, why, clip, residual, chances, worth, left, more] = d;
      const room = left >= 0 ? log.caps[left] : null;
      const cap = room ? room[selling].reduce((a, b) => a + b, 0) : null;
      return make("tr", { "data-round": round, "data-op": op, "data-alpha": alpha, "data-worth": worth ? JSON.stringify(worth) : null, "data-budget": room ? room[2] : null },
        make("th", { scope: "row", class: "number", text: String(round) }),
        make("td", { text: offer ? say("did", { op: say(op), quantity: offer[0], price: offer[2], day: offer[1] }) : say(op), "data-label": say("does") }),
        make("td", { text: why >= 0 ? told.texts[why] : residual ? say("learned") : "", "data-label": say("why") }),
        make("td", { class: "number", text: few(worth), "data-label": say("worth") }),
        make("td", { class: "number", text: few(baseline), "data-label": say("baseline") }),
        make("td", { class: "number", text: few(residual), "data-label": say("residual") }),
        make("td", { class: "number", text: chances ? chances.map((p) => `${Math.round(100 * p)}`).join(" / ") : "", "data-label": say("chances") }),
        make("td", { class: "number", text: alpha === null ? "" : number(alpha, 3), "data-label": say("alpha") }),
        make("td", { class: "number", text: cap === null ? "" : say("room", { units: number(cap), money: money(room[2]) }), "data-label": say("caps") }),
        make("td", { text: [clip >= 0 ? told.texts[clip] : "", more ? Object.entries(more).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ") : ""].filter(Boolean).join("; "),
          "data-label": say("changed") }));
    });
    if (!rowsOf.length) return [make("p", { class: "axis", text: say("nothing_said") })];
    const columns = ["round", "does", "why", "worth", "baseline", "residual", "chances", "alpha", "caps", "changed"];
    return [make("h3", { text: say("reasons", { id: called(memory.factory) }) }), scrolling(say("reasons", { id: called(memory.factory) }),
      make("table", { class: "reasons" }, make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col", text: say(name) })))), make("tbody", {}, ...rowsOf))),
      make("p", { class: "axis", text: say("reasons_legend") })];
  }

  refresh();
});
