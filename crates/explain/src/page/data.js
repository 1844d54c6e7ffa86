// The report: taken out of the page, with its columns made into parts again, and how its figures are written.

const report = JSON.parse(document.getElementById("data").textContent);

// Kinds by number: their id, for colours, what they are called, and what they are.
const kinds = report.kinds.map(([id, label, about]) => ({ id, label, about }));

// Texts are stored sorted, each without what it shares with the one before.
function decodeStrings(coded) {
  const strings = [];
  let before = "";
  for (let i = 0; i < coded.length; i += 2) {
    before = before.slice(0, coded[i]) + coded[i + 1];
    strings.push(before);
  }
  return strings;
}

// Times are in microseconds. `begin` and `end` are where a part is drawn, `time` is what is said of it.
function decodeStart(start, strings) {
  const parts = [];
  const open = []; // the part above, at each depth
  const freeFrom = [0];
  start.depth.forEach((depth, index) => {
    const begin = freeFrom[depth] + start.begin[index];
    const end = begin + start.width[index];
    freeFrom[depth] = end;
    freeFrom[depth + 1] = begin;
    const parent = depth > 0 ? open[depth - 1] : null;
    const part = {
      index,
      depth,
      parent,
      begin,
      end,
      name: strings[start.name[index]],
      detail: strings[start.detail[index]],
      kind: kinds[start.kind[index]],
      time: start.time[index] > 0 ? start.time[index] - 1 : end - begin,
      spread: start.spread[index],
      calls: start.calls[index],
      lookups: start.lookups[index],
      children: [],
    };
    part.label = labelOf(part);
    if (parent) parent.children.push(part);
    open[depth] = part;
    parts.push(part);
  });
  for (const part of parts) {
    const without = (figure) => Math.max(0, part.children.reduce((rest, child) => rest - child[figure], part[figure]));
    part.own = without("time");
    part.ownCalls = without("calls");
    part.ownLookups = without("lookups");
  }
  const { command, runs, overhead } = start;
  const title = start.title.charAt(0).toUpperCase() + start.title.slice(1);
  return { title, command, runs, overhead, parts, root: parts[0], total: parts[0].time };
}

// What a part is called where it is shown. Below its module, a search needs no name; a path is said from its library on.
function labelOf({ name, detail, kind, parent }) {
  const isOfParent = parent && (name === parent.name || (detail !== "" && detail === parent.detail));
  if (isOfParent && kind !== parent.kind) return kind.label.toLowerCase();
  const inLibrary = name.startsWith("/") ? name.lastIndexOf("/lib/") : -1;
  return inLibrary < 0 ? name : name.slice(inLibrary + "/lib/".length);
}

const strings = decodeStrings(report.strings);
const starts = report.starts.map((start) => decodeStart(start, strings));

// ---- how figures are written ----

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

// Three digits that count: 38 µs, 2.71 ms, 27.1 ms, 1,899 ms.
function time(microseconds) {
  const ms = microseconds / 1000;
  if (ms < 0.0995) return `${whole.format(microseconds)}\u00a0µs`;
  const written = ms < 9.995 ? ms.toFixed(2) : ms < 99.95 ? ms.toFixed(1) : whole.format(ms);
  return `${written}\u00a0ms`;
}

function share(part, all) {
  const percent = all > 0 ? (100 * part) / all : 0;
  if (percent === 0) return "0\u00a0%";
  if (percent < 0.1) return "<\u202f0.1\u00a0%";
  return `${percent < 9.95 ? percent.toFixed(1) : whole.format(percent)}\u00a0%`;
}

function count(number, singular, plural = `${singular}s`) {
  return `${whole.format(number)}\u00a0${number === 1 ? singular : plural}`;
}

// ---- elements ----

// An element with attributes and children; text stays text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

// The colour of a kind, beside its name.
const swatch = (kind) => element("span", { class: `swatch k-${kind.id}`, "aria-hidden": true });

const byId = (id) => document.getElementById(id);

