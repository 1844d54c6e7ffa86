// A flame chart: the parts of a start as boxes, those of a part below it. What is too narrow to be seen is drawn as one box.

const NARROWEST = 1.5; // pixels
const LABELLED = 34; // pixels that a name needs at least
const LAST_TICK = 48; // pixels that its words need
const CHARACTER = 6.8; // pixels, about
const CLOSEST = 20; // microseconds: nobody zooms in further
const ZOOM_MS = 160;
const TICKS = [1, 2, 5];
const isStill = matchMedia("(prefers-reduced-motion: reduce)");

class Chart {
  constructor(start, onSelect) {
    this.start = start;
    this.onSelect = onSelect;
    this.current = start.root;
    this.matches = null; // parts that the search has found
    this.holders = new Set(); // those and all parts above them
    this.boxes = new Map(); // part to its element, if it has one
    this.axis = element("div", { class: "axis", "aria-hidden": "true" });
    this.rows = element("div", { class: "rows", role: "tree", "aria-label": `Parts of the start: ${start.title}` });
    this.element = element("div", { class: "chart" }, this.axis, this.rows);
    this.depth = 1 + start.parts.reduce((most, part) => Math.max(most, part.depth), 0);
    this.rows.style.setProperty("--rows", this.depth);
    this.arrange("time");
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.rows);
  }

  // Give all parts their place: as they began, or the longest first.
  arrange(order) {
    const place = (part, left) => {
      part.left = left;
      part.right = left + part.end - part.begin;
      const sorted = order === "time" ? part.children : [...part.children].sort((a, b) => b.time - a.time);
      let next = left;
      for (const child of sorted) {
        const childLeft = order === "time" ? child.begin : next;
        place(child, childLeft);
        next = childLeft + child.end - child.begin;
      }
      part.sorted = sorted;
    };
    place(this.start.root, 0);
    this.whole = [0, Math.max(1, this.start.root.right)];
    this.view = [...this.whole];
  }

  // ---- drawing ----

  draw() {
    const width = this.rows.clientWidth;
    if (width === 0) return; // not shown
    const [from, to] = this.view;
    const scale = width / (to - from);
    const hadFocus = this.rows.contains(document.activeElement);
    const drawn = [];
    const narrow = []; // the box of narrow parts that is being collected, by depth
    this.boxes.clear();
    this.levels = [];
    const visit = (part) => {
      if (part.right <= from || part.left >= to) return;
      const left = Math.max(0, (part.left - from) * scale);
      const right = Math.min(width, (part.right - from) * scale);
      if (part.depth > 0 && (part.right - part.left) * scale < NARROWEST) return this.collect(narrow, drawn, part, left, right);
      const box = this.box(part, left, right - left);
      this.boxes.set(part, box);
      (this.levels[part.depth] ??= []).push(part);
      drawn.push(box);
      part.sorted.forEach(visit);
    };
    visit(this.start.root);
    narrow.forEach((box) => box && drawn.push(this.narrowBox(box)));
    this.rows.replaceChildren(...drawn);
    this.element.dataset.view = `${Math.round(from)}-${Math.round(to)}`;
    this.element.classList.toggle("zoomed", this.isZoomed());
    this.mark(hadFocus);
    this.drawAxis(width, scale);
  }

  isZoomed() {
    return this.view[0] > this.whole[0] || this.view[1] < this.whole[1];
  }

  box(part, left, width) {
    const share_ = share(part.time, this.start.total);
    const found = this.matches?.has(part) ? "match" : "";
    const box = element("div", {
      class: `box k-${part.kind.id} ${found}`,
      role: "treeitem",
      "aria-level": part.depth + 1,
      "aria-selected": part === this.current,
      "aria-label": `${part.label}, ${part.kind.label}, ${time(part.time)}, ${share_}`,
      tabindex: -1,
    });
    box.style.cssText = `left:${left.toFixed(2)}px;width:${Math.max(NARROWEST, width - 1).toFixed(2)}px;--depth:${part.depth}`;
    if (width >= LABELLED) {
      box.append(fitted(part.label, width));
      if (width > CHARACTER * part.label.length + 110) box.append(element("span", { class: "figure" }, `${time(part.time)} · ${share_}`));
    }
    box.one = part;
    return box;
  }

  // Narrow parts beside each other are one box: gaps would look as if nothing had been done there.
  collect(narrow, drawn, part, left, right) {
    const box = narrow[part.depth];
    if (box && left - box.right < NARROWEST && box.parent === part.parent) {
      box.right = Math.max(box.right, right);
      box.parts.push(part);
      return;
    }
    if (box) drawn.push(this.narrowBox(box));
    narrow[part.depth] = { left, right, depth: part.depth, parent: part.parent, parts: [part] };
  }

  narrowBox({ left, right, depth, parts }) {
    const found = parts.some((part) => this.holders.has(part)) ? "match" : "";
    const kind = longest(parts).kind.id;
    const box = element("div", { class: `box narrow k-${kind} ${found}`, "aria-hidden": "true" });
    box.style.cssText = `left:${left.toFixed(2)}px;width:${Math.max(1, right - left - 0.5).toFixed(2)}px;--depth:${depth}`;
    box.many = parts;
    return box;
  }

  drawAxis(width, scale) {
    const [from, to] = this.view;
    const least = (to - from) / Math.max(2, width / 110); // between two ticks
    const magnitude = 10 ** Math.floor(Math.log10(least));
    const step = [...TICKS, 10].map((factor) => factor * magnitude).find((step) => step >= least);
    const ticks = [];
    for (let at = Math.ceil(from / step) * step; at < to - LAST_TICK / scale; at += step) {
      const tick = element("span", {}, axisTime(at, step));
      tick.style.left = `${((at - from) * scale).toFixed(1)}px`;
      ticks.push(tick);
    }
    this.axis.replaceChildren(...ticks);
    this.rows.style.setProperty("--tick", `${(step * scale).toFixed(2)}px`);
    this.rows.style.setProperty("--first", `${((Math.ceil(from / step) * step - from) * scale).toFixed(2)}px`);
  }

  // Show which part is the current one, and let the keyboard reach it alone.
  mark(takesFocus) {
    let box = this.boxes.get(this.current);
    for (let part = this.current; !box && part; part = part.parent) box = this.boxes.get(part);
    this.rows.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    this.rows.querySelector("[aria-selected='true']")?.setAttribute("aria-selected", false);
    box ??= this.rows.querySelector("[role='treeitem']");
    box?.setAttribute("tabindex", 0);
    if (box?.one === this.current) box.setAttribute("aria-selected", true);
    if (takesFocus) box?.focus({ preventScroll: true });
  }

  // ---- moving ----

  select(part, takesFocus = false) {
    this.current = part;
    this.mark(takesFocus);
    this.onSelect(part);
    const top = part.depth * (this.rows.clientHeight / this.depth);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top > scrollTop + clientHeight - 60) this.element.scrollTop = top - clientHeight / 3;
  }

  zoomTo(part) {
    this.moveTo(part.left, Math.max(part.right, part.left + 1));
  }

  reset() {
    this.moveTo(...this.whole);
  }

  // Zoom by a factor; what is at `at`, of the width, stays there.
  zoom(factor, at = 0.5) {
    const [from, to] = this.view;
    const width = Math.min(this.whole[1], Math.max(Math.min(CLOSEST, this.whole[1]), (to - from) * factor));
    const fixed = from + (to - from) * at;
    this.moveTo(fixed - width * at, fixed + width * (1 - at), false);
  }

  // Move to the right by a part of what is shown.
  pan(by) {
    const [from, to] = this.view;
    this.moveTo(from + by * (to - from), to + by * (to - from), false);
  }

  moveTo(from, to, isSlow = true) {
    const width = Math.min(to - from, this.whole[1]);
    const left = Math.min(Math.max(0, from), this.whole[1] - width);
    const [began, target] = [[...this.view], [left, left + width]];
    cancelAnimationFrame(this.frame);
    this.element.dataset.target = `${Math.round(left)}-${Math.round(left + width)}`;
    if (!isSlow || isStill.matches) {
      this.view = target;
      this.frame = requestAnimationFrame(() => this.draw());
      return;
    }
    let first;
    const step = (now) => {
      first ??= now;
      const done = Math.min(1, (now - first) / ZOOM_MS);
      const eased = 1 - (1 - done) ** 3;
      this.view = began.map((value, side) => value + (target[side] - value) * eased);
      if (done === 1) this.view = target;
      this.draw();
      if (done < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  // Show a part that may be too narrow to be drawn: zoom in to what is above it, or to itself.
  reveal(part, takesFocus = true) {
    const scale = this.rows.clientWidth / (this.view[1] - this.view[0]);
    const isSeen = part.left < this.view[1] && part.right > this.view[0] && (part.right - part.left) * scale >= NARROWEST;
    this.select(part, takesFocus);
    if (isSeen) return;
    const parent = part.parent ?? part;
    const isWide = (part.right - part.left) / (parent.right - parent.left) > 0.02;
    this.zoomTo(isWide ? parent : part);
  }

  // ---- search ----

  show(matches) {
    this.matches = matches;
    this.holders.clear();
    for (const part of matches ?? []) for (let at = part; at && !this.holders.has(at); at = at.parent) this.holders.add(at);
    this.element.classList.toggle("searching", matches !== null);
    this.draw();
  }

  // ---- mouse, touch, keys ----

  listen() {
    const rows = this.rows;
    const pointers = new Map();
    let dragged = false;
    rows.addEventListener("click", (event) => {
      if (dragged || !event.target.closest(".box")) return;
      const box = event.target.closest(".box");
      if (box.many) return this.moveTo(box.many[0].left, box.many.at(-1).right);
      this.select(box.one, true);
      this.zoomTo(box.one);
    });
    rows.addEventListener("keydown", (event) => this.key(event));
    rows.addEventListener("focusin", (event) => {
      if (event.target.one && event.target.one !== this.current) this.select(event.target.one);
    });
    this.element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    rows.addEventListener("pointerdown", (event) => {
      dragged = false;
      pointers.set(event.pointerId, event.clientX);
    });
    rows.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (before === undefined) return tip.show(event, this.start);
      if (pointers.size === 1 && !dragged && Math.abs(event.clientX - before) < 5) return;
      dragged = true;
      tip.hide();
      rows.setPointerCapture(event.pointerId);
      const width = rows.clientWidth;
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const at = ((event.clientX + other) / 2 - rows.getBoundingClientRect().left) / width;
        this.zoom(Math.abs(before - other) / Math.max(1, Math.abs(event.clientX - other)), at);
      } else this.pan((before - event.clientX) / width);
      pointers.set(event.pointerId, event.clientX);
    });
    for (const name of ["pointerup", "pointercancel"]) rows.addEventListener(name, (event) => pointers.delete(event.pointerId));
    rows.addEventListener("pointerleave", (event) => {
      if (!rows.hasPointerCapture(event.pointerId)) pointers.delete(event.pointerId);
      tip.hide();
    });
  }

  wheel(event) {
    const { left } = this.rows.getBoundingClientRect();
    const width = this.rows.clientWidth;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150), (event.clientX - left) / width);
    } else if (this.isZoomed() && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / width);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const part = this.current;
    const row = this.levels[part.depth] ?? [];
    const actions = {
      ArrowUp: () => part.parent && this.reveal(part.parent),
      ArrowDown: () => part.children.length && this.reveal(part.sorted.find((child) => this.boxes.has(child)) ?? part.sorted[0]),
      ArrowLeft: () => this.step(row, part, -1),
      ArrowRight: () => this.step(row, part, 1),
      Enter: () => this.zoomTo(part),
      " ": () => this.zoomTo(part),
      "+": () => this.zoom(0.6, this.middle(part)),
      "=": () => this.zoom(0.6, this.middle(part)),
      "-": () => this.zoom(1 / 0.6, this.middle(part)),
      Escape: () => this.reset(),
      0: () => this.reset(),
      Home: () => (this.reset(), this.select(this.start.root, true)),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  step(row, part, by) {
    const next = row[row.indexOf(part) + by];
    if (row.includes(part) && next) this.select(next, true);
  }

  // Where the middle of a part is, of the width shown.
  middle(part) {
    const [from, to] = this.view;
    const clipped = [Math.max(part.left, from), Math.min(part.right, to)];
    return Math.min(1, Math.max(0, ((clipped[0] + clipped[1]) / 2 - from) / (to - from)));
  }
}

const longest = (parts) => parts.reduce((most, part) => (part.time > most.time ? part : most));

// The end of a long name tells more than its begin.
function fitted(name, width) {
  if (name.length * CHARACTER < width) return name;
  const last = name.slice(name.lastIndexOf("/") + 1) || name;
  return last !== name && (last.length + 2) * CHARACTER < width ? `…/${last}` : last;
}

function axisTime(microseconds, step) {
  if (step >= 1000) return `${whole.format(microseconds / 1000)} ms`;
  return step >= 10 ? `${(microseconds / 1000).toFixed(step >= 100 ? 1 : 2)} ms` : `${whole.format(microseconds)} µs`;
}

// What is under the mouse.
const tip = {
  show(event, start) {
    const box = event.pointerType === "mouse" && event.target.closest(".box");
    if (!box) return this.hide();
    const place = byId("tip");
    place.replaceChildren(...(box.many ? this.many(box.many, start) : this.one(box.one, start)));
    place.hidden = false;
    const { width, height } = place.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - width - 8);
    const below = event.clientY + 20;
    place.style.left = `${Math.max(8, x)}px`;
    place.style.top = `${below + height > innerHeight - 8 ? event.clientY - height - 12 : below}px`;
  },
  one(part, start) {
    return [element("strong", {}, part.label), element("span", {}, part.kind.label), ...figures(part, start).map((text) => element("span", {}, text))];
  },
  many(parts, start) {
    const sum = parts.reduce((sum, part) => sum + part.time, 0);
    return [element("strong", {}, count(parts.length, "short part")), element("span", {}, `${time(sum)}, ${share(sum, start.total)} of the start`)];
  },
  hide() {
    byId("tip").hidden = true;
  },
};

// What there is to say of a part, in words.
function figures(part, start) {
  const said = [`${time(part.time)}${part.spread ? `\u00a0±\u00a0${time(part.spread)}` : ""}, ${share(part.time, start.total)} of the start`];
  if (part.children.length && part.own) said.push(`${time(part.own)} of it its own`);
  if (part.calls) said.push(count(part.calls, "system call"));
  if (part.lookups) said.push(count(part.lookups, "failed look-up"));
  return said;
}

