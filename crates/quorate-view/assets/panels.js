// The parts of the dashboard, each drawn from the latest overview.

import { grants, waits } from "./charts.js";
import { byId, h, keyed, plural, s, say, span } from "./dom.js";
import { wanted } from "./kinds.js";

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const short = (id) => `${id.slice(0, 4)}…${id.slice(-6)}`;
const dash = (text) => text || "–";

// A cell whose text may change.
function cell(row, index, text, title) {
  const child = row.children[index];
  say(child, String(text));
  if (title !== undefined && child.title !== title) child.title = title;
}

export function drawMembers(view) {
  const names = view.nodes.map((node) => node.name);
  keyed(
    byId("members"),
    view.nodes,
    (node) => node.name,
    () => h("li", {}, h("span", { class: "dot" }), h("b", {}), h("span", { class: "state" }), h("span", { class: "dim" }), h("span", { class: "sees" })),
    (item, node) => {
      const [state, kind] = health(node);
      item.className = kind;
      say(item.children[1], node.name);
      say(item.children[2], state);
      const start = node.boot ? `start ${node.boot}, ` : "";
      say(item.children[3], node.answers ? `${start}${plural(node.claims, "claim")}, ${plural(node.clients, "client")}` : (node.problem ?? ""));
      const sees = node.sees.map((sight, place) => ({ ...sight, name: names[place] })).filter((sight) => sight.name !== node.name);
      const blind = sees.filter((sight) => !sight.connected || sight.suspected).map((sight) => sight.name);
      const far = sees.filter((sight) => sight.connected && sight.latency_us).map((sight) => sight.latency_us);
      const range = far.length ? ` within ${milli(Math.max(...far))}` : "";
      if (!node.answers) say(item.children[4], "");
      else if (blind.length) say(item.children[4], `does not see ${blind.join(", ")}`);
      else say(item.children[4], `sees all${range}`);
      item.title = sees.map((sight) => `${sight.name}: ${sight.connected ? (sight.latency_us ? milli(sight.latency_us) : "connected") : "not seen"}`).join("\n");
      item.children[4].className = blind.length ? "sees bad" : "sees dim";
    },
  );
}

function milli(micros) {
  return `${(micros / 1000).toFixed(micros < 9950 ? 1 : 0)}ms`;
}

function health(node) {
  if (!node.answers) return ["does not answer", "down"];
  if (node.grace_ms > 0) return [`grace, ${span(node.grace_ms)} left`, "grace"];
  if (!node.ready) return ["not ready", "grace"];
  return ["ready", "up"];
}

export function drawRows(view, chosen, choose) {
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
      say(count, `${pool.held}/${pool.units}`);
      meter.firstChild.setAttribute("width", Math.min(100, (100 * pool.held) / pool.units));
      say(more, pool.waiting ? `${pool.waiting} waiting` : "");
      more.className = pool.waiting ? "warn" : "dim";
      if (pool.name === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    },
  );
  say(byId("pools-count"), String(view.pools_found));
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
  say(byId("facts"), facts.join(" · "));
  const warnings = [];
  if (view.grace_ms) warnings.push(`Grace: nothing is granted for ${span(view.grace_ms)}, until promises of an earlier start are over.`);
  const silent = nodes.filter((node) => !node.answers).map((node) => node.name);
  if (silent.length) warnings.push(`No answer from ${silent.join(", ")}: what is shown may be incomplete.`);
  say(byId("warning"), warnings.join(" "));
  say(byId("grants-now"), grants(byId("grants"), pool.chart));
  say(byId("waits-now"), waits(byId("waits"), pool.chart));
  drawLog(byId("events"), pool.events.slice(0, 30), false);
}

export function drawHolders(pool, revoke) {
  say(byId("holders-count"), pool.holders_found ? String(pool.holders_found) : "nobody");
  keyed(
    byId("holders"),
    pool.holders,
    (holder) => holder.id,
    (holder) => {
      const button = h("button", { type: "button", class: "quiet", "aria-label": `Revoke the claim of ${holder.client || holder.id}` }, "revoke");
      const row = h("tr", {}, ...Array.from({ length: 8 }, (_, i) => h("td", { class: [3, 4, 5].includes(i) ? "n" : i === 7 ? "mono" : null })), h("td", {}, button));
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
      cell(row, 5, span(holder.expires_in_ms));
      row.children[5].classList.toggle("warn", holder.expires_in_ms !== undefined && holder.expires_in_ms < 2000);
      cell(row, 6, dash(holder.node));
      cell(row, 7, short(holder.id), holder.id);
    },
  );
}

export function drawQueue(pool, revoke, why) {
  const more = pool.unlisted ? `, ${pool.unlisted} of them not listed` : "";
  say(byId("queue-count"), pool.queue_found ? `${pool.queue_found + pool.unlisted}${more}` : "nobody");
  const free = Math.max(0, pool.view.units - pool.view.held);
  keyed(
    byId("queue"),
    pool.queue,
    (waiter) => waiter.id,
    () => {
      const explain = h("button", { type: "button", class: "quiet" }, "why");
      const end = h("button", { type: "button", class: "quiet" }, "revoke");
      const row = h("tr", {}, ...Array.from({ length: 8 }, (_, i) => h("td", { class: [0, 3, 4].includes(i) ? "n" : i === 7 ? "mono" : null })), h("td", {}, explain, end));
      explain.addEventListener("click", () => why(row.item));
      end.addEventListener("click", () => revoke(row.item));
      return row;
    },
    (row, waiter) => {
      row.item = waiter;
      const missing = waiter.count - free;
      const first = waiter.position === 1;
      const ahead = (waiter.position ?? 1) - 1;
      const what = pool.view.grace_ms ? "grace"
        : waiter.position === undefined ? "an answer of the arbiter"
        : waiter.lines?.length ? `${wanted(waiter.lines)}${ahead ? `, ${ahead} ahead` : ""}`
        : missing > 0 ? `${plural(missing, "unit")}${ahead ? `, ${ahead} ahead` : ""}` : first ? "its grant, any moment" : `${ahead} ahead`;
      cell(row, 0, waiter.position ?? "–");
      cell(row, 1, dash(waiter.client));
      cell(row, 2, dash(waiter.reason));
      cell(row, 3, waiter.count, wanted(waiter.lines ?? []));
      cell(row, 4, span(waiter.waiting_ms));
      cell(row, 5, what);
      cell(row, 6, dash(waiter.node));
      cell(row, 7, short(waiter.id), waiter.id);
      row.lastChild.firstChild.setAttribute("aria-label", `Why does ${waiter.client || waiter.id} wait?`);
      row.lastChild.lastChild.setAttribute("aria-label", `Revoke the claim of ${waiter.client || waiter.id}`);
    },
  );
}

const BAD = new Set(["expired", "revoked", "missed", "suspected", "stopped", "reclaimed", "refused", "warned"]);

export function sentence(event) {
  const { what, node, who, text } = event;
  const units = event.units ? ` ${plural(event.units, "unit")}` : "";
  const took = event.waited_ms !== undefined ? (event.waited_ms < 1 ? " at once" : ` after ${span(event.waited_ms)}`) : event.held_ms !== undefined ? `, held ${span(event.held_ms)}` : "";
  const why = text ? `: ${text}` : "";
  if (what === "started") return `${node} started (${text})`;
  if (["met", "missed", "suspected", "trusted"].includes(what)) {
    return `${node} ${{ met: "met", missed: "lost", suspected: "suspects", trusted: "trusts" }[what]} ${who}${why}`;
  }
  return `${who || node} ${what}${units}${took}${why}`;
}

export function eventKey(event) {
  return [event.at_ms, event.node, event.what, event.pool ?? "", event.id ?? "", event.who ?? ""].join("|");
}

export function drawLog(list, events, pools) {
  keyed(list, events, eventKey, (event) =>
    h("li", { class: BAD.has(event.what) ? "bad" : event.what === "granted" ? "good" : null },
      h("time", { datetime: new Date(event.at_ms).toISOString() }, clock.format(event.at_ms)),
      h("span", {}, pools && event.pool ? h("b", {}, `${event.pool} `) : null, sentence(event))));
}
