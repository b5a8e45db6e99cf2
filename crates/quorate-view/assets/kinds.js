// Units: by their labels where they differ; who has them, who asks for them, which are short, which
// are drained.

import { byId, h, keyed, plural, say } from "./dom.js";

// As many as the node tells one by one.
const UNITS_MAX = 256;

const words = (labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(" ");

// Units with the same labels, together, in the order in which the node counts them.
function kinds(view) {
  const found = new Map();
  for (let unit = 0; unit < view.units; unit++) {
    const name = words(view.unit_labels?.[unit] ?? {});
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(unit);
  }
  return found;
}

export function drawKinds(pool, nodes, place, drain) {
  const { view } = pool;
  const oneByOne = view.units <= UNITS_MAX;
  const units = oneByOne ? kinds(view) : new Map();
  say(byId("kinds-count"), view.names_units ? "" : "this pool counts them and does not say which");
  const shortages = view.shortages ?? [];
  keyed(byId("shortages"), shortages, (short) => short.summary, (short) => h("li", {}, short.summary));
  const about = {
    names: view.unit_names ?? [],
    holders: new Map(pool.cells.map((cell) => [cell.unit, cell])),
    clients: new Map(pool.holders.map((holder) => [holder.id, holder.client])),
    drained: new Set(view.drained ?? []),
    short: new Set(shortages.flatMap((short) => short.units)),
    // Only where one node decides can units leave service.
    drains: view.protocol === "central",
    place,
    drain,
  };
  keyed(
    byId("kinds"),
    pool.kinds,
    (kind) => words(kind.labels),
    () => h("li", {}, h("b", {}), h("span", {}), h("ul", { class: "chips" })),
    (item, kind) => {
      const name = words(kind.labels);
      const held = kind.held ?? Math.min(view.held, view.units);
      // Whom nodes do not list may want units of any kind.
      const least = pool.unlisted && view.unit_labels?.length ? "at least " : "";
      const ask = kind.wanted ? `, ${least}${plural(kind.wanted, "waiting claim")} could use them` : "";
      say(item.children[0], name || (view.unit_labels?.length ? "no labels" : "all alike"));
      say(item.children[1], `${held} of ${kind.units} held${ask}`);
      item.children[1].className = ask && held >= kind.units ? "warn" : "dim";
      const own = units.get(name) ?? [];
      if (view.names_units) drawChips(item.children[2], own, about);
      else drawCounted(item.children[2], oneByOne ? view.units : 0, pool.shares, nodes);
    },
  );
  const more = [];
  if (pool.kinds_left_out) more.push(`${plural(pool.kinds_left_out, "more kind")} of units ${pool.kinds_left_out === 1 ? "is" : "are"} not shown.`);
  if (!oneByOne) more.push(`Units are drawn one by one up to ${UNITS_MAX}; this pool has ${view.units}. Who holds which stands under Holding.`);
  else {
    if (view.names_units) more.push("A unit has the colour of the node whose client holds it.");
    if (about.drains) more.push("Press one to drain it or to bring it back.");
  }
  say(byId("kinds-more"), more.join(" "));
}

// Where nobody says which units a client has: as many as each node's clients hold, and the rest.
function drawCounted(list, count, shares, nodes) {
  const held = shares.flatMap((share, node) => Array.from({ length: Math.min(share.held, count) }, () => node));
  const all = Array.from({ length: count }, (_, unit) => ({ unit, node: held[unit] }));
  keyed(list, all, ({ unit }) => unit, () => h("li", {}), (chip, { node }) => {
    say(chip, node === undefined ? "free" : nodes[node].name);
    chip.className = node === undefined ? "chip" : `chip full c${node % 8}`;
    chip.title = node === undefined ? "free" : `held by a client of ${nodes[node].name}`;
  });
}

function drawChips(list, units, about) {
  keyed(
    list,
    units,
    (unit) => unit,
    () => {
      if (!about.drains) return h("li", {}, h("span", {}));
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
      if (about.drains) chip.firstChild.setAttribute("aria-label", `${name}, ${said}: ${drained ? "bring back" : "drain"}`);
    },
  );
}
