// Units that differ: by their labels, who has them, and who asks for them.

import { byId, h, keyed, plural, say } from "./dom.js";

const KINDS_MAX = 24;
const CHIPS_MAX = 48;

const words = (labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(" ");

// What a claim asks for, as the command writes it: "2 with gpu=h100,zone=eu".
export function wanted(lines) {
  const one = ({ where, units }) => {
    const labels = Object.entries(where ?? {}).map(([key, value]) => `${key}=${value}`);
    return labels.length ? `${units} with ${labels.join(",")}` : `${units} of any`;
  };
  return lines.map(one).join(" and ");
}

function kinds(view) {
  const found = new Map();
  view.unit_labels.forEach((labels, unit) => {
    const name = words(labels) || "no labels";
    if (!found.has(name)) found.set(name, { name, labels, units: [] });
    found.get(name).units.push(unit);
  });
  return [...found.values()];
}

// Claims on this page of the queue that could use units of a kind.
function asking(queue, labels) {
  const fits = ({ where }) => Object.entries(where ?? {}).every(([key, value]) => labels[key] === value);
  return queue.filter((waiter) => !waiter.lines?.length || waiter.lines.some(fits)).length;
}

export function drawKinds(pool, place) {
  const { view } = pool;
  const labelled = Boolean(view.unit_labels?.length);
  byId("kinds-card").hidden = !labelled;
  if (!labelled) return;
  const holders = new Map(pool.cells.map((cell) => [cell.unit, cell]));
  const clients = new Map(pool.holders.map((holder) => [holder.id, holder.client]));
  const all = kinds(view);
  say(byId("kinds-count"), all.length > KINDS_MAX ? `${all.length}, the first ${KINDS_MAX} shown` : "");
  keyed(
    byId("kinds"),
    all.slice(0, KINDS_MAX),
    (kind) => kind.name,
    () => h("li", {}, h("b", {}), h("span", {}), h("ul", { class: "chips" })),
    (item, kind) => {
      const held = kind.units.filter((unit) => holders.has(unit)).length;
      const ask = asking(pool.queue, kind.labels);
      say(item.children[0], kind.name);
      say(item.children[1], `${held} of ${kind.units.length} held${ask ? `, ${plural(ask, "claim")} could use them` : ""}`);
      item.children[1].className = ask && held === kind.units.length ? "warn" : "dim";
      drawChips(item.children[2], kind.units, view, holders, clients, place);
    },
  );
}

function drawChips(list, units, view, holders, clients, place) {
  keyed(
    list,
    units.slice(0, CHIPS_MAX),
    (unit) => unit,
    () => h("li", {}),
    (chip, unit) => {
      const cell = holders.get(unit);
      const name = view.unit_names?.[unit] ?? String(unit);
      say(chip, name);
      chip.className = cell ? `chip full c${(place.get(cell.node) ?? 0) % 8}` : "chip";
      const who = cell ? `held by ${clients.get(cell.id) || cell.id} at ${cell.node || "an unknown node"}` : "free";
      if (chip.title !== who) {
        chip.title = who;
        chip.setAttribute("aria-label", `${name}: ${who}`);
      }
    },
  );
}
