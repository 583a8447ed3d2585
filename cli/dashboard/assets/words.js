// The sign of each phase: colour is never the only one. In the order of the legend.
export const phases = {
  Failed: "✕", Unknown: "?", RollingBack: "B", Draining: "D", Applying: "A", Rebooting: "R", Verifying: "V", Soaking: "K",
  Waiting: "W", Staging: "S", Outdated: "O", Pending: "–", Paused: "=", Deleting: "X", Standby: "z", Ready: "✓",
};

export const sign = (phase) => phases[phase] ?? "·";

const natural = new Intl.Collator("en", { numeric: true });
export const compare = natural.compare;

// h makes an element. Text from the cluster becomes a text node, whatever is in it.
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== ""));
  return e;
}

export function took(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60 ? ` ${s % 60}s` : ""}`;
  if (s < 172800) return `${Math.floor(s / 3600)}h${s % 3600 >= 60 ? ` ${Math.floor((s % 3600) / 60)}m` : ""}`;
  return `${Math.floor(s / 86400)}d`;
}

export const ago = (time) => `${took(Date.now() / 1000 - new Date(time).getTime() / 1000)} ago`;

// runs is what a machine runs, and what it is to run where that is something else.
export const runs = (row) => (row.target ? `${row.version || "nothing reported"} → ${row.target}` : row.version || "nothing reported");

export const spoken = (row) =>
  [row.name, row.phase, runs(row).replace("→", "to"), row.pool && `pool ${row.pool}`, row.says].filter(Boolean).join(", ");
