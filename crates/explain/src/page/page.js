// The page: head, the starts side by side, a panel for each start, search, advice.

const SIDE_BY_SIDE = "all";
const LABELLED_SHARE = 0.04; // of the longest start: what is shorter has no room for words
const LEAST_CHARACTERS = 2; // of a search: less would find nearly all

const panels = starts.map((start) => {
  const detail = element("div", { class: "detail", "aria-live": "polite" });
  const chart = new Chart(start, (part) => detail.replaceChildren(...describe(part, start, chart)));
  const table = new Table(start, (part) => {
    chart.reveal(part);
    chart.element.scrollIntoView({ block: "nearest", behavior: isStill.matches ? "auto" : "smooth" });
  });
  const tool = (label, text, onclick) => element("button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const zoom = element(
    "div",
    { class: "choice zoom", role: "group", "aria-label": "Zoom" },
    tool("Zoom out", "−", () => chart.zoom(1 / 0.6, chart.middle(chart.current))),
    tool("Zoom in", "+", () => chart.zoom(0.6, chart.middle(chart.current))),
    tool("Show the whole start", "Reset", () => chart.reset()),
  );
  const head = element("div", { class: "bar" }, element("h3", {}, start.title, element("span", {}, time(start.total))), zoom);
  const panel = element("article", { class: "panel", "aria-label": start.title }, head, chart.element, detail, table.element);
  detail.replaceChildren(...describe(start.root, start, chart));
  return { start, chart, table, element: panel };
});

// What is said of the chosen part below the chart; the parts above it lead there.
function describe(part, start, chart) {
  const above = [];
  for (let at = part.parent; at; at = at.parent) above.unshift(at);
  const crumbs = above.flatMap((at) => {
    const onclick = () => {
      chart.select(at);
      chart.zoomTo(at);
    };
    return [element("button", { type: "button", onclick }, at.label), element("span", { "aria-hidden": "true" }, " › ")];
  });
  const path = crumbs.length ? element("nav", { class: "crumbs muted", "aria-label": "Parts above" }, ...crumbs) : null;
  const head = element(
    "p",
    { class: "chosen" },
    swatch(part.kind),
    element("strong", {}, part.label),
    element("span", { class: "muted" }, part.parent ? ` ${part.kind.label}: ${part.kind.about}` : " the whole process"),
  );
  const said = element("p", { class: "figures" }, ...figures(part, start).map((text) => element("span", {}, text)));
  const place = part.detail || (part.label === part.name ? "" : part.name);
  const detail = place ? element("p", { class: "muted path" }, place) : null;
  return [path, head, said, detail].filter(Boolean);
}

// ---- side by side ----

function ownByKind(start) {
  const sums = new Map(kinds.map((kind) => [kind, 0]));
  for (const part of start.parts) sums.set(part.kind, sums.get(part.kind) + part.own);
  return sums;
}

const isOneCommand = starts.every((start) => start.command === starts[0].command);
const sums = starts.map(ownByKind);
const longestTotal = Math.max(...starts.map((start) => start.total), 1);

function factor(start) {
  const times = starts[0].total / Math.max(1, start.total);
  return `${times < 9.95 ? times.toFixed(1) : whole.format(times)}\u202f×`;
}

function compared(start, index) {
  const segments = kinds.map((kind) => {
    const own = sums[index].get(kind);
    if (own === 0) return null;
    const segment = element("span", { class: `k-${kind.id}`, title: `${kind.label}: ${time(own)}, ${share(own, start.total)}` });
    if (own / longestTotal > LABELLED_SHARE) {
      segment.classList.add("labelled");
      segment.append(element("span", { class: "label" }, kind.label), element("span", { class: "muted" }, time(own)));
    }
    segment.style.flexGrow = own;
    return segment;
  });
  const stack = element("span", { class: "stack", "aria-hidden": "true" }, ...segments);
  stack.style.width = `max(4px, ${((100 * start.total) / longestTotal).toFixed(2)}%)`;
  const isFaster = index > 0 && starts[0].total > 1.05 * start.total;
  return element(
    "div",
    { class: "start" },
    element(
      "div",
      { class: "of" },
      element("span", { class: "title" }, start.title),
      element("span", { class: "big" }, time(start.total)),
      start.root.spread ? element("span", { class: "muted" }, `±\u00a0${time(start.root.spread)}`) : null,
      isFaster ? element("span", { class: "faster" }, `${factor(start)} as fast`) : null,
    ),
    isOneCommand ? null : element("p", { class: "command" }, element("code", {}, start.command)),
    element("div", { class: "track" }, stack),
  );
}

const used = kinds.filter((kind) => sums.some((sum) => sum.get(kind) > 0));

function kindsTable() {
  const heads = ["Own time", ...starts.map((start) => start.title)];
  const rows = used.map((kind) => {
    const cells = starts.map((start, index) => {
      const own = sums[index].get(kind);
      if (own === 0) return element("td", { class: "muted" }, "–");
      return element("td", {}, time(own), element("span", { class: "muted" }, share(own, start.total)));
    });
    const about = element("span", { class: "muted" }, kind.about);
    return element("tr", {}, element("th", { scope: "row" }, swatch(kind), kind.label, about), ...cells);
  });
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  return element("table", { class: "kinds", "aria-labelledby": "kinds-title" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

// ---- what is shown, and how ----

function choice(place, options, chosen, onChoose) {
  const buttons = options.map(([value, label]) => {
    const onclick = () => {
      for (const button of buttons) button.setAttribute("aria-pressed", button === made);
      onChoose(value);
    };
    const made = element("button", { type: "button", "aria-pressed": value === chosen, onclick }, label);
    return made;
  });
  place.replaceChildren(...buttons);
}

function showStart(value) {
  const isAll = value === SIDE_BY_SIDE;
  byId("starts").classList.toggle("side", isAll);
  panels.forEach((panel, index) => (panel.element.hidden = !isAll && index !== value));
}

function showOrder(order) {
  for (const { chart } of panels) {
    chart.arrange(order);
    chart.draw();
  }
}

// ---- search ----

const search = { found: [], at: -1 };

function searchFor(text) {
  const wanted = text.trim().toLowerCase();
  const isOn = wanted.length >= LEAST_CHARACTERS;
  search.found = [];
  search.at = -1;
  const said = panels.map((panel) => {
    const has = (part) => part.name.toLowerCase().includes(wanted) || part.detail.toLowerCase().includes(wanted);
    const found = isOn ? panel.start.parts.filter(has) : [];
    panel.chart.show(isOn ? new Set(found) : null);
    panel.table.show(isOn ? new Set(found) : null);
    search.found.push(...[...found].sort((a, b) => b.time - a.time).map((part) => ({ panel, part })));
    const outermost = found.filter((part) => !part.parent || !hasAbove(part, panel.chart.matches));
    const sum = outermost.reduce((sum, part) => sum + part.time, 0);
    const figure = found.length ? `, ${time(sum)} (${share(sum, panel.start.total)})` : "";
    return `${panel.start.title}: ${count(found.length, "part")}${figure}`;
  });
  byId("found").textContent = isOn ? said.join(" · ") : "";
}

function hasAbove(part, matches) {
  for (let at = part.parent; at; at = at.parent) if (matches.has(at)) return true;
  return false;
}

// Show the next match of the panels that are shown, the longest first.
function nextMatch(by) {
  const shown = search.found.filter(({ panel }) => !panel.element.hidden);
  if (!shown.length) return;
  search.at = (Math.max(search.at, by > 0 ? -1 : 0) + by + shown.length) % shown.length;
  const { panel, part } = shown[search.at];
  panel.chart.reveal(part, false);
}

function listenForSearch() {
  const field = byId("search");
  let waiting;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => searchFor(field.value), 80);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    field.value = "";
    searchFor("");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === field || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}

// ---- advice ----

function advised({ headline, text, place, remedy, start, saves }) {
  const saved = saves ? element("span", { class: "faster" }, `saves ${time(saves * 1e6)}`) : null;
  return element(
    "li",
    {},
    element("h3", {}, headline, saved),
    text ? element("p", {}, text) : null,
    place ? element("p", { class: "muted" }, "at ", element("code", { class: "path" }, place)) : null,
    remedy ? element("pre", { tabindex: 0, "aria-label": "To type" }, element("code", {}, [remedy, start].filter(Boolean).join("\n"))) : null,
  );
}

// ---- all of it ----

function headline() {
  const last = starts.at(-1);
  const isFaster = starts.length > 1 && starts[0].total > 1.05 * last.total;
  byId("headline").textContent = isFaster
    ? `${time(starts[0].total)} to start, ${time(last.total)} ${last.title.toLowerCase()}`
    : `${time(starts[0].total)} to start`;
  byId("command").textContent = isOneCommand ? starts[0].command : "";
  document.title = `${starts[0].command}: where the start’s time goes`;
  const runs = [...new Set(starts.map((start) => start.runs))].join(" and ");
  byId("measured").textContent = `${runs} runs of each · ${report.machine} · ${report.when}`;
  const cost = starts.map((start) => `${start.title} ${share(start.overhead, 1)}`).join(", ");
  byId("made").textContent = `Made by snapboot ${report.snapboot}. Times are medians of the runs, ± half the width of their middle half. Measuring made the starts longer by: ${cost}.`;
}

function begin() {
  headline();
  byId("compared").append(...starts.map(compared));
  byId("no-archive").textContent = report.no_archive ?? "";
  byId("no-archive").hidden = !report.no_archive;
  byId("legend").append(...used.map((kind) => element("li", { title: kind.about }, swatch(kind), kind.label)));
  byId("kinds").append(kindsTable());
  byId("starts").append(...panels.map((panel) => panel.element));
  const options = starts.map((start, index) => [index, start.title]);
  if (starts.length > 1) choice(byId("shown"), [...options, [SIDE_BY_SIDE, "Side by side"]], 0, showStart);
  else byId("shown").hidden = true;
  choice(byId("order"), [["time", "In order of time"], ["longest", "Longest first"]], "time", showOrder);
  showStart(0);
  listenForSearch();
  byId("advice").append(...report.advice.map(advised));
  byId("advice-section").hidden = report.advice.length === 0;
}

begin();
