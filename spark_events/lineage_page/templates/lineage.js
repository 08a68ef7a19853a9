"use strict";
const { data, links, asked } = JSON.parse(document.getElementById("graph-data").textContent);
const byId = (id) => document.getElementById(id);
const svg = byId("graph"), view = byId("view"), panel = byId("panel"), search = byId("search");
const nodes = [...svg.querySelectorAll(".node")], paths = [...svg.querySelectorAll(".link")];
const notes = nodes.map((node) => node.querySelector(".note").textContent);
const feeding = data.map(() => []), fed = data.map(() => []);
for (const link of links) { feeding[link.sink].push(link); fed[link.source].push(link); }
let chosen = -1, column = "", zoom = 1, reachable = 0;

// ---- what a column comes from and contributes to

const columnsOf = (job) => Object.keys(job.columns);
const isUnknown = (job) => !columnsOf(job).length && !job.influences.length && job.incomplete;

function* after(index, name) {
  for (const link of fed[index]) for (const job of link.jobs) {
    if (job.old) continue;
    if (isUnknown(job)) yield [link, link.sink, "*", "unknown"];
    for (const own of columnsOf(job)) {
      const from = job.columns[own];
      if (from.includes(name) || (name === "*" && from.length)) yield [link, link.sink, own, "value"];
    }
    if (job.influences.includes(name) || (name === "*" && job.influences.length)) yield [link, link.sink, "*", "rows"];
  }
}
function* before(index, name) {
  for (const link of feeding[index]) for (const job of link.jobs) {
    if (job.old) continue;
    if (isUnknown(job)) yield [link, link.source, "*", "unknown"];
    const own = name === "*" ? columnsOf(job) : Object.hasOwn(job.columns, name) ? [name] : [];
    for (const each of own) for (const from of job.columns[each]) yield [link, link.source, from, "value"];
    for (const from of job.influences) yield [link, link.source, from, "rows"];
  }
}
function trace(index, name, next) {
  const found = new Map(), via = new Set(), waiting = [[index, name]], seen = new Set([index + "/" + name]);
  while (waiting.length) {
    for (const [link, end, reached, how] of next(...waiting.shift())) {
      via.add(link);
      const key = end + "/" + reached + "/" + (how === "rows");
      if (!found.has(key)) found.set(key, { end, name: reached, how });
      if (how !== "rows" && !seen.has(end + "/" + reached)) { seen.add(end + "/" + reached); waiting.push([end, reached]); }
    }
  }
  return { found: [...found.values()], via };
}
function whole(index, next) {
  const ends = new Set([index]), via = new Set(), waiting = [index];
  while (waiting.length) {
    const at = waiting.pop();
    for (const link of next === after ? fed[at] : feeding[at]) {
      via.add(link);
      const end = next === after ? link.sink : link.source;
      if (!ends.has(end)) { ends.add(end); waiting.push(end); }
    }
  }
  return { found: [...ends].map((end) => ({ end, name: "", how: "value" })), via };
}

// ---- the panel

function element(tag, text, more = {}) {
  const made = Object.assign(document.createElement(tag), more);
  made.append(text);
  return made;
}
function button(text, act, more) { return element("button", text, { type: "button", onclick: act, ...more }); }
function list(title, items) {
  if (!items.length) return;
  panel.append(element("h3", title));
  const made = document.createElement("ul");
  for (const parts of items) { const item = document.createElement("li"); item.append(...parts); made.append(item); }
  panel.append(made);
}
function jobsOf(link, end) {
  const lines = link.jobs.map((job) => element("div", job.old ? job.job + " (no longer)" : job.job, { className: "faint", title: job.about }));
  return [button(data[end].title, () => choose(end, "")), ...lines];
}
const words = { value: "", rows: " decides which rows there are", unknown: " unknown: its lineage has no columns" };
function columnItem({ end, name, how }, toRows) {
  const shown = how === "rows" && toRows ? data[end].title : data[end].title + "." + name;
  const act = name === "*" ? () => choose(end, "") : () => choose(end, name);
  const about = how === "rows" && toRows ? " which rows it has" : words[how];
  return [button(shown, act), ...(about ? [element("span", about, { className: "faint" })] : [])];
}
const ordered = (found) => [...found].sort((one, other) => (one.how === "rows") - (other.how === "rows"));
function showPanel(up, down) {
  panel.replaceChildren();
  const table = data[chosen];
  panel.append(element("h2", column ? table.title + "." + column : table.title));
  panel.append(element("p", [table.place, table.note].filter(Boolean).join(" · "), { className: "faint" }));
  panel.append(button("Clear", () => choose(-1, ""), { id: "clear" }));
  if (column) {
    list("Comes from", ordered(up.found).map((each) => columnItem(each, false)));
    list("Contributes to", ordered(down.found).map((each) => columnItem(each, true)));
    if (!up.found.length && !down.found.length) panel.append(element("p", "No job is known to read it or to compute it."));
  }
  list("Columns", table.columns.map((name) => [button(name, () => choose(chosen, name), { className: "column", ariaPressed: String(name === column) })]));
  if (!column) {
    list("Fed by", feeding[chosen].map((link) => jobsOf(link, link.source)));
    list("Feeds", fed[chosen].map((link) => jobsOf(link, link.sink)));
  }
}

// ---- choosing

function choose(index, name, isFromAddress = false) {
  chosen = index; column = name;
  const up = index < 0 ? null : name ? trace(index, name, before) : whole(index, before);
  const down = index < 0 ? null : name ? trace(index, name, after) : whole(index, after);
  const lit = new Map();
  if (index >= 0) {
    for (const { end, name: reached, how } of [...up.found, ...down.found]) {
      if (!lit.has(end)) lit.set(end, new Set());
      if (reached) lit.get(end).add(how === "rows" && reached === "*" ? "rows" : reached);
    }
    lit.set(index, new Set(name ? [...(lit.get(index) || []), name] : []));
    showPanel(up, down);
  } else { panel.replaceChildren(byId("hint").content.cloneNode(true)); }
  svg.classList.toggle("tracing", index >= 0);
  nodes.forEach((node, place) => {
    const names = lit.get(place);
    node.classList.toggle("lit", names !== undefined);
    node.classList.toggle("chosen", place === index);
    node.setAttribute("aria-pressed", String(place === index));
    node.querySelector(".note").textContent = names && names.size ? shorten([...names].join(", ")) : notes[place];
  });
  links.forEach((link, place) => paths[place].classList.toggle("lit", index >= 0 && (up.via.has(link) || down.via.has(link))));
  if (index >= 0) { reach(index); show(index); }
  if (!isFromAddress) location.hash = index < 0 ? "" : [data[index].key, ...(name ? [name] : [])].map(encodeURIComponent).join("&");
}
const shorten = (text) => (text.length > 34 ? text.slice(0, 33) + "…" : text);
function followAddress() {
  const [key, name = ""] = location.hash.slice(1).split("&").map(decodeURIComponent);
  const index = data.findIndex((each) => each.key === key);
  if (index !== chosen || name !== column) choose(index, index < 0 ? "" : name, true);
}
function reach(index) {
  nodes[reachable].setAttribute("tabindex", "-1");
  nodes[index].setAttribute("tabindex", "0");
  reachable = index;
}
function show(index) {
  const box = nodes[index].getBoundingClientRect(), frame = view.getBoundingClientRect();
  if (box.left < frame.left || box.right > frame.right) view.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
  if (box.top < frame.top || box.bottom > frame.bottom) view.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
}

// ---- keys, search, zoom

const centers = nodes.map((node) => node.transform.baseVal[0].matrix);
function neighbor(index, key) {
  if (key === "ArrowLeft") return feeding[index].find((link) => link.source !== index)?.source;
  if (key === "ArrowRight") return fed[index].find((link) => link.sink !== index)?.sink;
  const down = key === "ArrowDown", { e, f } = centers[index];
  const column = centers.map((at, place) => ({ at, place })).filter(({ at }) => at.e === e && (down ? at.f > f : at.f < f));
  return column.sort((one, other) => (down ? one.at.f - other.at.f : other.at.f - one.at.f))[0]?.place;
}
svg.addEventListener("click", (event) => {
  const node = event.target.closest(".node");
  choose(node ? nodes.indexOf(node) : -1, "");
});
svg.addEventListener("keydown", (event) => {
  const index = nodes.indexOf(event.target.closest(".node"));
  if (index < 0) return;
  if (event.key === "Enter" || event.key === " ") choose(index, "");
  else if (event.key.startsWith("Arrow")) {
    const next = neighbor(index, event.key);
    if (next !== undefined) { reach(next); nodes[next].focus({ preventScroll: true }); show(next); }
  } else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search) { search.focus(); event.preventDefault(); }
  if (event.key === "Escape" && event.target !== search) choose(column ? chosen : -1, "");
});
const MOST = 50;
function results() {
  const asked = search.value.trim().toLowerCase(), found = [];
  if (asked) data.forEach((table, index) => {
    if (table.title.toLowerCase().includes(asked) || table.place.toLowerCase().includes(asked)) found.push([index, ""]);
    for (const name of table.columns) if (name.toLowerCase().includes(asked) || (table.title + "." + name).toLowerCase() === asked) found.push([index, name]);
  });
  return found.sort((one, other) => Boolean(one[1]) - Boolean(other[1]));
}
search.addEventListener("input", () => {
  const found = results();
  byId("results").replaceChildren(...found.slice(0, MOST).map(([index, name]) => {
    const item = document.createElement("li");
    item.append(button(name ? data[index].title + "." + name : data[index].title, () => choose(index, name)));
    return item;
  }));
  byId("count").textContent = search.value.trim() ? found.length + (found.length === 1 ? " match" : " matches") + (found.length > MOST ? ", the first " + MOST + " here" : "") : "";
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") { const first = results()[0]; if (first) choose(...first); }
  if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); }
});
const width = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
function zoomTo(to) {
  const middle = [(view.scrollLeft + view.clientWidth / 2) / zoom, (view.scrollTop + view.clientHeight / 2) / zoom];
  zoom = Math.min(3, Math.max(0.02, to));
  svg.style.width = width * zoom + "px"; svg.style.height = height * zoom + "px";
  view.scrollTo(middle[0] * zoom - view.clientWidth / 2, middle[1] * zoom - view.clientHeight / 2);
}
// All of it, or all that is lit.
function area() {
  const places = centers.filter((_, place) => chosen < 0 || nodes[place].classList.contains("lit"));
  const xs = places.map((at) => at.e), ys = places.map((at) => at.f);
  const box = chosen < 0 ? { x: 0, y: 0, right: width, bottom: height } : { x: Math.min(...xs), y: Math.min(...ys), right: Math.max(...xs) + 230, bottom: Math.max(...ys) + 44 };
  return { ...box, zoom: Math.min(1.2, view.clientWidth / (box.right - box.x + 20), view.clientHeight / (box.bottom - box.y + 20)) };
}
function fit() {
  const box = area();
  zoomTo(box.zoom);
  view.scrollTo(((box.x + box.right) / 2) * zoom - view.clientWidth / 2, ((box.y + box.bottom) / 2) * zoom - view.clientHeight / 2);
}
byId("in").onclick = () => zoomTo(zoom * 1.25);
byId("out").onclick = () => zoomTo(zoom / 1.25);
byId("fit").onclick = fit;
byId("real").onclick = () => zoomTo(1);
// Letters stay legible: what does not fit is scrolled.
const wide = view.clientWidth / (width + 20);
zoomTo(wide >= 0.7 ? Math.min(1.2, wide) : 0.85);
view.scrollTo(0, 0);
for (const control of document.querySelectorAll("[hidden].control")) control.hidden = false;
addEventListener("hashchange", followAddress);
choose(-1, "", true);
if (location.hash.length > 1) followAddress();
else if (asked) choose(asked.index, asked.column, true);
