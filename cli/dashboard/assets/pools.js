import { h } from "./words.js";

// Pools has a line for each rollout, and says in the live region what has changed: not more often than can be listened to.
const pause = 5000;

export class Pools {
  constructor(place, spoken) {
    this.place = place;
    this.spoken = spoken;
  }

  draw(summary) {
    this.place.replaceChildren(...summary.pools.map(line));
    this.text = sentence(summary);
    if (!this.timer) {
      this.say();
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.say();
      }, pause);
    }
  }

  say() {
    if (this.spoken.textContent !== this.text) this.spoken.textContent = this.text;
  }
}

function line(pool) {
  const bar = h("meter", { min: 0, max: Math.max(1, pool.machines), value: pool.upToDate, "aria-label": `${pool.name}: machines up to date` });
  return h("div", { class: "pool" },
    h("strong", {}, pool.name),
    bar,
    h("span", {}, `${pool.upToDate} of ${pool.machines} up to date`),
    h("span", {}, `${pool.ready} ready`),
    pool.inFlight > 0 && h("span", {}, `${pool.inFlight} in flight`),
    pool.failed > 0 && h("span", { class: "bad" }, `✕ ${pool.failed} failed`),
    pool.paused && h("span", { class: "mark" }, "= paused"),
    pool.target && h("span", { class: "quiet" }, `→ ${pool.target}`),
    pool.state && h("span", { class: "quiet state", title: pool.state }, pool.state));
}

function sentence(summary) {
  const total = (field) => summary.pools.reduce((sum, p) => sum + (p[field] ?? 0), 0);
  const parts = [`${total("upToDate")} of ${total("machines")} machines in pools up to date`];
  if (total("inFlight")) parts.push(`${total("inFlight")} in flight`);
  if (total("failed")) parts.push(`${total("failed")} failed`);
  const paused = summary.pools.filter((p) => p.paused).map((p) => p.name);
  if (paused.length) parts.push(`paused: ${paused.join(", ")}`);
  if (summary.stopped) parts.unshift("The stop switch is on: nothing new is granted");
  return `${parts.join("; ")}.`;
}
