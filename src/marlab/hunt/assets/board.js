// The hunt on a board: replays with beliefs, expectations and searches, and the seat of a human player.
"use strict";

{
  const ARROWS = ["\u2191", "\u2193", "\u2190", "\u2192", "\u00b7", "\u2605", "\u25cf"];
  const COMPASS = [[0, -1], [0, 1], [-1, 0], [1, 0]];
  const SEATS = [0, 1, 2, 3, 5, 4, 6, 7]; // series of the players' colours

  const colourOf = (seat) => `var(--series-${SEATS[seat % SEATS.length]})`;

  /** A token: circle, square, diamond or triangle, so that colour is not needed to tell players apart. */
  function token(ctx, x, y, r, seat, colours) {
    ctx.beginPath();
    const corners = [null, 4, 4, 3][seat % 4];
    if (corners === null) ctx.arc(x, y, r, 0, 2 * Math.PI);
    else {
      const turn = [0, Math.PI / 4, 0, -Math.PI / 2][seat % 4];
      for (let k = 0; k < corners; k += 1) {
        const angle = turn + (k / corners) * 2 * Math.PI;
        ctx.lineTo(x + Math.cos(angle) * r * 1.2, y + Math.sin(angle) * r * 1.2);
      }
      ctx.closePath();
    }
    ctx.fillStyle = colours.series[SEATS[seat % SEATS.length]];
    ctx.fill();
    ctx.strokeStyle = colours.paper;
    ctx.lineWidth = Math.max(1.5, r * 0.14);
    ctx.stroke();
    ctx.fillStyle = colours.paper;
    ctx.font = `700 ${r * 1.05}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(String(seat + 1), x, y + (corners === 3 ? r * 0.12 : 0));
  }

  function prey(ctx, x, y, r, kind, colours) {
    const fur = kind === 0 ? (colours.dark ? "#c98f56" : "#8a5a2b") : (colours.dark ? "#b9b5af" : "#7c7873");
    ctx.fillStyle = fur;
    ctx.strokeStyle = fur;
    ctx.lineWidth = r * 0.16;
    ctx.beginPath();
    ctx.ellipse(x, y + r * 0.2, r * 0.72, r * 0.55, 0, 0, 2 * Math.PI);
    ctx.fill();
    for (const side of [-1, 1]) {
      ctx.beginPath();
      if (kind === 0) { // antlers
        ctx.moveTo(x + side * r * 0.25, y - r * 0.2);
        ctx.lineTo(x + side * r * 0.55, y - r * 0.95);
        ctx.moveTo(x + side * r * 0.4, y - r * 0.55);
        ctx.lineTo(x + side * r * 0.85, y - r * 0.75);
        ctx.stroke();
      } else { // ears
        ctx.ellipse(x + side * r * 0.28, y - r * 0.55, r * 0.15, r * 0.45, side * 0.2, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
  }

  function arrow(ctx, x, y, [dx, dy], length, colour) {
    ctx.fillStyle = colour;
    ctx.beginPath();
    ctx.moveTo(x + dx * length, y + dy * length);
    ctx.lineTo(x - dx * length * 0.6 - dy * length * 0.8, y - dy * length * 0.6 + dx * length * 0.8);
    ctx.lineTo(x - dx * length * 0.6 + dy * length * 0.8, y - dy * length * 0.6 - dx * length * 0.8);
    ctx.fill();
  }

  /** A scene as the Python side tells it; `actions`: what everybody is about to do; `lines`: planned lines of play. */
  function board(ctx, size, scene, colours, actions = [], lines = []) {
    const cell = Math.min(size.width / scene.width, size.height / scene.height);
    const [left, top] = [(size.width - cell * scene.width) / 2, (size.height - cell * scene.height) / 2];
    const at = (place) => [left + ((place % scene.width) + 0.5) * cell, top + (Math.floor(place / scene.width) + 0.5) * cell];
    ctx.fillStyle = colours.shade;
    ctx.fillRect(left, top, cell * scene.width, cell * scene.height);
    ctx.strokeStyle = colours.line;
    ctx.lineWidth = 1;
    for (let k = 0; k <= scene.width; k += 1) { ctx.beginPath(); ctx.moveTo(left + k * cell, top); ctx.lineTo(left + k * cell, top + cell * scene.height); ctx.stroke(); }
    for (let k = 0; k <= scene.height; k += 1) { ctx.beginPath(); ctx.moveTo(left, top + k * cell); ctx.lineTo(left + cell * scene.width, top + k * cell); ctx.stroke(); }
    ctx.fillStyle = colours.soft;
    for (const block of scene.blocks) { const [x, y] = at(block); ctx.fillRect(x - cell * 0.46, y - cell * 0.46, cell * 0.92, cell * 0.92); }
    for (const [place, , pay] of scene.captures) {
      const [x, y] = at(place);
      ctx.fillStyle = colours.series[4];
      ctx.globalAlpha = 0.35;
      ctx.fillRect(x - cell / 2, y - cell / 2, cell, cell);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colours.ink;
      ctx.font = `700 ${cell * 0.22}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(pay, x, y);
    }
    for (const [place, kind] of scene.prey) { const [x, y] = at(place); prey(ctx, x - cell * 0.24, y - cell * 0.22, cell * 0.2, kind, colours); }
    const crowd = new Map();
    scene.players.forEach((place, seat) => { if (place !== null) crowd.set(place, [...(crowd.get(place) || []), seat]); });
    for (const [place, seats] of crowd) seats.forEach((seat, k) => {
      const [x, y] = at(place);
      const spread = seats.length > 1 ? (k / (seats.length - 1) - 0.5) * cell * 0.5 : 0;
      const [px, py] = [x + cell * 0.08 + spread, y + cell * (seats.length > 1 ? 0.24 : 0.14)];
      const line = lines[seat] || [];
      ctx.strokeStyle = colours.series[SEATS[seat % SEATS.length]];
      ctx.globalAlpha = 0.7;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(px, py);
      let [cx, cy] = [px, py];
      for (const step of line) { if (step > 3) break; cx += COMPASS[step][0] * cell; cy += COMPASS[step][1] * cell; ctx.lineTo(cx, cy); }
      ctx.stroke();
      ctx.globalAlpha = 1;
      token(ctx, px, py, cell * (seats.length > 2 ? 0.13 : 0.17), seat, colours);
      const action = actions[seat];
      if (action !== null && action !== undefined && action < 4) arrow(ctx, px + COMPASS[action][0] * cell * 0.3, py + COMPASS[action][1] * cell * 0.3, COMPASS[action], cell * 0.08, colours.series[SEATS[seat % SEATS.length]]);
    });
  }

  /** A bar from "wants the stag" over "follows" to "wants a hare". */
  function beliefBar(tools, opinion, say, names) {
    const { make } = tools;
    const share = Math.round(100 * opinion.stag);
    const fill = make("i");
    fill.style.width = `${share}%`;
    const follows = Math.round(100 * (opinion.follows || 0));
    const after = make("i", { class: "follows" });
    after.style.width = `${follows}%`;
    const said = follows ? `${say("stag_share", { share })}, ${say("follows", { share: follows })}` : say("stag_share", { share });
    const expected = opinion.expected.map((p, a) => [p, a]).sort((x, y) => y[0] - x[0]).filter(([p]) => p >= 0.05).slice(0, 3);
    return make("div", { class: "opinion", "data-about": opinion.about, "data-stag": opinion.stag },
      make("span", { class: "about", text: `${opinion.about + 1} ${names[opinion.about]}` }),
      make("span", { class: "belief", role: "img", "aria-label": said, title: said }, fill, after),
      make("span", { class: "share", text: `${share} %` }),
      make("span", { class: "moves" }, ...expected.map(([p, a]) => make("span", { text: `${ARROWS[a]} ${Math.round(100 * p)}%`, title: say(`action_${a}`) }))));
  }

  function choice(tools, thought, action, say) {
    const { make, number } = tools;
    if (!thought.policy) return [];
    const rows = thought.policy.map((p, a) => [p, a]).filter(([p, a]) => p >= 0.005 || a === action || (thought.visits && thought.visits[a] > 0));
    const columns = ["action", "chance", ...(thought.visits ? ["visits", "value"] : [])];
    return [make("table", { class: "choice" },
      make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col", text: say(name) })))),
      make("tbody", {}, ...rows.map(([p, a]) => {
        const fill = make("i");
        fill.style.width = `${Math.round(100 * p)}%`;
        return make("tr", { class: a === action ? "picked" : null, "data-action": a, "data-chance": p, "data-visits": thought.visits ? thought.visits[a] : null, "data-q": thought.q ? thought.q[a] : null },
          make("th", { scope: "row", text: `${ARROWS[a]} ${say(`action_${a}`)}` }),
          make("td", { class: "bar-cell" }, make("span", { class: "chance" }, fill), ` ${Math.round(100 * p)} %`),
          ...(thought.visits ? [make("td", { class: "number", text: number(thought.visits[a]) }), make("td", { class: "number", text: number(thought.q[a], 3) })] : []));
      })))];
  }

  function cards(tools, episode, frame, say) {
    const { make, number } = tools;
    const moment = episode.frames[frame];
    return episode.players.map((name, seat) => {
      const thought = moment.thoughts[seat];
      const action = moment.action[seat];
      const mark = make("b", { class: "seat-mark", text: String(seat + 1) });
      mark.style.background = colourOf(seat);
      const doing = action === null ? (moment.scene.got[seat] ? say(`left_${moment.scene.got[seat]}`) : say("over")) : say("does", { action: `${ARROWS[action]} ${say(`action_${action}`)}` });
      return make("article", { class: "mind", "data-seat": seat, "data-action": action, "data-earned": moment.earned[seat] },
        make("header", {}, mark, make("strong", { text: name }), make("span", { text: doing }), make("span", { class: "earned", text: say("earned", { earned: number(moment.earned[seat], 3) }) })),
        ...(thought ? [
          make("p", { class: "axis", text: say(thought.source === "own models" ? "own_models" : "observer") }),
          ...thought.opinions.map((opinion) => beliefBar(tools, opinion, say, episode.players)),
          ...choice(tools, thought, action, say),
          ...(thought.line.length ? [make("p", { class: "axis", text: say("line", { line: thought.line.map((a) => ARROWS[a]).join(" "), value: number(thought.value, 3) }) })] : []),
        ] : []));
    });
  }

  notebook.panel("hunt.board", (element, data, tools) => {
    const { make } = tools;
    const say = (key, values) => tools.t(`hunt.board.${key}`, values);
    const scene = data.frames[0].scene;
    const left = make("div", { class: "board-side" });
    const right = make("div", { class: "minds" });
    element.append(make("div", { class: "board-pair" }, left, right), make("p", { class: "axis", text: say("legend") }));
    notebook.player(left, { length: data.frames.length, fps: 1, width: scene.width, height: scene.height, most: 560, label: say("title"),
      draw: (ctx, frame, size) => {
        const moment = data.frames[frame];
        board(ctx, size, moment.scene, tools.colours(), moment.action, moment.thoughts.map((thought) => (thought ? thought.line : [])));
      },
      changed: (frame) => {
        right.dataset.step = String(data.frames[frame].scene.t);
        right.replaceChildren(...cards(tools, data, frame, say));
      } }, tools);
  });

  // --- the human seat ----------------------------------------------------------------------------------------------------

  notebook.panel("hunt.seat", (element, data, tools) => {
    const { make, number } = tools;
    const say = (key, values) => tools.t(`hunt.seat.${key}`, values);
    const told = (key, values) => tools.t(`hunt.board.${key}`, values);
    if (!tools.served) { element.append(make("p", { text: say("needs_server") }), make("pre", {}, make("code", { text: "marlab report --serve" }))); return; }
    const memory = tools.memory;
    const team = make("select", { "aria-label": say("team") }, ...data.teams.map((name) => make("option", { value: name, text: say(`team_${name}`) })));
    const seat = make("select", { "aria-label": say("seat") }, ...[1, 2, 3, 4].map((n) => make("option", { value: n, text: String(n) })));
    const start = make("button", { type: "button", class: "main", text: say("start"), onclick: () => ask({ do: "start", team: team.value, seat: Number(seat.value) }) });
    const trouble = make("p", { class: "fault", role: "alert" });
    const canvas = make("canvas", { role: "img", tabindex: "0", "aria-label": told("title") });
    const status = make("p", { class: "seat-status", "aria-live": "polite" });
    const pad = make("div", { class: "pad", role: "group", "aria-label": say("moves") });
    const minds = make("div", { class: "minds" });
    const table = make("div", { class: "board-pair", hidden: true }, make("div", { class: "board-side" }, canvas, status, pad), minds);
    element.append(make("div", { class: "chooser" }, make("label", {}, `${say("team")} `, team), make("label", {}, `${say("seat")} `, seat), start), trouble, table);
    let busy = false;

    /** The game of this tab, so that a page that is opened again goes on with it. */
    function keep(id) { try { sessionStorage.setItem("marlab.hunt.seat", id); } catch { /* private windows have no store */ } }
    function kept() { try { return sessionStorage.getItem("marlab.hunt.seat"); } catch { return null; } }

    async function ask(message) {
      if (busy) return;
      busy = true;
      trouble.textContent = "";
      element.dataset.busy = "yes";
      status.textContent = say("thinking");
      try {
        memory.game = await tools.act("seat", message);
        keep(memory.game.id);
        show();
        if (!memory.game.over) canvas.focus({ preventScroll: true }); // keys work at once, also after a button that is gone now
      } catch (error) {
        trouble.textContent = error.message;
        if (memory.game) show();
      }
      busy = false;
      element.dataset.busy = "no";
    }

    const move = (action) => ask({ do: "move", id: memory.game.id, step: memory.game.step, action });

    function redraw() {
      if (!memory.game) return;
      const game = memory.game;
      const wide = Math.min(canvas.parentElement.clientWidth || 320, 520);
      const tall = Math.round((wide * game.scene.height) / game.scene.width);
      const sharp = window.devicePixelRatio || 1;
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${tall}px`;
      canvas.width = wide * sharp;
      canvas.height = tall * sharp;
      const ctx = canvas.getContext("2d");
      ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
      board(ctx, { width: wide, height: tall }, game.scene, tools.colours());
    }

    function show() {
      const game = memory.game;
      table.hidden = false;
      table.dataset.step = String(game.step);
      table.dataset.over = String(game.over);
      table.dataset.episode = String(game.episode);
      table.dataset.earned = game.earned.join(" ");
      redraw();
      const mine = number(game.earned[game.seat], 3);
      status.textContent = game.over ? say("over", { earned: mine, all: game.earned.map((e) => number(e, 3)).join(" / "), file: game.file })
        : say("your_turn", { seat: game.seat + 1, step: game.scene.t, last: game.scene.final_time, earned: mine });
      pad.replaceChildren(...(game.over
        ? [make("button", { type: "button", class: "main", text: say("again"), "data-do": "again", onclick: () => ask({ do: "again", id: game.id }) })]
        : data.actions.map((name, a) => make("button", { type: "button", "data-action": name, disabled: !game.legal.includes(name), text: `${ARROWS[a]} ${told(`action_${a}`)}`, onclick: () => move(name) }))));
      minds.replaceChildren(...game.players.flatMap((name, other) => {
        if (other === game.seat) return [];
        const opinion = (game.opinions[other] || []).find((o) => o.about === game.seat);
        const mark = make("b", { class: "seat-mark", text: String(other + 1) });
        mark.style.background = colourOf(other);
        const got = game.scene.got[other];
        return [make("article", { class: "mind", "data-seat": other, "data-stag": opinion ? opinion.stag : null },
          make("header", {}, mark, make("strong", { text: name }), make("span", { text: got ? told(`left_${got}`) : "" }), make("span", { class: "earned", text: told("earned", { earned: number(game.earned[other], 3) }) })),
          ...(opinion ? [make("p", { class: "axis", text: say(game.sources[other] === "own models" ? "thinks" : "observer") }), beliefBar(tools, opinion, told, game.players)] : []))];
      }), make("p", { class: "axis", text: say("legend") }));
    }

    canvas.addEventListener("keydown", (event) => {
      const keys = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", " ": "stay", s: "hunt stag", h: "hunt hare" };
      const action = keys[event.key];
      if (!action || !memory.game || memory.game.over || !memory.game.legal.includes(action)) return;
      event.preventDefault();
      move(action);
    });
    tools.onTheme(redraw);
    notebook.follow(element, redraw);
    if (memory.game) show();
    else if (kept()) tools.act("seat", { do: "look", id: kept() }).then((game) => { memory.game = game; show(); }, () => keep(""));
  });
}
