import { h, sign, phases, compare, spoken, runs } from "./words.js";

// Grid is a listbox of machines, grouped by domain. It has one tab stop; the machine that the arrow keys are on is its
// active descendant. A domain that is out of sight is not laid out (content-visibility).
export class Grid {
  constructor(place, legend, { rows, open, refine }) {
    Object.assign(this, { place, legend, rows, open, refine });
    this.tiles = new Map();
    this.groups = new Map();
    this.by = "phase";
    this.versions = [];
    this.next = 0;
    place.addEventListener("keydown", (event) => this.key(event));
    place.addEventListener("focus", () => this.active?.isConnected && !this.active.hidden ? this.move(this.active) : this.move(this.visible()[0]));
    place.addEventListener("click", (event) => {
      const tile = event.target.closest("[role=option]");
      if (!tile) return;
      this.move(tile);
      this.open(tile.dataset.name);
    });
  }

  clear() {
    this.tiles.clear();
    this.groups.clear();
    this.place.replaceChildren();
    this.active = null;
    this.place.removeAttribute("aria-activedescendant");
  }

  // expect says how many there will be, so that tiles have their size from the first on.
  expect(count, key) {
    const size = count <= 80 ? "large" : count <= 800 ? "medium" : count <= 2000 ? "small" : "tiny";
    if (this.place.dataset.size !== size) {
      this.place.dataset.size = size;
      for (const [name, tile] of this.tiles) this.fill(tile, this.rows.get(name));
    }
    this.place.setAttribute("aria-label", `Machines by ${key}`);
    this.key_ = key;
  }

  put(row, shown) {
    let tile = this.tiles.get(row.name);
    if (!tile) {
      tile = h("div", { role: "option", id: `tile-${this.next++}`, class: "tile", "aria-selected": row.name === this.selected ? "true" : "false" });
      tile.dataset.name = row.name;
      this.tiles.set(row.name, tile);
    }
    const group = this.group(row.domain ?? "");
    if (tile.parentNode !== group.tiles) {
      tile.parentNode?.parentNode.refit.take(tile);
      group.add(tile);
    }
    tile.hidden = !shown;
    this.fill(tile, row);
    this.stale = true;
  }

  fill(tile, row) {
    if (!row) return;
    tile.dataset.phase = row.phase;
    tile.classList.toggle("behind", Boolean(row.target));
    tile.setAttribute("aria-label", spoken(row));
    tile.title = [row.name, `${row.phase}, ${runs(row)}`, row.says].filter(Boolean).join("\n");
    this.paint(tile, row);
  }

  paint(tile, row) {
    const mark = this.by === "phase" ? sign(row.phase) : this.letter(row.version);
    if (this.by === "version") tile.dataset.version = this.colourOf(row.version);
    else delete tile.dataset.version;
    if (this.place.dataset.size !== "large") {
      if (tile.textContent !== mark) tile.textContent = mark;
      return;
    }
    tile.replaceChildren(
      h("span", { class: "sign", "aria-hidden": "true" }, mark), h("span", { class: "name" }, row.name),
      h("span", { class: "what" }, `${row.phase} · ${runs(row)}`));
  }

  remove(name) {
    const tile = this.tiles.get(name);
    if (!tile) return;
    const next = tile === this.active ? this.step(1) ?? this.step(-1) : null;
    this.tiles.delete(name);
    tile.parentNode.parentNode.refit.take(tile);
    if (tile === this.active) this.move(next);
    this.stale = true;
  }

  match(name, shown) {
    const tile = this.tiles.get(name);
    if (tile && tile.hidden === shown) {
      tile.hidden = !shown;
      this.stale = true;
    }
  }

  shown() { return this.count ?? 0; }

  group(domain) {
    let group = this.groups.get(domain);
    if (!group) {
      group = new Group(domain);
      this.groups.set(domain, group);
      const after = [...this.groups.values()].filter((g) => compare(g.domain || "\uffff", domain || "\uffff") > 0).sort((a, b) => compare(a.domain || "\uffff", b.domain || "\uffff"))[0];
      this.place.insertBefore(group.element, after?.element ?? null);
    }
    return group;
  }

  // draw does what is due once for many changes: numbers, the legend, the letters of versions.
  draw() {
    if (!this.stale) return;
    this.stale = false;
    const versions = [...new Set([...this.rows.values()].map((r) => r.version ?? ""))].sort(compare);
    if (versions.join() !== this.versions.join()) {
      this.versions = versions;
      if (this.by === "version") this.repaint();
    }
    for (const [domain, group] of this.groups) {
      if (group.tiles.childElementCount === 0) {
        group.element.remove();
        this.groups.delete(domain);
      } else group.title(this.key_);
    }
    this.count = 0;
    for (const tile of this.tiles.values()) if (!tile.hidden) this.count++;
    this.drawLegend();
  }

  drawLegend() {
    const field = this.by;
    const counts = new Map();
    for (const row of this.rows.values()) counts.set(row[field] ?? "", (counts.get(row[field] ?? "") ?? 0) + 1);
    const order = field === "phase" ? [...new Set([...Object.keys(phases), ...counts.keys()])] : [...this.versions].reverse();
    const had = document.activeElement?.dataset?.value;
    this.legend.replaceChildren(...order.filter((v) => counts.has(v)).map((value) => {
      const swatch = h("span", { class: "tile swatch", "aria-hidden": "true" }, field === "phase" ? sign(value) : this.letter(value));
      if (field === "phase") swatch.dataset.phase = value;
      else swatch.dataset.version = this.colourOf(value);
      const button = h("button", { type: "button" }, swatch, ` ${value || "not reported"} ${counts.get(value)}`);
      button.dataset.value = value;
      button.addEventListener("click", () => this.refine(`${field}:${/\s/.test(value) || !value ? `"${value}"` : value}`));
      return button;
    }));
    if (had !== undefined) [...this.legend.children].find((b) => b.dataset.value === had)?.focus();
  }

  letter(version) { return version ? "abcdefghijklmnopqrstuvwxyz"[this.versions.indexOf(version) % 26] ?? "·" : "–"; }

  // colourOf counts from the newest, so that the newest of a fleet always has the same colour.
  colourOf(version) { return version ? `v${Math.min(7, this.versions.length - 1 - this.versions.indexOf(version))}` : "none"; }

  colour(by) {
    if (this.by === by) return;
    this.by = by;
    this.repaint();
    this.stale = true;
  }

  repaint() { for (const [name, tile] of this.tiles) this.paint(tile, this.rows.get(name)); }

  select(name) {
    this.tiles.get(this.selected)?.setAttribute("aria-selected", "false");
    this.selected = name;
    const tile = this.tiles.get(name);
    tile?.setAttribute("aria-selected", "true");
    if (tile) this.move(tile);
  }

  // --- keys
  visible() { return [...this.place.querySelectorAll("[role=option]:not([hidden])")]; }

  step(by) {
    const all = this.visible();
    return all[all.indexOf(this.active) + by];
  }

  // line is the nearest tile of the next line up or down, whichever group it is in.
  line(by) {
    const all = this.visible();
    const here = this.active.getBoundingClientRect();
    let best = null;
    let top = null;
    for (let i = all.indexOf(this.active) + by; i >= 0 && i < all.length; i += by) {
      const there = all[i].getBoundingClientRect();
      if (Math.abs(there.top - here.top) < 2) continue;
      if (top !== null && Math.abs(there.top - top) > 2) break;
      top = there.top;
      const away = Math.abs(there.left - here.left);
      if (best === null || away < best.away) best = { tile: all[i], away };
    }
    return best?.tile;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = () => this.visible();
    const group = (by) => {
      const groups = [...this.place.children].filter((g) => g.querySelector("[role=option]:not([hidden])"));
      return groups[groups.indexOf(this.active.parentNode.parentNode) + by]?.querySelector("[role=option]:not([hidden])");
    };
    const keys = {
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.line(1), ArrowUp: () => this.line(-1),
      Home: () => all()[0], End: () => all().at(-1), PageDown: () => group(1), PageUp: () => group(-1),
    };
    if ((event.key === "Enter" || event.key === " ") && this.active && !this.active.hidden) {
      event.preventDefault();
      this.open(this.active.dataset.name);
    } else if (keys[event.key]) {
      event.preventDefault();
      if (!this.active || this.active.hidden) this.move(all()[0]);
      else this.move(keys[event.key]() ?? this.active);
    }
  }

  move(tile) {
    this.active?.classList.remove("active");
    this.active = tile ?? null;
    if (!tile) return this.place.removeAttribute("aria-activedescendant");
    tile.classList.add("active");
    this.place.setAttribute("aria-activedescendant", tile.id);
    const seen = () => tile.scrollIntoView({ block: "nearest" });
    seen();
    requestAnimationFrame(() => requestAnimationFrame(() => { if (tile === this.active) seen(); })); // what came into sight has its true size only now
  }
}

// Group is one domain; its tiles are in the order of their names.
class Group {
  constructor(domain) {
    this.domain = domain;
    this.heading = h("div", { class: "domain", "aria-hidden": "true" });
    this.tiles = h("div", { class: "tiles", role: "presentation" });
    this.element = h("div", { role: "group", class: "group" }, this.heading, this.tiles);
    this.element.refit = this;
  }

  add(tile) {
    const all = this.tiles.children;
    let low = 0;
    let high = all.length;
    if (high > 0 && compare(all[high - 1].dataset.name, tile.dataset.name) < 0) low = high; // as they come at first
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(all[middle].dataset.name, tile.dataset.name) < 0) low = middle + 1;
      else high = middle;
    }
    this.tiles.insertBefore(tile, all[low] ?? null);
  }

  take(tile) { tile.remove(); }

  title(key) {
    const all = [...this.tiles.children];
    const name = this.domain || `no label ${key}`;
    const shown = all.filter((t) => !t.hidden).length;
    const text = shown === all.length ? `${name} · ${all.length}` : `${name} · ${shown} of ${all.length}`;
    this.element.hidden = shown === 0;
    if (this.heading.textContent !== text) this.heading.textContent = text;
    this.element.setAttribute("aria-label", `${name}, ${all.length} machines`);
  }
}
