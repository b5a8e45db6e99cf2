// The parts of the dashboard, each drawn from the latest overview.

import { grants, waits } from "./charts.js";
import { byId, h, keyed, plural, s, say, span } from "./dom.js";
import { awaited, business, grouped, health, hindered, nodesSum, sentence, started, wanted, where } from "./words.js";

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const short = (id) => `${id.slice(0, 4)}…${id.slice(-6)}`;
const dash = (text) => text || "–";
const LOG_MAX = 40;

// A cell whose text may change. What does not fit is in its title.
function cell(row, index, text, title) {
  const child = row.children[index];
  say(child, String(text));
  const about = title ?? String(text);
  if (child.title !== about) child.title = about;
}

// Cells with the names of their columns, for screens on which a row is a card.
function cells(names, numbers, mono) {
  return names.map((name, index) => {
    const kinds = [numbers.includes(index) ? "n" : null, index === mono ? "mono" : null].filter(Boolean);
    return h("td", { "data-name": name, class: kinds.join(" ") || null });
  });
}

export function drawMembers(view) {
  const names = view.nodes.map((node) => node.name);
  const sum = byId("nodes-sum");
  say(sum, nodesSum(view.nodes));
  const well = view.nodes.every((node) => node.answers && node.ready);
  sum.className = well ? "dim" : view.nodes.every((node) => node.answers) ? "warn" : "bad";
  keyed(
    byId("members"),
    view.nodes,
    (node) => node.name,
    () => h("li", {}, h("b", {}), h("span", { class: "state" }), h("span", { class: "dim" }), h("span", { class: "sees" })),
    (item, node) => {
      const [state, kind] = health(node);
      item.className = kind;
      const [name, how, does, seen] = item.children;
      say(name, node.name);
      say(how, state);
      say(does, node.answers ? business(node) : (node.problem ?? ""));
      const sees = node.sees.map((sight, place) => ({ ...sight, name: names[place] })).filter((sight) => sight.name !== node.name);
      const blind = sees.filter((sight) => !sight.connected || sight.suspected).map((sight) => sight.name);
      const far = sees.filter((sight) => sight.connected && sight.latency_us).map((sight) => sight.latency_us);
      const range = far.length ? ` within ${milli(Math.max(...far))}` : "";
      if (!node.answers) say(seen, "");
      else if (blind.length) say(seen, `does not see ${blind.join(", ")}`);
      else say(seen, `sees all${range}`);
      const about = [node.boot ? started(node.boot) : "", `${plural(node.clients, "client")} connected, ${node.unconnected ?? 0} over HTTP or away`];
      const others = sees.map((sight) => `${sight.name}: ${sight.connected ? (sight.latency_us ? milli(sight.latency_us) : "connected") : "not seen"}`);
      item.title = [...about, ...others].filter(Boolean).join("\n");
      seen.className = blind.length ? "sees bad" : "sees dim";
    },
  );
}

function milli(micros) {
  return `${(micros / 1000).toFixed(micros < 9950 ? 1 : 0)}ms`;
}

export function drawRows(view, screen, choose, seek) {
  keyed(
    byId("rows"),
    view.pools,
    (pool) => pool.name,
    (pool) =>
      h("li", {},
        h("button", { type: "button", onclick: () => choose(pool.name) },
          h("span", { class: "name" }), h("span", { class: "n" }),
          s("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { height: 4, class: "meter" })),
          h("span", { class: "dim" }))),
    (item, pool) => {
      const button = item.firstChild;
      const [name, count, meter, more] = button.children;
      say(name, pool.name);
      if (name.title !== pool.name) name.title = pool.name;
      say(count, `${pool.held}/${pool.units}`);
      meter.firstChild.setAttribute("width", Math.min(100, (100 * pool.held) / pool.units));
      const waiting = pool.waiting ? `${pool.waiting} waiting, oldest ${span(pool.oldest_ms)}` : "";
      const [stalled] = hindered(pool.grants);
      say(more, [stalled ? "grants nothing" : "", waiting].filter(Boolean).join("; "));
      more.className = stalled ? "bad" : pool.waiting ? "warn" : "dim";
      if (pool.name === screen.pool) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    },
  );
  say(byId("pools-count"), String(view.pools_found));
  const stalled = screen.only === "unavailable" ? 0 : view.pools_unavailable;
  const outage = byId("pools-stalled");
  say(outage, `${plural(stalled ?? 0, "pool")} ${stalled === 1 ? "grants" : "grant"} nothing`);
  outage.hidden = !stalled;
  const patterns = view.patterns ?? [];
  byId("patterns-box").hidden = !patterns.length;
  keyed(byId("patterns"), patterns, (one) => one.pattern, (one) => {
    const part = one.pattern.split("*").sort((a, b) => b.length - a.length)[0];
    return h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => seek(part) }, one.pattern), h("span", { class: "dim" }, `${plural(one.units, "unit")} each, ${one.protocol}`));
  });
  const narrowed = screen.search || screen.only;
  const demand = patterns.length ? " Pools of a pattern appear here when they are first used." : "";
  say(byId("rows-none"), view.pools.length ? "" : narrowed ? "No pool in use is like that." : `No pools yet.${demand}`);
}

// Buttons to the pages before and after; nothing if all fits on one.
export function drawPages(box, page, found, size, go) {
  const pages = Math.ceil(found / size);
  if (pages <= 1 && page === 0) return box.replaceChildren();
  if (!box.children.length) {
    box.append(h("button", { type: "button" }, "previous"), h("span", { class: "dim" }), h("button", { type: "button" }, "next"));
  }
  const [back, text, next] = box.children;
  say(text, `page ${page + 1} of ${Math.max(1, pages)}`);
  back.disabled = page <= 0;
  next.disabled = page + 1 >= pages;
  back.onclick = () => go(page - 1);
  next.onclick = () => go(page + 1);
}

export function drawPool({ pool, nodes }) {
  const { view } = pool;
  say(byId("pool-title"), view.name);
  const facts = [
    view.protocol, `${view.held} of ${view.units} units held`, `${view.waiting} waiting`,
    `lease ${span(view.lease_ms)}`, view.durable ? "durable" : "in memory",
  ];
  if (view.terms) facts.push(view.terms);
  say(byId("facts"), facts.join(" · "));
  const [stalled, hindrance] = hindered(view.grants);
  say(byId("stalled"), stalled ? hindrance : "");
  const warnings = [...(view.troubles ?? [])];
  if (hindrance && !stalled) warnings.unshift(hindrance);
  if (view.grace_ms && !stalled) warnings.push(`Grace: ${span(view.grace_ms)} left until promises of an earlier start are over.`);
  const silent = nodes.filter((node) => !node.answers).map((node) => node.name);
  if (silent.length) warnings.push(`No answer from ${silent.join(", ")}: what is shown may be incomplete.`);
  keyed(byId("warnings"), warnings, (text) => text.replace(/[0-9]/g, ""), () => h("li", {}), (item, text) => {
    say(item, text);
    item.className = text.startsWith("ALARM") || silent.length ? "bad" : "warn";
  });
  say(byId("grants-now"), grants(byId("grants"), pool.chart));
  say(byId("waits-now"), waits(byId("waits"), pool.chart, pool.still));
  drawLog(byId("events"), pool.events, false);
  say(byId("events-none"), pool.events.length ? "" : "Nothing yet, as far as the nodes remember. Claims, grants, releases and what was lost will appear here.");
}

export function drawHolders(pool, search, revoke) {
  say(byId("holders-count"), String(pool.holders_found));
  say(byId("holders-none"), pool.holders_found ? "" : search ? "No holder has that in its name, purpose, node or id." : "Nobody. Whoever is granted units will appear here, with units, fence and lease.");
  keyed(
    byId("holders"),
    pool.holders,
    (holder) => holder.id,
    (holder) => {
      const button = h("button", { type: "button", class: "quiet", "aria-label": `Revoke the claim of ${holder.client || holder.id}` }, "revoke");
      const names = ["who", "what for", "units", "fence", "held for", "lease left", "node", "claim"];
      const row = h("tr", {}, ...cells(names, [3, 4, 5], 7), h("td", { class: "does" }, button));
      button.addEventListener("click", () => revoke(row.item));
      return row;
    },
    (row, holder) => {
      row.item = holder;
      const units = holder.units.map((unit) => `${unit.name ?? unit.unit}`);
      const fences = [...new Set(holder.units.map((unit) => unit.fence))];
      const about = holder.units.map((unit) => `${unit.name ?? unit.unit} fence ${unit.fence}`).join("\n");
      cell(row, 0, dash(holder.client));
      cell(row, 1, dash(holder.reason));
      cell(row, 2, units.length > 6 || !units.length ? plural(holder.count, "unit") : units.join(", "), about);
      cell(row, 3, fences.length > 1 ? `${fences[0]}, …` : (fences[0] ?? "–"), about);
      cell(row, 4, span(holder.held_ms));
      cell(row, 5, holder.overdue ? "overdue" : holder.standing ? "no lease" : span(holder.expires_in_ms));
      const soon = holder.expires_in_ms !== undefined && holder.expires_in_ms < 2000;
      row.children[5].classList.toggle("warn", soon || holder.overdue === true);
      cell(row, 6, dash(holder.node));
      cell(row, 7, short(holder.id), holder.id);
    },
  );
}

export function drawQueue(pool, search, revoke, why) {
  const more = pool.unlisted ? `, ${pool.unlisted} of them not listed` : "";
  say(byId("queue-count"), `${pool.queue_found + pool.unlisted}${more}`);
  say(byId("queue-none"), pool.queue_found ? "" : search ? "No claim that waits has that in its name, purpose, node or id." : "Nobody. A claim that cannot be granted at once will appear here, with its place and what it waits for.");
  keyed(
    byId("queue"),
    pool.queue,
    (waiter) => waiter.id,
    () => {
      const explain = h("button", { type: "button", class: "quiet" }, "why");
      const end = h("button", { type: "button", class: "quiet" }, "revoke");
      const names = ["place", "who", "what for", "units", "waiting", "waits for", "node", "claim"];
      const row = h("tr", {}, ...cells(names, [0, 3, 4], 7), h("td", { class: "does" }, explain, end));
      explain.addEventListener("click", () => why(row.item));
      end.addEventListener("click", () => revoke(row.item));
      return row;
    },
    (row, waiter) => {
      row.item = waiter;
      cell(row, 0, waiter.position ?? "–", waiter.position === undefined ? "it has no place in a queue" : "its place in the queue");
      cell(row, 1, dash(waiter.client));
      cell(row, 2, dash(waiter.reason));
      cell(row, 3, waiter.count, waiter.lines?.length ? wanted(waiter.lines) : undefined);
      cell(row, 4, span(waiter.waiting_ms));
      cell(row, 5, awaited(waiter, pool.view));
      cell(row, 6, dash(waiter.node));
      cell(row, 7, short(waiter.id), waiter.id);
      row.lastChild.firstChild.setAttribute("aria-label", `Why does ${waiter.client || waiter.id} wait?`);
      row.lastChild.lastChild.setAttribute("aria-label", `Revoke the claim of ${waiter.client || waiter.id}`);
    },
  );
}

const BAD = new Set(["expired", "revoked", "missed", "suspected", "stopped", "reclaimed", "refused", "warned"]);

export function eventKey(event) {
  return [event.at_ms, event.node, event.what, event.pool ?? "", event.id ?? "", event.who ?? ""].join("|");
}

export function drawLog(list, events, pools) {
  const lines = grouped(events);
  const shown = lines.slice(0, LOG_MAX);
  if (lines.length > LOG_MAX) shown.push({ key: "more", more: lines.length - LOG_MAX });
  keyed(list, shown, (line) => line.key, ({ event }) => {
    if (!event) return h("li", { class: "dim" }, h("span", {}), h("span", {}));
    const kind = BAD.has(event.what) ? "bad" : event.what === "granted" ? "good" : null;
    const pool = pools && event.pool ? h("b", {}, `${where(event)} `) : null;
    return h("li", { class: kind }, h("time", {}), h("span", {}, pool, sentence(event), h("b", {})));
  }, (item, { event, times, more }) => {
    if (!event) return say(item.lastChild, `and ${more} older`);
    const at = new Date(event.at_ms).toISOString();
    if (item.firstChild.dateTime !== at) item.firstChild.dateTime = at;
    say(item.firstChild, clock.format(event.at_ms));
    say(item.lastChild.lastChild, times > 1 ? ` ×${times}` : "");
  });
}
