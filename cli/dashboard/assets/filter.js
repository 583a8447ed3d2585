// A filter is words that must all be found: anywhere in what is known of a machine, or after field: as the whole of that field.
const fields = ["name", "pool", "domain", "phase", "version", "target"];

export function filter(text) {
  const tests = (text.match(/(?:[^\s"]+|"[^"]*")+/g) ?? []).map((word) => {
    const plain = word.replaceAll('"', "").toLowerCase();
    const at = plain.indexOf(":");
    const field = plain.slice(0, at);
    if (at > 0 && fields.includes(field)) return (row) => (row[field] ?? "").toLowerCase() === plain.slice(at + 1);
    return (row) => haystack(row).includes(plain);
  });
  return (row) => tests.every((t) => t(row));
}

const haystack = (row) => [...fields.map((f) => row[f]), row.says].join("\n").toLowerCase();
