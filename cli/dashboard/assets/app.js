// What the stream brings goes into one Map; each view draws from it, at most once in a frame.
import { filter } from "./filter.js";
import { Grid } from "./grid.js";
import { Timeline } from "./timeline.js";
import { Detail } from "./detail.js";
import { Pools } from "./pools.js";

const $ = (id) => document.getElementById(id);
const rows = new Map();
let matches = () => true;

const detail = new Detail($("detail"), { closed: () => { select(""); $(view === "fleet" ? "grid" : "tab-timeline").focus(); } });
const grid = new Grid($("grid"), $("legend"), { rows, open: select, refine });
const timeline = new Timeline($("timeline"), { rows, open: select });
const pools = new Pools($("pools"), $("state"));

// --- drawing
let due = false;
function draw() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    grid.draw();
    if (view === "timeline") timeline.draw(matches);
    const shown = grid.shown();
    $("shown").textContent = shown === rows.size ? `${rows.size} machines` : `${shown} of ${rows.size} machines`;
  });
}

// --- the stream
const source = new EventSource("events");
let lost = "";
let trouble = [];
const showTrouble = () => {
  const text = [lost, ...trouble].filter(Boolean).join(" ");
  if ($("trouble").textContent !== text) $("trouble").textContent = text;
  $("trouble").hidden = text === "";
};
source.addEventListener("begin", () => {
  rows.clear();
  grid.clear();
  lost = "";
  showTrouble();
});
source.addEventListener("delta", (event) => {
  const delta = JSON.parse(event.data);
  for (const row of delta.rows ?? []) {
    rows.set(row.name, row);
    grid.put(row, matches(row));
    if (row.name === detail.name) detail.refresh();
  }
  for (const name of delta.gone ?? []) {
    rows.delete(name);
    grid.remove(name);
  }
  if (delta.summary) {
    $("namespace").textContent = delta.summary.namespace;
    document.title = `Refit: ${delta.summary.namespace}`;
    grid.expect(delta.summary.machines, delta.summary.topologyKey);
    pools.draw(delta.summary);
    trouble = delta.summary.trouble ?? [];
    showTrouble();
    detail.refresh();
  }
  draw();
});
source.addEventListener("ready", () => {
  document.documentElement.dataset.ready = Math.round(performance.now());
  if (detail.name) grid.select(detail.name);
  if (rows.size === 0) $("shown").textContent = "There are no machines: kubectl refit adopt --apply makes them from the cluster's nodes.";
});
source.addEventListener("error", () => {
  lost = source.readyState === EventSource.CLOSED
    ? "The dashboard has ended or refuses this page: run kubectl refit dashboard again and open the address that it prints."
    : "The connection to kubectl refit dashboard is lost: what is shown may be old. Trying again.";
  showTrouble();
});

// --- filter
function apply() {
  matches = filter($("filter").value);
  for (const row of rows.values()) grid.match(row.name, matches(row));
  draw();
}
function refine(text) {
  $("filter").value = $("filter").value === text ? "" : text;
  apply();
}
$("filter").addEventListener("input", apply);
$("filter").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    $("filter").value = "";
    apply();
  }
  if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") {
    event.preventDefault();
    if (view === "fleet") $("grid").focus();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    $("filter").focus();
    $("filter").select();
  } else if (event.key === "Escape" && event.target.id !== "filter" && detail.name) {
    detail.close();
  }
});

// --- views; which one, and which machine, is in the address, so that it can be kept and passed on
let view = "fleet";
function show(name) {
  view = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const on = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !on;
  }
  $("hours").hidden = name !== "timeline";
  $("colours").hidden = name === "timeline";
  draw();
}
for (const tab of document.querySelectorAll("[role=tab]")) {
  tab.addEventListener("click", () => go(tab.getAttribute("aria-controls"), detail.name));
  tab.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = [...document.querySelectorAll("[role=tab]")].find((t) => t !== tab);
    go(other.getAttribute("aria-controls"), detail.name);
    other.focus();
  });
}
function go(name, machine) {
  location.hash = new URLSearchParams({ ...(name === "fleet" ? {} : { view: name }), ...(machine ? { machine } : {}) }).toString();
}
function select(machine) { go(view, machine); }
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1));
  show(asked.get("view") === "timeline" ? "timeline" : "fleet");
  const machine = asked.get("machine") ?? "";
  grid.select(machine);
  if (machine !== detail.name) detail.show(machine);
  if (asked.get("colour")) colour(asked.get("colour"));
}
window.addEventListener("hashchange", follow);

function colour(by) {
  for (const input of document.querySelectorAll("[name=colour]")) input.checked = input.value === by;
  grid.colour(by === "version" ? "version" : "phase");
  draw();
}
$("colours").addEventListener("change", (event) => colour(event.target.value));
$("hours").querySelector("select").addEventListener("change", (event) => {
  timeline.hours = Number(event.target.value);
  draw();
});
setInterval(() => { if (view === "timeline" && !document.hidden) draw(); }, 5000); // what is at work grows; nothing is asked
follow();
