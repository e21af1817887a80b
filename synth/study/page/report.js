"use strict";
// Sortable tables: a click on a heading sorts by it, a second click turns the order round. Empty cells stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.sort === undefined ? cell.textContent : cell.dataset.sort === "" ? null : Number(cell.dataset.sort);
    };
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return up ? order : -order;
    });
    body.append(...rows.map(([, row]) => row));
  }));
}

// Light or dark: the reader's system says, until the button does.
const themeButton = document.getElementById("theme");
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const stored = (use) => { try { return use(localStorage); } catch { return null; } }; // pages without storage forget it
function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const dark = (theme || (systemDark.matches ? "dark" : "light")) === "dark";
  themeButton.textContent = dark ? "Light theme" : "Dark theme";
}
applyTheme(stored((storage) => storage.getItem("synth-theme")));
themeButton.addEventListener("click", () => {
  const theme = themeButton.textContent === "Light theme" ? "light" : "dark";
  stored((storage) => storage.setItem("synth-theme", theme));
  applyTheme(theme);
});
systemDark.addEventListener("change", () => applyTheme(document.documentElement.dataset.theme));

const WRONG = ["failed", "disproved", "bound-disproved", "alarm"];
for (const part of document.querySelectorAll("details.runs")) {
  const [filter, onlyFailed] = [part.querySelector(".filter"), part.querySelector(".only-failed")];
  const rows = [...part.querySelector("table").tBodies[0].rows];
  const applyFilter = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word)) && (!onlyFailed.checked || WRONG.includes(row.className));
      row.hidden = !fits;
      shown += fits;
    }
    part.querySelector(".count").textContent = `${shown} of ${rows.length} runs`;
  };
  filter.addEventListener("input", applyFilter);
  onlyFailed.addEventListener("change", applyFilter);
  applyFilter();
}

// Schedules, step by step. places: node → [x, y] in 0..1; moves[step]: [src, dst, item]; held: [item, node] before step 1.
const all = JSON.parse(document.getElementById("animations").textContent);
const stage = document.getElementById("stage");
const [chosen, item, slider, step] = ["instance", "item", "slider", "step"].map((id) => document.getElementById(id));
const SVG = "http://www.w3.org/2000/svg";
function draw(parent, tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
const hue = (index, from = 0) => `--hue: ${((index * 137.508 + from) % 360).toFixed(1)}`;
const tinted = (index, also) => (index < 0 ? { class: `${also} plain` } : { class: `${also} tint`, style: hue(index) });
function arc(a, b, radius, lane) { // bent to the right, so that the two directions of a link and parallel links (lanes) stay apart
  if (a[0] === b[0] && a[1] === b[1]) { // to itself: a loop above the node
    const [side, foot, peak] = [radius * (1.7 + 0.3 * lane), 0.6 * radius, a[1] - radius * (3 + 0.5 * lane)];
    return `M${(a[0] - foot).toFixed(1)},${(a[1] - radius).toFixed(1)} C${(a[0] - side).toFixed(1)},${peak.toFixed(1)} ${(a[0] + side).toFixed(1)},${peak.toFixed(1)} ${(a[0] + foot).toFixed(1)},${(a[1] - radius - 4).toFixed(1)}`;
  }
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const bend = Math.min(0.12 * length, 90) + 12 * lane;
  const from = [a[0] + ux * radius, a[1] + uy * radius];
  const to = [b[0] - ux * (radius + 5), b[1] - uy * (radius + 5)];
  const middle = [(a[0] + b[0]) / 2 - uy * bend, (a[1] + b[1]) / 2 + ux * bend];
  return `M${from[0].toFixed(1)},${from[1].toFixed(1)} Q${middle[0].toFixed(1)},${middle[1].toFixed(1)} ${to[0].toFixed(1)},${to[1].toFixed(1)}`;
}
function counted(pairs) { // "a b" → how often
  const counts = new Map();
  for (const [a, b] of pairs) counts.set(`${a} ${b}`, (counts.get(`${a} ${b}`) || 0) + 1);
  return counts;
}
function useOf(data) { // links and moves between each two nodes, over all steps kept here; null where moves leave the links
  if (data.use === undefined) {
    const links = counted(data.links);
    const moves = counted(data.moves.flat());
    data.use = links.size && [...moves.keys()].every((pair) => links.has(pair)) ? { links, moves } : null;
  }
  return data.use;
}
function inFlight(data, now) { // what set out before this moment and still occupies its arrow
  if (!data.spans.length || now === 0) return [];
  const time = data.moments[now - 1];
  const found = [];
  for (let s = 0; s < now - 1; s++) data.spans[s].forEach(([begin, end], k) => { if (begin <= time && time < end) found.push(data.moves[s][k]); });
  return found;
}
function seconds(value, step) { // in the unit that suits the step, with the digits that it needs
  const [unit, scale] = [["ns", 1e9], ["us", 1e6], ["ms", 1e3], ["s", 1]].find(([, by]) => value * by < 1000) || ["s", 1];
  return `${(value * scale).toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step * scale) - 1e-9))))} ${unit}`;
}
function show() {
  const data = all[chosen.value];
  const now = Number(slider.value);
  const height = Math.max(300, 1000 * data.aspect) + 140;
  stage.setAttribute("viewBox", `0 0 1140 ${height}`);
  stage.replaceChildren();
  const top = Math.min(...data.places.map((place) => place[1]));
  const at = data.places.map(([x, y]) => [70 + 1000 * x, 70 + 1000 * (y - top)]);
  let closest = 400;
  for (let a = 0; a < at.length; a++) for (let b = 0; b < a; b++) closest = Math.min(closest, Math.hypot(at[a][0] - at[b][0], at[a][1] - at[b][1]));
  const small = 0 < stage.clientWidth && stage.clientWidth < 560 ? 1.6 : 1; // larger nodes and names on a phone
  const radius = Math.max(5, Math.min(24 * small, closest * 0.28));
  const moves = now === 0 ? [] : data.moves[now - 1];
  const use = useOf(data);
  const lanes = (seen, a, b) => { const lane = seen.get(`${a} ${b}`) || 0; seen.set(`${a} ${b}`, lane + 1); return lane; };
  const often = (a, b) => {
    if (!use) return "";
    const [many, links] = [use.moves.get(`${a} ${b}`) || 0, use.links.get(`${a} ${b}`)];
    const kept = data.moves.length < data.steps ? "the steps kept here" : "the steps";
    return ` (${many} transfers over ${links === 1 ? "this link" : `these ${links} links`}, ${(100 * many / links / data.moves.length).toFixed(0)} % of ${kept})`;
  };
  let seen = new Map();
  for (const [a, b] of data.links) {
    const link = draw(stage, "path", { class: "link", d: arc(at[a], at[b], radius, lanes(seen, a, b)) });
    draw(link, "title", {}, `${data.names[a]} → ${data.names[b]}${often(a, b)}`);
  }
  const name = (index) => (index < 0 ? "" : data.items[index]);
  const exact = (index) => (index < 0 || !data.exact.length || !data.exact[index] ? name(index) : `${name(index)} (${data.exact[index]})`);
  const marks = draw(stage, "defs", {});
  const made = new Set();
  function arrow(look, [a, b, index]) {
    const id = `head${index}`;
    if (!made.has(id)) {
      made.add(id);
      const marker = draw(marks, "marker", { id, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 16, markerHeight: 16, markerUnits: "userSpaceOnUse", orient: "auto" });
      draw(marker, "path", { d: "M0,0 L8,4 L0,8 z", ...tinted(index, "head") });
    }
    return draw(stage, "path", { d: arc(at[a], at[b], radius, lanes(seen, a, b)), "marker-end": `url(#${id})`, ...tinted(index, look) });
  }
  const wanted = item.value === "" ? null : Number(item.value);
  const holders = new Set();
  const when = [];
  if (wanted !== null) {
    if (data.held.length) for (const [index, node] of data.held) if (index === wanted) holders.add(node);
    data.moves.forEach((group, s) => {
      const its = group.filter((move) => move[2] === wanted);
      if (its.length) when.push(s + 1);
      if (data.held.length && s < now) for (const [, b] of its) holders.add(b);
      seen = new Map();
      if (!data.exact.length && s < now - 1) for (const move of its) arrow("trail", move);
    });
  }
  stage.setAttribute("class", (wanted === null ? "" : "follows") + (data.held.length ? " held" : ""));
  seen = new Map();
  const flying = inFlight(data, now);
  for (const move of flying) draw(arrow("flight", move), "title", {}, `${data.names[move[0]]} → ${data.names[move[1]]}: ${exact(move[2])}, on its way since before`);
  for (const move of moves) {
    const [a, b, index] = move;
    const line = arrow(index === wanted ? "move followed" : "move", move);
    draw(line, "title", {}, `${data.names[a]} → ${data.names[b]}${name(index) ? ": " + exact(index) : ""}${often(a, b)}`);
    if (index >= 0) line.addEventListener("click", () => { item.value = index === wanted ? "" : index; show(); });
  }
  for (const inside of data.boxes) { // a frame around what stands in one box
    const [xs, ys] = [0, 1].map((axis) => inside.map((node) => at[node][axis]));
    const [x, y, more] = [Math.min(...xs), Math.min(...ys), radius + 8];
    stage.prepend(draw(stage, "rect", { class: "box", x: x - more, y: y - more, width: Math.max(...xs) - x + 2 * more, height: Math.max(...ys) - y + 2 * more, rx: 8 }));
  }
  at.forEach(([x, y], node) => {
    const grouped = data.groups.length && !holders.has(node);
    const look = { class: `node${holders.has(node) ? " holds" : ""}${grouped ? " grouped" : ""}` };
    const group = draw(stage, "g", grouped ? { ...look, style: hue(data.groups[node], 40) } : look);
    draw(group, "circle", { cx: x, cy: y, r: radius });
    if (radius >= 9) draw(group, "text", { x, y, "font-size": Math.min(20 * small, radius * (data.names[node].length > 3 ? 0.6 : 0.8)) }, data.names[node]);
    draw(group, "title", {}, `node ${data.names[node]}${data.groups.length ? ", group " + data.groups[node] : ""}`);
  });
  const cut = data.moves.length < data.steps ? ` (the first ${data.moves.length} of ${data.steps} are kept here)` : data.sample ? ` (a sample: ${data.sample} transfers)` : "";
  const busy = use ? [...counted(moves)].reduce((sum, [pair, many]) => sum + Math.min(many, use.links.get(pair)), 0) : 0;
  step.textContent = `step ${now} of ${data.steps}${cut}` + (use && now ? `; ${busy} of ${data.links.length} links ${data.spans.length ? `set out on, ${flying.length} in use since before (thin)` : "used"}` : "");
  document.getElementById("following").textContent = wanted === null ? (data.sizes ? `Sizes: ${data.sizes}.` : "")
    : `${data.exact.length ? "messages of " : ""}${exact(wanted)}: ${when.length === 1 ? "in step" : "in steps"} ${when.join(", ") || "–"}` + (data.held.length ? `; now at ${holders.size} of ${at.length} nodes` : "") + (data.sizes ? `. Sizes: ${data.sizes}.` : ".");
  const first = wanted === null ? moves : [...moves].sort((one, other) => (other[2] === wanted) - (one[2] === wanted));
  const listed = first.slice(0, 60).map(([a, b, index]) => `${data.names[a]} → ${data.names[b]}${name(index) ? ": " + name(index) : ""}`);
  const count = moves.length === 1 ? "1 transfer: " : `${moves.length} transfers: `;
  const heading = now === 0 ? "Before the first step." : (data.titles[now - 1] ? data.titles[now - 1] + ". " : "") + count;
  document.getElementById("transfers").textContent = heading + listed.join(", ") + (moves.length > 60 ? ` … ${moves.length - 60} more` : "");
  stage.setAttribute("aria-label", `${data.title}, step ${now} of ${data.steps}`);
  markTimeline();
}
// The timeline: a row a link (or a rank that sends), a bar a transfer. Across: seconds where the schedule has them, else a column a step,
// whose transfers in one row share its width.
const [timeline, rowsBy, zoom] = ["timeline", "rows", "zoom"].map((id) => document.getElementById(id));
const MOST_ROWS = 200;
let nowAt = () => 0; // where in the timeline a step begins
function drawTimeline() {
  const data = all[chosen.value];
  const byLink = rowsBy.value === "links";
  const names = new Map(); // key of a row → its name
  const bars = [];
  data.moves.forEach((group, s) => {
    for (const [k, [a, b, index]] of group.entries()) {
      const key = byLink ? `${a} ${b}` : `${a}`;
      if (!names.has(key)) names.set(key, byLink ? `${data.names[a]} → ${data.names[b]}` : data.names[a]);
      bars.push([key, s, a, b, index, data.spans.length ? data.spans[s][k] : null]);
    }
  });
  const order = [...names.keys()].sort((one, other) => {
    const [p, q] = [one, other].map((key) => key.split(" ").map(Number));
    return p[0] - q[0] || (p[1] ?? 0) - (q[1] ?? 0);
  }).slice(0, MOST_ROWS);
  const row = new Map(order.map((key, place) => [key, place]));
  const [left, high, head] = [Math.min(180, 16 + 7 * Math.max(1, ...order.map((key) => names.get(key).length))), 16, 22];
  const room = Math.max(280, (timeline.parentElement.clientWidth || 900) - left - 16);
  const column = (room / Math.max(1, data.moves.length)) * Number(zoom.value);
  const [width, height] = [left + column * data.moves.length + 8, head + high * order.length + 8];
  timeline.replaceChildren();
  timeline.setAttribute("viewBox", `0 0 ${width} ${height}`);
  timeline.setAttribute("width", width);
  timeline.setAttribute("height", height);
  const until = data.spans.flat().reduce((most, [, end]) => Math.max(most, end), 0);
  const across = until ? (time) => left + (column * data.moves.length * time) / until : (s) => left + column * s;
  if (until) {
    const least = (until * 70) / (column * data.moves.length); // a tick every 70 pixels or more, at 1, 2 or 5 times a power of ten
    const power = 10 ** Math.floor(Math.log10(least));
    const apart = power * [1, 2, 5, 10].find((by) => power * by >= least);
    for (let k = 0; k * apart <= until; k++) draw(timeline, "text", { class: "tick", x: across(k * apart), y: 14 }, k ? seconds(k * apart, apart) : "0");
  } else {
    const every = Math.max(1, Math.ceil(34 / column));
    for (let s = 0; s < data.moves.length; s += every) draw(timeline, "text", { class: "tick", x: across(s + 0.5), y: 14 }, String(s + 1));
  }
  draw(timeline, "rect", { id: "now", x: left, y: head, width: until ? 3 : column, height: high * order.length });
  nowAt = (s) => across(until ? data.moments[s - 1] : s - 1);
  order.forEach((key, place) => draw(timeline, "text", { class: "row-name", x: left - 6, y: head + high * (place + 0.5) }, names.get(key)));
  const sharing = new Map();
  for (const [key, s] of bars) sharing.set(`${key}/${s}`, (sharing.get(`${key}/${s}`) || 0) + 1);
  const placed = new Map();
  for (const [key, s, a, b, index, span] of bars) {
    if (!row.has(key)) continue;
    const [many, lane] = [sharing.get(`${key}/${s}`), placed.get(`${key}/${s}`) || 0];
    placed.set(`${key}/${s}`, lane + 1);
    const wide = Math.max(0.5, column - 1) / many;
    const from = until ? across(span[0]) : across(s) + wide * lane;
    const long = until ? Math.max(0.6, across(span[1]) - from - 0.4) : wide;
    const bar = draw(timeline, "rect", { x: from.toFixed(2), y: head + high * row.get(key) + 1, width: long.toFixed(2), height: high - 2, "data-item": index, ...tinted(index, "bar") });
    const when = until ? `${seconds(span[0], until / 1e4)} to ${seconds(span[1], until / 1e4)}` : `step ${s + 1}${data.titles[s] ? ": " + data.titles[s] : ""}`;
    draw(bar, "title", {}, `${data.names[a]} → ${data.names[b]}${index < 0 ? "" : ": " + data.items[index]}, ${when}`);
    bar.addEventListener("click", () => { if (index >= 0) item.value = String(index) === item.value ? "" : index; slider.value = s + 1; show(); });
  }
  document.getElementById("timeline-note").textContent = (names.size > order.length ? `The first ${order.length} of ${names.size} rows. ` : "")
    + (until ? "A bar is as long as its transfer occupies the link; the mark is the player's moment. " : "A column is a step. ") + "Click a bar to follow what it carries.";
  markTimeline();
}
function markTimeline() { // where the player is, and what is followed
  const now = timeline.querySelector("#now");
  if (!now) return;
  const s = Number(slider.value);
  now.setAttribute("visibility", s ? "visible" : "hidden");
  if (s) now.setAttribute("x", nowAt(s));
  timeline.classList.toggle("follows", item.value !== "");
  for (const bar of timeline.querySelectorAll(".bar")) bar.classList.toggle("followed", item.value !== "" && bar.dataset.item === item.value);
}
let playing = null;
function play(on) { // a step every 0.7 s, until the last or until somebody else moves
  const button = document.getElementById("play");
  clearInterval(playing);
  playing = on ? setInterval(() => {
    if (Number(slider.value) >= Number(slider.max)) { play(false); return; }
    slider.value = Number(slider.value) + 1;
    show();
  }, 700) : null;
  button.textContent = on ? "Pause" : "Play";
  button.setAttribute("aria-pressed", String(on));
}
const section = document.getElementById("schedules");
function choose() {
  const data = all[chosen.value];
  slider.max = data.moves.length;
  slider.value = Math.min(1, data.moves.length);
  const moved = new Set(data.moves.flat().map((move) => move[2]));
  const known = [...new Set([...data.held.map(([index]) => index), ...moved])].filter((index) => index >= 0).sort((a, b) => a - b);
  document.getElementById("item-label").hidden = known.length === 0;
  item.replaceChildren(new Option("everything", ""), ...known.map((index) => new Option((data.exact.length ? "messages of " : "") + data.items[index], index)));
  document.getElementById("to-row").href = `#row/${data.key}`;
  play(false);
  drawTimeline();
  show();
}
function follow() { // #schedule/family/instance shows that schedule, #row/family/instance the row that links to it
  const [, kind, key] = location.hash.match(/^#(schedule|row)\/(.*)$/) || [];
  const index = all.findIndex((data) => data.key === key);
  if (kind === "schedule" && index >= 0) {
    chosen.value = index;
    choose();
    section.scrollIntoView();
    chosen.focus({ preventScroll: true });
  } else if (kind === "row") {
    const link = [...document.querySelectorAll("td a")].find((one) => one.hash === `#schedule/${key}`);
    if (link) { link.scrollIntoView({ block: "center" }); link.focus({ preventScroll: true }); }
  }
}
if (all.length) {
  const families = new Map();
  all.forEach((data, index) => families.set(data.family, [...(families.get(data.family) || []), new Option(data.title, index)]));
  for (const [family, options] of families) {
    const group = document.createElement("optgroup");
    group.label = family;
    group.append(...options);
    chosen.append(...(families.size > 1 ? [group] : options));
  }
  chosen.addEventListener("change", choose);
  slider.addEventListener("input", show);
  addEventListener("resize", () => { drawTimeline(); show(); });
  for (const control of [rowsBy, zoom]) control.addEventListener("input", drawTimeline);
  document.getElementById("play").addEventListener("click", () => {
    if (playing === null && Number(slider.value) >= Number(slider.max)) slider.value = 0;
    play(playing === null);
  });
  item.addEventListener("change", show);
  const move = (by) => { play(false); slider.value = Number(slider.value) + by; show(); };
  document.getElementById("back").addEventListener("click", () => move(-1));
  document.getElementById("forth").addEventListener("click", () => move(1));
  section.addEventListener("keydown", (event) => {
    if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  choose();
  follow();
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => { // a second click on a link changes no hash
    if (event.target.closest("a")?.getAttribute("href") === location.hash) follow();
  });
} else {
  section.hidden = true;
  document.getElementById("to-schedules").hidden = true;
}
