// The rows that cost most: a module with the search for it and its code, else parts of the same name and kind.

const ROWS_AT_FIRST = 15;
const COLUMNS = [
  { key: "name", label: "Part" },
  { key: "own", label: "Own time", about: "without the parts below it; a module’s with its search and its code" },
  { key: "share", label: "Share", about: "of the whole start" },
  { key: "time", label: "Total", about: "with the parts below it" },
  { key: "calls", label: "System calls", about: "its own" },
  { key: "lookups", label: "Failed look-ups", about: "names of files that were looked up and not there" },
];

class Table {
  constructor(start, onChoose) {
    this.start = start;
    this.onChoose = onChoose;
    this.all = rowsOf(start);
    this.sortedBy = "own";
    this.limit = ROWS_AT_FIRST;
    this.matches = null;
    this.element = element("div", { class: "costs" });
    this.draw();
  }

  // Only rows with a part that the search has found; null: all.
  show(matches) {
    this.matches = matches;
    this.limit = ROWS_AT_FIRST;
    this.draw();
  }

  draw() {
    const by = this.sortedBy === "share" ? "own" : this.sortedBy;
    const rows = this.all.filter((row) => !this.matches || row.parts.some((part) => this.matches.has(part)));
    rows.sort((a, b) => (by === "name" ? a.name.localeCompare(b.name) : b[by] - a[by] || b.own - a.own));
    const most = rows.reduce((most, row) => Math.max(most, row.own), 1);
    const head = element("tr", { role: "row" }, ...COLUMNS.map((column) => this.head(column)));
    const body = rows.slice(0, this.limit).map((row) => this.row(row, most));
    const title = this.matches ? "What the search has found" : "What costs most";
    const table = element(
      "table",
      { role: "table" },
      element("caption", {}, title, element("span", { class: "muted" }, ` ${this.start.title}`)),
      element("thead", { role: "rowgroup" }, head),
      element("tbody", { role: "rowgroup" }, ...body),
    );
    if (rows.length === 0) {
      const nothing = element("p", { class: "muted" }, `The search has found nothing here: ${this.start.title}`);
      return this.element.replaceChildren(nothing);
    }
    const rest = rows.length - this.limit;
    const onclick = () => {
      this.limit += 100;
      this.draw();
    };
    const more = rest > 0 ? element("button", { type: "button", class: "more", onclick }, `Show more (${count(rest, "row")})`) : null;
    this.element.replaceChildren(...[table, more].filter(Boolean));
  }

  head({ key, label, about }) {
    const onclick = () => {
      this.sortedBy = key;
      this.draw();
      this.element.querySelector("[aria-sort] button").focus();
    };
    const sort = this.sortedBy === key ? (key === "name" ? "ascending" : "descending") : null;
    const button = element("button", { type: "button", title: about, onclick }, label);
    return element("th", { scope: "col", role: "columnheader", class: `c-${key}`, "aria-sort": sort }, button);
  }

  row(row, most) {
    const part = row.largest;
    const times = row.parts.length > 1 ? element("span", { class: "muted" }, ` ×\u202f${whole.format(row.parts.length)}`) : null;
    const button = element(
      "button",
      { type: "button", class: "part", title: "Show it in the chart", onclick: () => this.onChoose(part) },
      swatch(part.kind),
      element("span", { class: "name" }, row.name),
    );
    const about = element("div", { class: "about muted" }, element("span", { class: "sorts" }, kindsOf(row)), part.detail ? path(part.detail) : null);
    const bar = element("span", { class: "bar-of-share", "aria-hidden": "true" });
    bar.style.width = `${((100 * row.own) / most).toFixed(1)}%`;
    const cell = (key, label, ...content) => {
      const none = row[key] === 0 ? "none" : "";
      return element("td", { role: "cell", class: `c-${key} ${none}`, "data-label": label }, ...content);
    };
    return element(
      "tr",
      { role: "row" },
      element("th", { scope: "row", role: "rowheader", class: "c-name" }, element("div", { class: "line" }, button, times), about),
      cell("own", "own", time(row.own)),
      cell("share", "share", element("span", {}, share(row.own, this.start.total)), bar),
      cell("time", "in total", time(row.time)),
      cell("calls", "system calls", whole.format(row.calls)),
      cell("lookups", "failed look-ups", whole.format(row.lookups)),
    );
  }
}

// The end of a path tells more than its begin, which is cut off.
function path(text) {
  return element("span", { class: "path" }, element("bdi", { dir: "ltr" }, text));
}

function rowsOf(start) {
  const rows = new Map();
  for (const part of start.parts) {
    const of = owner(part);
    const key = `${of.kind.id} ${of.name}`;
    const row = rows.get(key) ?? { name: of.label, parts: [], kinds: new Map(), largest: of, own: 0, time: 0, calls: 0, lookups: 0 };
    rows.set(key, row);
    row.own += part.own;
    row.kinds.set(part.kind, (row.kinds.get(part.kind) ?? 0) + part.own);
    row.calls += part.ownCalls;
    row.lookups += part.ownLookups;
    if (of !== part) continue;
    row.parts.push(part);
    // What is below a part of the same row is in its time already.
    let above = part.parent;
    while (above && !(above.name === part.name && above.kind === part.kind)) above = above.parent;
    if (!above) row.time += part.time;
    if (part.time > row.largest.time) row.largest = part;
  }
  return [...rows.values()];
}

// The search for a module and the reading of its code are the module's, wherever they come from.
function owner(part) {
  const isModules = ["search", "lookup", "code", "stored"].includes(part.kind.id) && part.parent?.kind.id === "body";
  return isModules ? part.parent : part;
}

// What sorts of time a row is made of, if there are several.
function kindsOf(row) {
  const several = [...row.kinds].filter(([, own]) => own > 0).sort((a, b) => b[1] - a[1]);
  if (several.length < 2) return row.largest.kind.label;
  return several.map(([kind, own]) => `${kind.label} ${time(own)}`).join(", ");
}
