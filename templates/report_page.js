"use strict";

const STATES = [
  { key: "used", label: "used, compiled", short: "used" },
  { key: "wanted", label: "used, not compiled", short: "used, not compiled" },
  { key: "cached", label: "compiled, not used", short: "compiled" },
  { key: "reachable", label: "reachable, not compiled", short: "not compiled" },
  { key: "unreached", label: "not reached by any call", short: "not reached" },
];
const [USED, WANTED, CACHED, REACHABLE, UNREACHED] = STATES.keys();
const SHADES = 5;
const PAGE = 200;
const TIMES = [5, 10, 15, 20, 30, 45, 60, 120, 300];
const NONE = "–";

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children);
  return made;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; unit++) count /= 1024;
  return `${unit && count < 10 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 && seconds % 1 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// The marks differ in shape as well as in colour: used is a diamond, compiled a full square, what is not compiled an outline.
function drawMark(context, state, x, y, size, fill) {
  const middle = size / 2;
  context.fillStyle = context.strokeStyle = fill;
  context.lineWidth = 1;
  context.beginPath();
  if (state === USED || state === WANTED) {
    context.moveTo(x + middle, y);
    context.lineTo(x + size, y + middle);
    context.lineTo(x + middle, y + size);
    context.lineTo(x, y + middle);
    context.closePath();
  } else if (state === UNREACHED) context.rect(x + middle - 0.75, y + middle - 0.75, 1.5, 1.5);
  else context.rect(x + 0.5, y + 0.5, size - 1, size - 1);
  if (state !== REACHABLE && state !== WANTED) context.fill();
  if (state !== UNREACHED) context.stroke();
}

function markIcon(state) {
  const shapes = {
    used: '<path d="M6 0l6 6-6 6-6-6z" fill="C"/>',
    wanted: '<path d="M6 1l5 5-5 5-5-5z" fill="none" stroke="C" stroke-width="1.5"/>',
    cached: '<rect x="1" y="1" width="10" height="10" fill="C"/>',
    reachable: '<rect x="1.5" y="1.5" width="9" height="9" fill="none" stroke="C"/>',
    unreached: '<rect x="4.5" y="4.5" width="3" height="3" fill="C"/>',
  };
  const key = STATES[state].key;
  const box = element("span");
  box.innerHTML = `<svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">${shapes[key].replaceAll("C", `var(--${key})`)}</svg>`;
  return box.firstChild;
}

class Kernels {
  constructor(data) {
    const { kernels } = data;
    Object.assign(this, { data, blob: kernels.blob, size: kernels.size, seconds: kernels.seconds });
    this.count = this.blob.length;
    this.traits = data.traits.map(({ name, values, index }) => ({ name, values, of: this.blob.map((blob) => index[blob]) }));
    this.traits.push({ name: "gpu", values: data.arches, of: kernels.arch });
    this.traits.push({ name: "library", values: data.libraries.map((library) => library.name), of: kernels.library });
    this.byName = new Map(this.traits.map((trait) => [trait.name, trait]));
    this.axes = this.traits.filter((trait) => trait.values.length > 1);
    this.names = data.blobs.map((name) => name.toLowerCase());
    this.labels = STATES.map(({ label }) => label);
    this.state = this.blob.map((_, kernel) => this.stateOf(kernel));
  }

  stateOf(kernel) {
    const blob = this.blob[kernel];
    const compiled = this.size[kernel] >= 0;
    if (this.data.used?.[blob]) return compiled ? USED : WANTED;
    if (compiled) return CACHED;
    return this.data.unreached[blob] ? UNREACHED : REACHABLE;
  }

  value(trait, kernel) {
    return trait.values[trait.of[kernel]];
  }

  // A word of the search: a predicate over kernels, or the name of a trait that does not exist.
  test(word) {
    const [name, ...rest] = word.split("=");
    if (!rest.length) return (kernel) => this.names[this.blob[kernel]].includes(word);
    const trait = this.byName.get(name);
    if (!trait) return name;
    const wanted = rest.join("=");
    const fits = trait.values.map((value) => value.toLowerCase() === wanted || value.toLowerCase().split(", ").includes(wanted));
    return (kernel) => fits[trait.of[kernel]];
  }
}

class Shading {
  constructor(kernels, what) {
    this.what = what;
    this.values = what === "size" ? kernels.size : kernels.seconds;
    const known = this.values.filter((value) => value >= 0).sort((a, b) => a - b);
    this.limits = Array.from({ length: SHADES - 1 }, (_, i) => known[Math.floor(((i + 1) * known.length) / SHADES)]);
    this.text = what === "size" ? bytes : duration;
  }

  step(kernel) {
    const value = this.values[kernel];
    return value < 0 ? -1 : this.limits.filter((limit) => value >= limit).length;
  }

  legend() {
    const [first, last] = [this.limits[0], this.limits[SHADES - 2]];
    const texts = [`below ${this.text(first)}`];
    for (let i = 1; i < SHADES - 1; i++) texts.push(`from ${this.text(this.limits[i - 1])}`);
    texts.push(`${this.text(last)} and more`);
    return texts.map((text, i) => element("span", {}, element("i", { style: `background: var(--shade${i})` }), text));
  }
}

class Axis {
  constructor(traits, kernels, shown) {
    this.traits = traits;
    const keys = new Map();
    for (const kernel of shown) {
      const key = this.key(kernel);
      if (!keys.has(key)) keys.set(key, traits.map((trait) => trait.of[kernel]));
    }
    this.places = [...keys].map(([key, indices]) => ({ key, indices }));
    this.places.sort((a, b) => a.indices.reduce((order, value, i) => order || value - b.indices[i], 0));
    this.places.forEach((place, i) => (place.number = i));
    this.numbers = new Map(this.places.map((place) => [place.key, place.number]));
  }

  key(kernel) {
    return this.traits.map((trait) => trait.of[kernel]).join();
  }

  place(kernel) {
    return this.numbers.get(this.key(kernel));
  }

  // Runs of places that share their values up to `level`.
  groups(level) {
    const found = [];
    for (const place of this.places) {
      const key = place.indices.slice(0, level + 1).join();
      if (found.length && found[found.length - 1].key === key) found[found.length - 1].length++;
      else found.push({ key, first: place.number, length: 1, trait: this.traits[level], index: place.indices[level] });
    }
    return found;
  }

  name(place) {
    return this.traits.map((trait, i) => `${trait.name} ${trait.values[place.indices[i]]}`).join(", ");
  }
}

class Page {
  constructor(kernels) {
    this.kernels = kernels;
    this.hiddenStates = new Set();
    this.observer = new IntersectionObserver((items) => this.drawVisible(items), { rootMargin: "300px" });
    this.header();
    this.stateLegend();
    this.controls();
    this.spreads();
    this.listen();
    this.update();
  }

  header() {
    const { data, count, size } = this.kernels;
    document.title = byId("title").textContent = data.title;
    const facts = [`${plural(data.blobs.length, "blob")}, ${plural(count, "kernel")} for ${data.arches.join(", ")}`];
    for (const library of data.libraries) {
      if (library.size < 0) continue;
      const share = library.manifest < 0 ? "" : `, ${Math.round((100 * library.manifest) / library.size)} % of it manifest`;
      facts.push(`${library.name} has ${bytes(library.size)}${share}`);
    }
    const cached = size.filter((value) => value >= 0);
    if (cached.length) facts.push(`compiled kernels take ${bytes(cached.reduce((a, b) => a + b))}`);
    byId("facts").textContent = facts.join(" · ");
  }

  stateLegend() {
    const counts = STATES.map(() => 0);
    for (const state of this.kernels.state) counts[state]++;
    counts.forEach((count, state) => {
      if (!count) return;
      const { key } = STATES[state];
      byId("bar").append(element("span", { style: `flex: ${count} 0 0; ${this.barStyle(state, key)}` }));
      const box = element("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => this.toggle(state, box.checked));
      const share = (100 * count) / this.kernels.count;
      const percent = element("small", {}, share < 0.1 ? "< 0.1 %" : `${share.toFixed(share < 10 ? 1 : 0)} %`);
      const name = this.kernels.labels[state];
      byId("states").append(element("label", {}, box, markIcon(state), name, element("b", {}, number(count)), percent));
    });
  }

  barStyle(state, key) {
    if (state === UNREACHED) return `border-bottom: 2px dotted var(--${key})`;
    return state === REACHABLE || state === WANTED ? `border: 1px solid var(--${key})` : `background: var(--${key})`;
  }

  toggle(state, on) {
    if (on) this.hiddenStates.delete(state);
    else this.hiddenStates.add(state);
    this.update();
  }

  controls() {
    const { axes, byName } = this.kernels;
    const names = axes.map((axis) => axis.name);
    const preferred = ["direction", "hdim", "gpu", "dtype", "mask", "arch", ...names].filter((name) => names.includes(name));
    const wanted = [...new Set(preferred)];
    const chosen = names.includes("direction") ? wanted : [wanted[0], "", ...wanted.slice(1)];
    ["row1", "row2", "column1", "column2"].forEach((id, i) => {
      byId(id).append(element("option", { value: "" }, NONE), ...axes.map(({ name }) => element("option", { value: name }, name)));
      byId(id).value = byName.has(chosen[i]) ? chosen[i] : "";
    });
    const { seconds, size } = this.kernels;
    byId("shade").append(element("option", { value: "" }, "state"));
    if (size.some((value) => value >= 0)) byId("shade").append(element("option", { value: "size" }, "size"));
    if (seconds.some((value) => value >= 0)) byId("shade").append(element("option", { value: "seconds" }, "compile time"));
  }

  update() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const tests = words.map((word) => this.kernels.test(word));
    this.unknown = tests.filter((test) => typeof test === "string");
    const state = this.kernels.state;
    this.shown = [];
    if (!this.unknown.length)
      for (let kernel = 0; kernel < this.kernels.count; kernel++)
        if (!this.hiddenStates.has(state[kernel]) && tests.every((test) => test(kernel))) this.shown.push(kernel);
    const what = byId("shade").value;
    this.shading = what ? new Shading(this.kernels, what) : null;
    byId("shades").hidden = !what;
    if (what) byId("shades").replaceChildren(...this.shading.legend());
    this.grid();
    this.tell();
  }

  tell() {
    const counts = STATES.map(() => 0);
    for (const kernel of this.shown) counts[this.kernels.state[kernel]]++;
    const parts = this.kernels.labels.map((label, state) => (counts[state] ? `${number(counts[state])} ${label}` : "")).filter(Boolean);
    const text = `${number(this.shown.length)} of ${plural(this.kernels.count, "kernel")} shown${parts.length ? ": " : ""}${parts.join("; ")}.`;
    const known = this.kernels.traits.map((trait) => trait.name).join(", ");
    byId("summary").textContent = this.unknown.length ? `No trait is called ${this.unknown[0]}. There are: ${known}.` : text;
  }

  axis(...ids) {
    const names = [...new Set(ids.map((id) => byId(id).value).filter(Boolean))];
    return new Axis(names.map((name) => this.kernels.byName.get(name)), this.kernels, this.shown);
  }

  grid() {
    this.rows = this.axis("row1", "row2");
    this.columns = this.axis("column1", "column2");
    this.cells = this.rows.places.map(() => this.columns.places.map(() => []));
    for (const kernel of this.shown) this.cells[this.rows.place(kernel)][this.columns.place(kernel)].push(kernel);
    const { state } = this.kernels;
    for (const row of this.cells) for (const cell of row) cell.sort((a, b) => state[a] - state[b] || a - b);
    this.observer.disconnect();
    this.layout();
    byId("grid").replaceChildren(this.head(), this.body());
    this.current = null;
    this.focusCell(0, 0, false);
  }

  // All cells are equally wide, as wide as the page allows.
  layout() {
    const largest = Math.max(1, ...this.cells.map((row) => Math.max(0, ...row.map((cell) => cell.length))));
    this.pitch = largest > 700 ? 5 : largest > 200 ? 6 : 9;
    const room = (byId("scroll").clientWidth - 90 * Math.max(1, this.rows.traits.length)) / Math.max(1, this.columns.places.length) - 20;
    const fitting = Math.floor(room / this.pitch);
    const square = Math.ceil(Math.sqrt(largest));
    this.perLine = Math.max(square, Math.min(fitting, 2 * square, largest));
  }

  head() {
    const head = element("thead");
    const levels = Math.max(1, this.columns.traits.length);
    for (let level = 0; level < levels; level++) {
      const row = element("tr");
      if (level === 0) row.append(element("td", { rowspan: levels, colspan: Math.max(1, this.rows.traits.length) }));
      if (!this.columns.traits.length) row.append(element("th", { scope: "col" }, "all"));
      else
        for (const group of this.columns.groups(level))
          row.append(this.axisHeader(group, { colspan: group.length, scope: group.length > 1 ? "colgroup" : "col" }));
      head.append(row);
    }
    return head;
  }

  axisHeader({ trait, index }, attributes) {
    return element("th", attributes, element("span", { class: "axis" }, `${trait.name} `), trait.values[index]);
  }

  body() {
    const body = element("tbody");
    const levels = this.rows.traits.map((_, level) => this.rows.groups(level));
    for (const { number: place } of this.rows.places) {
      const row = element("tr");
      if (!levels.length) row.append(element("th", { scope: "row" }, "all"));
      levels.forEach((groups, level) => {
        const group = groups.find(({ first }) => first === place);
        const inner = level > 0 && "inner";
        if (group) row.append(this.axisHeader(group, { class: inner, rowspan: group.length, scope: group.length > 1 ? "rowgroup" : "row" }));
      });
      this.columns.places.forEach((_, column) => row.append(this.cell(place, column)));
      body.append(row);
    }
    return body;
  }

  cell(row, column) {
    const kernels = this.cells[row][column];
    const made = element("td", { tabindex: -1, "data-row": row, "data-column": column });
    if (!kernels.length) {
      made.className = "empty";
      made.append(element("span", { "aria-hidden": "true" }, NONE), element("span", { class: "hidden" }, "none"));
      return made;
    }
    made.append(this.cellText(kernels));
    const lines = Math.ceil(kernels.length / this.perLine);
    const canvas = element("canvas", { "aria-hidden": "true" });
    canvas.style.width = `${this.perLine * this.pitch}px`;
    canvas.style.height = `${lines * this.pitch}px`;
    made.append(canvas);
    this.observer.observe(canvas);
    return made;
  }

  cellText(kernels) {
    const counts = STATES.map(() => 0);
    for (const kernel of kernels) counts[this.kernels.state[kernel]]++;
    const text = element("small", {}, element("b", {}, number(kernels.length)), element("span", { class: "hidden" }, " kernels"));
    for (const state of [USED, WANTED, CACHED])
      if (counts[state])
        text.append(" ", markIcon(state), ` ${number(counts[state])}`, element("span", { class: "hidden" }, ` ${STATES[state].short}`));
    return text;
  }

  drawVisible(items) {
    for (const { isIntersecting, target } of items)
      if (isIntersecting) {
        this.observer.unobserve(target);
        this.draw(target);
      }
  }

  draw(canvas) {
    const { row, column } = canvas.parentElement.dataset;
    const kernels = this.cells[row][column];
    const scale = window.devicePixelRatio || 1;
    const lines = Math.ceil(kernels.length / this.perLine);
    canvas.width = Math.ceil(this.perLine * this.pitch * scale);
    canvas.height = Math.ceil(lines * this.pitch * scale);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const colours = STATES.map(({ key }) => colour(key));
    const shades = Array.from({ length: SHADES }, (_, i) => colour(`shade${i}`));
    kernels.forEach((kernel, i) => {
      const x = (i % this.perLine) * this.pitch;
      const y = Math.floor(i / this.perLine) * this.pitch;
      const state = this.kernels.state[kernel];
      const shade = this.shading ? this.shading.step(kernel) : -1;
      drawMark(context, state, x, y, this.pitch - 1, shade < 0 ? colours[state] : shades[shade]);
    });
  }

  cellAt(row, column) {
    return byId("grid").querySelector(`td[data-row="${row}"][data-column="${column}"]`);
  }

  focusCell(row, column, focus = true) {
    const next = this.cellAt(row, column);
    if (!next) return;
    if (this.current) this.current.tabIndex = -1;
    next.tabIndex = 0;
    this.current = next;
    if (focus) next.focus();
  }

  move(event) {
    if (!event.target.dataset.row) return;
    const [row, column] = [Number(event.target.dataset.row), Number(event.target.dataset.column)];
    const [lastRow, lastColumn] = [this.rows.places.length - 1, this.columns.places.length - 1];
    const targets = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [Math.max(0, row - 5), column],
      PageDown: [Math.min(lastRow, row + 5), column],
      Home: event.ctrlKey ? [0, 0] : [row, 0],
      End: event.ctrlKey ? [lastRow, lastColumn] : [row, lastColumn],
    };
    if (event.key === "Enter" || event.key === " ") this.open(event.target);
    else if (targets[event.key]) this.focusCell(...targets[event.key]);
    else return;
    event.preventDefault();
  }

  open(cell) {
    const { row, column } = cell.dataset;
    const kernels = this.cells[row][column];
    if (!kernels.length) return;
    this.opener?.removeAttribute("aria-selected");
    cell.setAttribute("aria-selected", "true");
    this.opener = cell;
    this.listed = kernels;
    const names = [this.rows.name(this.rows.places[row]), this.columns.name(this.columns.places[column])].filter(Boolean);
    byId("detail-title").textContent = `${plural(kernels.length, "kernel")}${names.length ? ": " : ""}${names.join(", ")}`;
    const { axes } = this.kernels;
    this.differing = axes.filter(({ of }) => kernels.some((kernel) => of[kernel] !== of[kernels[0]]));
    const common = axes.filter((trait) => !this.differing.includes(trait) && this.kernels.value(trait, kernels[0]) !== NONE);
    const texts = common.map((trait) => `${trait.name}=${this.kernels.value(trait, kernels[0])}`);
    byId("detail-common").textContent = texts.length ? `All have ${texts.join(" ")}` : "";
    this.list();
    byId("detail").hidden = false;
    byId("detail-title").focus();
    byId("detail").scrollIntoView({ block: "nearest" });
  }

  list() {
    const titles = ["state", "size", "compile time", ...this.differing.map(({ name }) => name), "blob"];
    const numeric = (title) => (title === "size" || title === "compile time") && "number";
    const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col", class: numeric(title) }, title)));
    byId("list").replaceChildren(element("thead", {}, head), element("tbody"));
    this.listMore();
  }

  listMore() {
    const body = byId("list").tBodies[0];
    const done = body.rows.length;
    for (const kernel of this.listed.slice(done, done + PAGE)) body.append(this.listRow(kernel));
    const left = this.listed.length - body.rows.length;
    byId("more").hidden = !left;
    byId("more").textContent = `Show ${number(Math.min(PAGE, left))} more of ${number(left)}`;
  }

  listRow(kernel) {
    const { state, size, seconds, data, blob } = this.kernels;
    const known = (value, text) => (value < 0 ? NONE : text(value));
    return element(
      "tr",
      {},
      element("td", {}, markIcon(state[kernel]), STATES[state[kernel]].short),
      element("td", { class: "number" }, known(size[kernel], bytes)),
      element("td", { class: "number" }, known(seconds[kernel], duration)),
      ...this.differing.map((trait) => element("td", {}, this.kernels.value(trait, kernel))),
      element("td", { class: "name" }, data.blobs[blob[kernel]]),
    );
  }

  close() {
    byId("detail").hidden = true;
    this.opener?.removeAttribute("aria-selected");
    if (this.opener?.isConnected) this.focusCell(this.opener.dataset.row, this.opener.dataset.column);
    else this.current?.focus();
  }

  spreads() {
    const { seconds, size } = this.kernels;
    const largest = size.reduce((a, b) => Math.max(a, b), 0);
    const sizes = Array.from({ length: 24 }, (_, i) => 4096 * 2 ** i).filter((limit) => limit <= largest);
    byId("spreads").append(...this.spread("Compile times", seconds, TIMES, duration), ...this.spread("Sizes", size, sizes, bytes));
    byId("spreads").hidden = !byId("spreads").childElementCount;
  }

  spread(title, all, limits, text) {
    const values = all.filter((value) => value >= 0).sort((a, b) => a - b);
    if (!values.length) return [];
    const bins = Array.from({ length: limits.length + 1 }, () => 0);
    for (const value of values) bins[limits.filter((limit) => value >= limit).length]++;
    const most = Math.max(...bins);
    const [first, last] = [bins.findIndex(Boolean), bins.findLastIndex(Boolean)];
    const body = element("tbody");
    for (let bin = first; bin <= last; bin++) {
      const name = bin === 0 ? `below ${text(limits[0])}` : bin === limits.length ? `${text(limits[bin - 1])} and more` : `${text(limits[bin - 1])} to ${text(limits[bin])}`;
      const bar = element("div", { style: `width: ${(100 * bins[bin]) / most}%`, hidden: !bins[bin] });
      body.append(element("tr", {}, element("th", { scope: "row" }, limits.length ? name : "all"), element("td", { class: "number" }, number(bins[bin])), element("td", { class: "length" }, bar)));
    }
    const sum = values.reduce((a, b) => a + b);
    const facts = `${plural(values.length, "kernel")}, together ${text(sum)}, median ${text(values[values.length >> 1])}, most ${text(values[values.length - 1])}`;
    return [element("figure", {}, element("table", {}, element("caption", {}, `${title} `, element("small", {}, facts)), body))];
  }

  listen() {
    let pause;
    byId("search").addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(() => this.update(), 150);
    });
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    for (const id of ["row1", "row2", "column1", "column2", "shade"]) byId(id).addEventListener("change", () => this.update());
    byId("grid").addEventListener("keydown", (event) => this.move(event));
    byId("grid").addEventListener("click", (event) => {
      const cell = event.target.closest("td[data-row]");
      if (!cell) return;
      this.focusCell(cell.dataset.row, cell.dataset.column, false);
      this.open(cell);
    });
    byId("close").addEventListener("click", () => this.close());
    byId("more").addEventListener("click", () => this.listMore());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !byId("detail").hidden) this.close();
      const typing = event.target.closest?.("input, select");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      byId("search").focus();
    });
    const redraw = () => this.grid();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (window.innerWidth !== width) redraw();
      width = window.innerWidth;
    });
  }
}

async function start() {
  const packed = Uint8Array.from(atob(byId("data").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const page = new Page(new Kernels(await new Response(stream).json()));
  document.documentElement.dataset.ready = String(page.shown.length);
}

start().catch((error) => {
  byId("summary").textContent = `This page cannot be drawn here: ${error.message}. It needs a browser of 2023 or later.`;
  throw error;
});
