import { h, compare, took } from "./words.js";

// Timeline has a line for each machine that was worked on, with a bar for each operation and a part for each of its phases.
// What is at work comes first, then what ended last. No more than most lines are drawn: the filter finds the others.
const most = 200;

export class Timeline {
  constructor(place, { rows, open }) {
    Object.assign(this, { place, rows, open });
    this.hours = 24;
    place.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-name]");
      if (button) this.open(button.dataset.name);
    });
  }

  draw(matches) {
    const now = Date.now() / 1000;
    const since = this.hours ? now - this.hours * 3600 : 0;
    const lines = [];
    for (const row of this.rows.values()) {
      const work = (row.work ?? []).filter((bar) => (bar.end || now) >= since);
      if (work.length && matches(row)) lines.push({ row, work, last: Math.max(...work.map((bar) => bar.end || now + 1)) });
    }
    lines.sort((a, b) => b.last - a.last || compare(a.row.name, b.row.name));
    const cut = lines.slice(0, most);
    if (cut.length === 0) {
      this.place.replaceChildren(h("p", {}, "Nothing was worked on in this time, among the machines that the filter lets through."));
      return;
    }
    const begin = Math.max(since, Math.min(...cut.flatMap((l) => l.work.map((bar) => bar.start))));
    const scale = { begin, span: Math.max(60, now - begin), now };
    const had = document.activeElement?.dataset?.name;
    const scrolled = this.place.scrollTop;
    this.place.replaceChildren(
      key(),
      h("table", { class: "gantt" },
        h("caption", {}, cut.length < lines.length ? `The last ${most} of ${lines.length} machines that were worked on; filter for others` : `${lines.length} machines that were worked on`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Machine"), h("th", { scope: "col" }, axis(scale)))),
        h("tbody", {}, cut.map((line) => this.line(line, scale)))));
    this.place.scrollTop = scrolled;
    if (had && !document.activeElement?.dataset?.name) [...this.place.querySelectorAll("button")].find((b) => b.dataset.name === had)?.focus();
  }

  line({ row, work }, scale) {
    const button = h("button", { type: "button", class: "link" }, row.name);
    button.dataset.name = row.name;
    return h("tr", {}, h("th", { scope: "row" }, button),
      h("td", {}, h("div", { class: "track" }, work.map((bar) => draw(bar, scale)))));
  }
}

const place = (element, from, until, scale) => {
  const left = Math.max(0, ((from - scale.begin) / scale.span) * 100);
  const right = Math.min(100, ((until - scale.begin) / scale.span) * 100);
  element.style.left = `${left}%`;
  element.style.width = `${Math.max(0, right - left)}%`;
  return element;
};

function draw(bar, scale) {
  const end = bar.end || scale.now;
  const parts = (bar.phases ?? []).map((p) => ({ ...p, until: p.until ?? scale.now - bar.start }));
  const words = parts.map((p) => `${p.phase} ${took(p.until - p.from)}`).join(", ");
  const outcome = bar.end ? `${bar.state}${bar.reason ? ` (${bar.reason})` : ""}` : "at work";
  const text = `${bar.type}, ${outcome}, ${new Date(bar.start * 1000).toLocaleString()}, ${took(end - bar.start)}: ${words}`;
  const element = h("div", { class: `op ${bar.state}`, role: "img", "aria-label": text, title: text });
  const inner = { begin: bar.start, span: Math.max(1, end - bar.start) };
  for (const p of parts) {
    const part = h("span", { class: "part" });
    part.dataset.part = p.phase;
    element.append(place(part, bar.start + p.from, bar.start + p.until, inner));
  }
  if (bar.state === "Failed") element.append(h("span", { class: "end" }, "✕"));
  if (!bar.end) element.append(h("span", { class: "end" }, "▸"));
  return place(element, bar.start, end, scale);
}

function axis(scale) {
  const steps = [60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800];
  const step = steps.find((s) => scale.span / s <= 8) ?? scale.span / 8;
  const zone = new Date().getTimezoneOffset() * 60;
  const ticks = [];
  for (let t = Math.ceil((scale.begin - zone) / step) * step + zone; t < scale.now - step / 4; t += step) {
    const at = new Date(t * 1000);
    const text = step >= 86400 ? at.toLocaleDateString() : at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    ticks.push(place(h("span", { class: "tick" }, text), t, t, scale));
  }
  return h("div", { class: "axis" }, ticks, h("span", { class: "now" }, "now"));
}

function key() {
  return h("div", { class: "key", "aria-hidden": "true" }, ["Wait", "Drain", "Apply", "Restart", "Ready", "Soak"].map((name) => {
    const swatch = h("span", { class: "part swatch" });
    swatch.dataset.part = name;
    return h("span", {}, swatch, name === "Soak" ? " hand-over and soak" : ` ${name.toLowerCase()}`);
  }));
}
