import { h, sign, ago, took } from "./words.js";

// Detail asks for a machine when it is opened, and again when it or a rollout has changed: never by the clock.
const pause = 1000;

export class Detail {
  constructor(place, { closed }) {
    Object.assign(this, { place, closed });
    this.name = "";
  }

  show(name) {
    this.name = name;
    this.place.hidden = !name;
    document.body.classList.toggle("with-detail", Boolean(name));
    this.place.replaceChildren();
    if (name) this.fetch(true);
  }

  close() { this.closed(); }

  refresh() {
    if (!this.name || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.fetch(false);
    }, pause);
  }

  async fetch(focus) {
    const name = this.name;
    if (!name) return;
    let body;
    try {
      const response = await fetch(`machines/${encodeURIComponent(name)}`);
      const text = await response.text();
      if (!focus && text === this.text) return;
      this.text = text;
      body = response.ok ? sections(JSON.parse(text)) : [h("p", { class: "bad" }, text)];
    } catch {
      this.text = "";
      body = [h("p", { class: "bad" }, "kubectl refit dashboard does not answer.")];
    }
    if (name !== this.name) return; // another was opened meanwhile
    const within = this.place.contains(document.activeElement) && document.activeElement.dataset.keep;
    const scrolled = this.place.scrollTop;
    const gates = !focus && this.place.querySelector("details");
    const heading = h("h2", { tabindex: "-1", "data-keep": "title" }, name);
    const close = h("button", { type: "button", "data-keep": "close" }, "Close");
    close.addEventListener("click", () => this.close());
    this.place.replaceChildren(h("div", { class: "head" }, heading, close), ...body);
    this.place.setAttribute("aria-label", `Machine ${name}`);
    if (gates && this.place.querySelector("details")) this.place.querySelector("details").open = gates.open; // as the reader has left it
    if (focus) heading.focus();
    else if (within) this.place.querySelector(`[data-keep=${within}]`)?.focus({ preventScroll: true });
    this.place.scrollTop = focus ? 0 : scrolled;
  }
}

function sections(m) {
  return [facts(m), why(m), findings(m), conditions(m), steps(m), history(m)].flat().filter(Boolean);
}

const list = (pairs) => h("dl", {}, pairs.filter(([, v]) => v).map(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));

function facts(m) {
  const v = m.versions ?? {};
  const badge = h("span", { class: "tile swatch" }, sign(m.phase));
  badge.dataset.phase = m.phase;
  const op = m.operation?.state === "Processing" && m.operation;
  return list([
    ["Phase", [badge, ` ${m.phase}`]], ["Roles", m.roles.join(", ")],
    ["Kubelet", change(v.kubelet, m.wants?.kubelet)], ["Control plane", change(v.controlPlane?.apiServer, m.wants?.controlPlane)],
    ["Runtime", change(v.containerRuntime?.text, m.wants?.containerRuntime && `${m.wants.containerRuntime.name}://${m.wants.containerRuntime.version}`)],
    ["etcd", change(v.etcd, m.wants?.etcd)], ["System", [m.os, m.kernel].filter(Boolean).join(", ")],
    ["At work", op && `${op.type}: step ${Math.min(op.stepsDone + 1, op.stepsTotal)} of ${op.stepsTotal} ${op.step ?? ""}`],
    ["Host", m.hostFailure && `${m.hostFailure.reason}: ${m.hostFailure.message}`],
    ["Rollout", m.rolloutFailure && `${m.rolloutFailure.class}, ${m.rolloutFailure.reason}: ${m.rolloutFailure.message}`],
  ]);
}

const change = (is, wanted) => (wanted && wanted !== is ? `${is || "nothing reported"} → ${wanted}` : is);

function why(m) {
  const title = h("h3", {}, "Why");
  if (m.whyFailed) return [title, h("p", { class: "bad" }, m.whyFailed)];
  const e = m.why;
  const out = [title, h("p", {}, h("strong", {}, e.standing), e.since && `, since ${ago(e.since)}`, e.pool && ` (pool ${e.pool})`)];
  if (e.message) out.push(h("p", {}, e.reason ? `${e.reason}: ${e.message}` : e.message));
  if (e.heldBy?.length) out.push(h("p", {}, "Held by ", some(e.heldBy)));
  if (e.until) out.push(h("p", {}, `Until ${e.until}`));
  for (const command of e.type ?? []) out.push(h("pre", {}, command));
  if (e.coordinator) out.push(h("p", {}, `The coordinator's last word is ${e.coordinator.reason}: ${e.coordinator.message}`));
  if (e.inFlight?.length) out.push(h("p", {}, "In flight: ", some(e.inFlight.map((i) => `${i.machine} (${i.state}, ${ago(i.since)})`))));
  const vetoes = e.gates.filter((g) => !g.passes).length;
  out.push(h("details", { open: vetoes > 0 && e.standing === "Waiting" }, h("summary", { "data-keep": "gates" }, `${vetoes} of ${e.gates.length} gates say no`),
    table("Gates", ["Gate", "Verdict", "Reason"], e.gates.map((g) => [g.gate, g.passes ? "✓ pass" : "✕ veto", g.passes ? "" : `${g.reason}: ${g.message}`]))));
  return out;
}

const some = (all) => (all.length > 10 ? `${all.slice(0, 8).join(", ")} and ${all.length - 8} more` : all.join(", "));

function findings(m) {
  if (!m.findings?.length) return [];
  return [h("h3", {}, "Findings"), h("ul", { class: "findings" }, m.findings.map((f) => h("li", {}, h("strong", {}, f.severity), ` ${f.reason}: ${f.message}`)))];
}

function conditions(m) {
  if (!m.conditions?.length) return [];
  return [h("h3", {}, "Conditions"), table("Conditions", ["Type", "Status", "Since", "Reason"],
    m.conditions.map((c) => [c.type, c.status, ago(c.lastTransitionTime), c.message ? `${c.reason}: ${c.message}` : c.reason]))];
}

function steps(m) {
  if (!m.steps?.length) return [];
  return [h("h3", {}, `Plan${m.disruption ? ` (${m.disruption})` : ""}`), h("ol", {}, m.steps.map((s) => h("li", {}, s)))];
}

function history(m) {
  if (!m.history?.length) return [];
  return [h("h3", {}, "History"), table("History", ["Ended", "Type", "Outcome", "Took"], m.history.map((e) => [
    e.endTime ? ago(e.endTime) : "", e.type, e.reason ? `${e.state} (${e.reason})` : e.state,
    e.startTime && e.endTime ? took((new Date(e.endTime) - new Date(e.startTime)) / 1000) : "",
  ]))];
}

function table(label, head, lines) {
  return h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, head.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, lines.map((cells) => h("tr", {}, cells.map((c, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, c))))));
}
