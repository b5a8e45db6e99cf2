// Draws a pool: nodes on a circle, units in the middle, messages between them.

import { plural, s, say } from "./dom.js";
import { picture } from "./pictures.js";

const SIZE = 520;
const MIDDLE = SIZE / 2;
const RADIUS = 182;
const NODE = 24;
const CELLS_MAX = 64;

function short(text) {
  return text.length > 30 ? `${text.slice(0, 28)}…` : text;
}

// A stage keeps its elements and only moves them, so that it can be drawn at every frame.
export class Stage {
  constructor(svg) {
    this.svg = svg;
    svg.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
    svg.setAttribute("role", "img");
    this.links = s("g", { class: "links" });
    this.cells = s("g", { class: "cells" });
    this.nodes = s("g", { class: "nodes" });
    this.flights = s("g", { class: "flights" });
    const arrow = s("path", { d: "M0,0 L7,3.5 L0,7 z", class: "arrow" });
    const marker = { id: "arrow", viewBox: "0 0 7 7", refX: 6, refY: 3.5, orient: "auto" };
    const head = s("marker", { ...marker, markerWidth: 6, markerHeight: 6 }, arrow);
    svg.replaceChildren(s("defs", {}, head), this.links, this.cells, this.nodes, this.flights);
    this.drawn = "";
    this.dots = [];
  }

  at(node, count, radius = RADIUS) {
    const angle = (2 * Math.PI * node) / count - Math.PI / 2;
    return [MIDDLE + radius * Math.cos(angle), MIDDLE + radius * Math.sin(angle)];
  }

  // Everything but messages; drawn anew only if it differs from what stands there. Returns what the
  // picture says.
  show(protocol, scene) {
    const shown = picture(protocol, scene);
    const key = JSON.stringify([scene.nodes, scene.units, scene.held, scene.cuts, scene.free, shown]);
    if (key === this.drawn) return shown;
    this.drawn = key;
    this.count = scene.nodes.length;
    this.size = this.count > 24 ? 14 : this.count > 12 ? 19 : NODE;
    this.showLinks(scene, shown);
    this.showNodes(scene, shown);
    this.showUnits(scene);
    const down = scene.nodes.filter((node) => node.health === "down").length;
    const held = scene.held.length;
    const label = `${plural(this.count, "node")}, ${down} down; ${held} of ${scene.units} units held.`;
    this.svg.setAttribute("aria-label", label);
    return shown;
  }

  line(from, to, kind, arrow) {
    const [x1, y1] = this.at(from, this.count);
    const [x2, y2] = this.at(to, this.count);
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [dx, dy] = [((x2 - x1) / length) * (this.size + 5), ((y2 - y1) / length) * (this.size + 5)];
    const ends = { x1: x1 + dx, y1: y1 + dy, x2: x2 - dx, y2: y2 - dy };
    return s("line", { ...ends, class: kind, "marker-end": arrow ? "url(#arrow)" : null });
  }

  showLinks(scene, shown) {
    const lines = [];
    if (shown.ring) lines.push(s("circle", { cx: MIDDLE, cy: MIDDLE, r: RADIUS, class: "ring" }));
    for (const { from, to, kind, arrow } of shown.links ?? []) lines.push(this.line(from, to, kind, arrow));
    for (const [from, to] of scene.cuts) lines.push(this.line(from, to, "cut", false));
    this.links.replaceChildren(...lines);
  }

  showNodes(scene, shown) {
    const drawn = scene.nodes.map((node, index) => {
      const [x, y] = this.at(index, this.count);
      const lit = shown.lit?.[index];
      const parts = [
        s("circle", { r: this.size, class: "body" }),
        s("text", { class: "name", dy: "0.35em" }, node.name.slice(0, 6)),
      ];
      if (lit) parts.unshift(s("circle", { r: this.size + 6, class: "lit" }));
      if (node.health === "down") {
        const d = this.size * 0.7;
        parts.push(s("path", { class: "cross", d: `M${-d},${-d} L${d},${d} M${d},${-d} L${-d},${d}` }));
      }
      if (node.health === "paused") parts.push(s("text", { class: "mark warn", y: -this.size - 9 }, "paused"));
      // Clients that wait stand outside, a dot each.
      const [ox, oy] = this.at(index, this.count, 1);
      const out = [ox - MIDDLE, oy - MIDDLE];
      for (let dot = 0; dot < Math.min(node.waiting, 6); dot++) {
        const far = this.size + 13 + dot * 9;
        parts.push(s("circle", { class: "waits", r: 3, cx: out[0] * far, cy: out[1] * far }));
      }
      const texts = [...(shown.marks?.[index] ?? [])];
      texts.slice(0, 3).forEach((text, line) => {
        parts.push(s("text", { class: "mark", y: this.size + (lit ? 21 : 15) + line * 13 }, text));
      });
      const wait = node.waiting ? `, ${node.waiting} waiting` : "";
      const why = lit ? `, ${lit}` : "";
      parts.push(s("title", {}, `${node.name}: ${node.health}${why}, holds ${node.holds}${wait}`));
      const place = `translate(${x.toFixed(1)} ${y.toFixed(1)})`;
      return s("g", { class: `node ${node.health} c${index % 8}`, transform: place }, ...parts);
    });
    this.nodes.replaceChildren(...drawn);
  }

  showUnits(scene) {
    const { units, held } = scene;
    const all = [];
    let [low, half] = [0, 0];
    if (units > CELLS_MAX) {
      const width = 200;
      const full = (width * Math.min(held.length, units)) / units;
      [low, half] = [MIDDLE + 12, width / 2];
      const box = { x: MIDDLE - width / 2, y: MIDDLE - 12, height: 24, rx: 5 };
      all.push(s("rect", { ...box, width, class: "cell" }), s("rect", { ...box, width: full, class: "cell full" }));
    } else {
      const rows = Math.max(1, Math.round(Math.sqrt(units / 1.6)));
      const columns = Math.ceil(units / rows);
      const step = Math.min(44, 180 / Math.max(columns, rows));
      [low, half] = [MIDDLE + (rows * step) / 2, (columns * step) / 2];
      const byUnit = new Map(held.map((one) => [one.unit, one]));
      for (let unit = 0; unit < units; unit++) {
        const one = byUnit.get(unit);
        const x = MIDDLE + ((unit % columns) - (columns - 1) / 2) * step;
        const y = MIDDLE + (Math.floor(unit / columns) - (rows - 1) / 2) * step;
        const box = { x: x - step * 0.43, y: y - step * 0.43, width: step * 0.86, height: step * 0.86, rx: step / 8 };
        const colour = one ? `cell full c${one.node % 8}` : "cell";
        const label = one ? (scene.nodes[one.node]?.name ?? "?") : scene.named ? unit : "";
        const about = one ? `unit ${unit}: ${one.claim} at ${label}` : `unit ${unit}: free`;
        all.push(
          s("g", {}, s("rect", { ...box, class: colour }), s("title", {}, about),
            step > 20 ? s("text", { x, y, dy: "0.35em", class: one ? "in" : "free" }, String(label).slice(0, 5)) : null),
        );
      }
    }
    const text = `${held.length} of ${units} held`;
    const waiting = scene.nodes.reduce((sum, node) => sum + node.waiting, 0);
    const line = low + 20;
    all.push(s("text", { x: MIDDLE, y: line, class: "sum" }, waiting ? `${text}, ${waiting} waiting` : text));
    // Links pass behind, not through.
    const side = Math.max(half, 70) + 8;
    const high = 2 * MIDDLE - low - 8;
    const panel = { x: MIDDLE - side, y: high, width: 2 * side, height: line + 10 - high, rx: 8 };
    this.cells.replaceChildren(s("rect", { ...panel, class: "panel" }), ...all);
  }

  // Messages: { from, to, progress: 0..1, kind, text, lost }.
  fly(flights) {
    while (this.dots.length < flights.length) {
      const label = s("text", { class: "said" });
      const dot = s("circle", { r: 5.5 });
      const group = s("g", {}, dot, label);
      this.dots.push({ group, dot, label });
      this.flights.append(group);
    }
    const labels = flights.length <= 10;
    this.dots.forEach(({ group, dot, label }, index) => {
      const flight = flights[index];
      if (!flight) return void group.setAttribute("visibility", "hidden");
      const [x1, y1] = this.at(flight.from, this.count);
      const [x2, y2] = this.at(flight.to, this.count);
      // A little to the right of the straight line, so that two that meet are told apart.
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const bend = 14 * Math.sin(Math.PI * flight.progress);
      const x = x1 + (x2 - x1) * flight.progress - ((y2 - y1) / length) * bend;
      const y = y1 + (y2 - y1) * flight.progress + ((x2 - x1) / length) * bend;
      group.setAttribute("visibility", "visible");
      group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      group.setAttribute("class", flight.lost ? "flight lost" : `flight k${flight.kind % 8}`);
      dot.setAttribute("opacity", flight.lost && flight.progress > 0.75 ? 0.35 : 1);
      say(label, labels ? short(flight.text) : "");
      label.setAttribute("x", 9);
      label.setAttribute("y", 4);
    });
  }
}
