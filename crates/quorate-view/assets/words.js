// What the page says, in words: from what a node told, without a document.

import { plural, span } from "./dom.js";

// What a claim asks for, as the command writes it: "2 with gpu=h100,zone=eu".
export function wanted(lines) {
  const one = ({ where, units }) => {
    const labels = Object.entries(where ?? {}).map(([key, value]) => `${key}=${value}`);
    return labels.length ? `${units} with ${labels.join(",")}` : `${units} of any`;
  };
  return lines.map(one).join(" and ");
}

// What a claim waits for. A claim with no place is in nobody's books; its protocol has words for
// that.
export function awaited(waiter, view) {
  if (view.grace_ms) return "old promises to end";
  const { position, lines, count } = waiter;
  if (position === undefined) {
    const what = view.protocol === "ring" ? `${plural(count, "free token")} to come round` : view.awaits;
    return what || "an answer";
  }
  const ahead = position > 1 ? `, ${position - 1} ahead` : "";
  if (lines?.length) return `${wanted(lines)}${ahead}`;
  const missing = count - Math.max(0, view.units - view.held - (view.drained?.length ?? 0));
  if (missing > 0) return `${plural(missing, "unit")}${ahead}`;
  return position > 1 ? `its turn${ahead}` : "its grant, any moment";
}

// What is in the way of all claims, or of some: [nothing is granted, why]. A node that does not say
// which claims can be granted says nothing of that.
export function hindered(grants) {
  const why = grants?.hindrance?.summary;
  if (!grants || !why) return [false, ""];
  if (grants.largest === 0) return [true, `This pool grants nothing now: ${why}.`];
  const { smallest, largest } = grants;
  const some = smallest > 1 ? `${smallest} to ${plural(largest, "unit")}` : `at most ${plural(largest, "unit")}`;
  return [false, `Only claims of ${some} can be granted now: ${why}.`];
}

const NODES = { met: "met", missed: "lost", suspected: "suspects", trusted: "trusts" };

export function sentence(event) {
  const { what, node, who, text } = event;
  const units = event.units ? ` ${plural(event.units, "unit")}` : "";
  const waited = event.waited_ms < 1 ? " at once" : ` after ${span(event.waited_ms)}`;
  const held = event.held_ms !== undefined ? `, held ${span(event.held_ms)}` : "";
  const took = event.waited_ms !== undefined ? waited : held;
  const why = text ? `: ${text}` : "";
  if (what === "started") return `${node} started (${text})`;
  // What a node says of its own seat is said by the node; the colour tells whether it is good news.
  if (what === "warned" || what === "cleared" || what === "seated" || what === "amended") return `${node}: ${text}`;
  if (what === "member") return `${who} ${text}`;
  if (NODES[what]) return `${node} ${NODES[what]} ${who}${why}`;
  return `${who || node} ${what}${units}${took}${why}`;
}

// In which pools something happened: one by name, and how many more.
export function where(event) {
  if (!event.pool) return "";
  return event.more_pools ? `${event.pool} and ${plural(event.more_pools, "more pool")}` : event.pool;
}

// Events that read the same are one, at the last time, with how often.
export function grouped(events) {
  const found = new Map();
  for (const event of events) {
    const key = `${where(event)}|${event.what}|${sentence(event)}`;
    const first = found.get(key);
    if (first) first.times += event.times ?? 1;
    else found.set(key, { key, event, times: event.times ?? 1 });
  }
  return [...found.values()];
}

// How long claims waited in the last minute: those that were granted, and those that still wait.
export function waitedLately(chart, still) {
  const recent = chart.slice(-6);
  const count = recent.reduce((sum, point) => sum + point.granted, 0) + (still?.waiting ?? 0);
  const sum = recent.reduce((total, point) => total + point.waited_ms * point.granted, 0) + (still?.waiting ?? 0) * (still?.waited_ms ?? 0);
  if (!count) return "nobody waits, and nothing was granted lately";
  const average = `${span(sum / count)} on average lately`;
  return still?.waiting ? `${average}, counting ${still.waiting} who still ${still.waiting === 1 ? "waits" : "wait"}, the oldest ${span(still.waited_max_ms)}` : average;
}

// The smallest of 1, 2, 5, 10, 20, 50... that is not below.
export function ceiling(value) {
  let step = 1;
  for (;;) {
    for (const top of [step, 2 * step, 5 * step]) if (top >= value) return top;
    step *= 10;
  }
}

// The same for a span in milliseconds: round seconds, minutes and hours.
export function spanCeiling(ms) {
  for (const unit of [1, 1000, 60_000]) {
    const top = [1, 2, 4, 10, 20, 30, 60].map((part) => part * unit).find((part) => part >= ms);
    if (top) return Math.max(2, top);
    if (unit === 1 && ms <= 1000) return ceiling(ms);
  }
  return ceiling(ms / 3_600_000) * 3_600_000;
}

export function health(node) {
  if (!node.answers) return ["does not answer", "down"];
  if (node.grace_ms > 0) return [`grace, ${span(node.grace_ms)} left`, "grace"];
  if (!node.ready) return ["not ready", "grace"];
  return ["ready", "up"];
}

// How often a node was started; one that lost its count goes on from the clock, beyond any count.
export function started(number) {
  return number < 100_000 ? `start ${number}` : `start number ${number} by the clock, as no count is kept`;
}

// All nodes in one line.
export function nodesSum(nodes) {
  const not = nodes.map((node) => [node.name, ...health(node)]).filter(([, , kind]) => kind !== "up");
  if (!not.length) return `all ${nodes.length} ready`;
  return `${nodes.length - not.length} of ${nodes.length} ready; ${not.map(([name, state]) => `${name} ${state}`).join("; ")}`;
}

// Who uses a node: claims, and whose they are.
export function business({ claims, clients, unconnected }) {
  if (!claims && !clients) return "no claims";
  const all = clients + (unconnected ?? 0);
  return `${plural(claims, "claim")} of ${plural(all, "client")}`;
}
