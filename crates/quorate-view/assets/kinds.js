// Units by their labels: who has them, who asks for them, which are short, which are drained.

import { byId, h, keyed, plural, say } from "./dom.js";

const KINDS_MAX = 24;
const CHIPS_MAX = 48;
// As many as the node tells one by one.
const UNITS_MAX = 256;

const words = (labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(" ");

// What a claim asks for, as the command writes it: "2 with gpu=h100,zone=eu".
export function wanted(lines) {
  const one = ({ where, units }) => {
    const labels = Object.entries(where ?? {}).map(([key, value]) => `${key}=${value}`);
    return labels.length ? `${units} with ${labels.join(",")}` : `${units} of any`;
  };
  return lines.map(one).join(" and ");
}

// Units with the same labels, together.
function kinds(view) {
  const found = new Map();
  for (let unit = 0; unit < view.units; unit++) {
    const labels = view.unit_labels?.[unit] ?? {};
    const name = words(labels) || (view.unit_labels?.length ? "no labels" : "all alike");
    if (!found.has(name)) found.set(name, { name, labels, units: [] });
    found.get(name).units.push(unit);
  }
  return [...found.values()];
}

// Claims on this page of the queue that could use units of a kind.
function asking(queue, labels) {
  const fits = ({ where }) => Object.entries(where ?? {}).every(([key, value]) => labels[key] === value);
  return queue.filter((waiter) => !waiter.lines?.length || waiter.lines.some(fits)).length;
}

export function drawKinds(pool, place, drain) {
  const { view } = pool;
  const shown = view.names_units && view.units <= UNITS_MAX;
  byId("kinds-card").hidden = !shown;
  if (!shown) return;
  const all = kinds(view);
  say(byId("kinds-count"), all.length > KINDS_MAX ? `${all.length} kinds, the first ${KINDS_MAX} shown` : "");
  const shortages = view.shortages ?? [];
  keyed(byId("shortages"), shortages.slice(0, 4), (short) => short.summary, (short) => h("li", {}, short.summary));
  const about = {
    names: view.unit_names ?? [],
    holders: new Map(pool.cells.map((cell) => [cell.unit, cell])),
    clients: new Map(pool.holders.map((holder) => [holder.id, holder.client])),
    drained: new Set(view.drained ?? []),
    short: new Set(shortages.flatMap((short) => short.units)),
    place,
    drain,
  };
  keyed(
    byId("kinds"),
    all.slice(0, KINDS_MAX),
    (kind) => kind.name,
    () => h("li", {}, h("b", {}), h("span", {}), h("ul", { class: "chips" })),
    (item, kind) => {
      const held = kind.units.filter((unit) => about.holders.has(unit)).length;
      const ask = asking(pool.queue, kind.labels);
      say(item.children[0], kind.name);
      say(item.children[1], `${held} of ${kind.units.length} held${ask ? `, ${plural(ask, "claim")} could use them` : ""}`);
      item.children[1].className = ask && held === kind.units.length ? "warn" : "dim";
      drawChips(item.children[2], kind.units, about);
    },
  );
}

function drawChips(list, units, about) {
  keyed(
    list,
    units.slice(0, CHIPS_MAX),
    (unit) => unit,
    () => {
      const button = h("button", { type: "button" });
      const chip = h("li", {}, button);
      button.addEventListener("click", () => chip.ask());
      return chip;
    },
    (chip, unit) => {
      const cell = about.holders.get(unit);
      const name = about.names[unit] ?? String(unit);
      const drained = about.drained.has(name);
      chip.ask = () => about.drain(name, drained);
      say(chip.firstChild, name);
      const colour = cell ? ` full c${(about.place.get(cell.node) ?? 0) % 8}` : "";
      chip.className = `chip${colour}${drained ? " drained" : ""}${about.short.has(name) ? " short" : ""}`;
      const who = cell ? `held by ${about.clients.get(cell.id) || cell.id} at ${cell.node || "an unknown node"}` : "free";
      const said = `${who}${drained ? ", drained" : ""}`;
      if (chip.title === said) return;
      chip.title = said;
      chip.firstChild.setAttribute("aria-label", `${name}, ${said}: ${drained ? "bring back" : "drain"}`);
    },
  );
}
