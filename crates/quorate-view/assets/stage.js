// Draws a pool: nodes on a circle, units in the middle, messages between them.

import { h, plural, s, say } from "./dom.js";
import { picture } from "./pictures.js";

const NODE = 24;
const CELLS_MAX = 64;
// Room beside nodes for names, marks and numbers.
const MARGIN = 76;
// Names of so many characters fit inside a node.
const INSIDE = 4;
const NAME_MAX = 16;

function cropped(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// What signs mean, each with a sample of it.
export function drawLegend(list, entries) {
  const common = [["badge", "how many claims of its clients wait"], ["cut", "these two do not see each other"], ["cross", "does not answer"]];
  const all = [...entries, ...common];
  const key = JSON.stringify(all);
  if (list.dataset.drawn === key) return;
  list.dataset.drawn = key;
  list.replaceChildren(...all.map(([sign, text]) => h("li", {}, sample(sign), text)));
}

function sample(sign) {
  const part = {
    lit: () => s("circle", { cx: 15, cy: 9, r: 7, class: "lit" }),
    badge: () => s("g", { transform: "translate(15 9)" }, ...badge("2")),
    cross: () => s("path", { class: "cross", d: "M10,4 L20,14 M20,4 L10,14" }),
  }[sign] ?? (() => s("line", { x1: 1, x2: 29, y1: 9, y2: 9, class: sign }));
  const kind = { lit: "node", badge: "node", cross: "node down" }[sign] ?? "links";
  return s("svg", { width: 30, height: 18, viewBox: "0 0 30 18", "aria-hidden": "true" }, s("g", { class: kind }, part()));
}

// A number on a small shield.
function badge(text) {
  const half = 5 + text.length * 4.5;
  return [s("rect", { x: -half, y: -9, width: 2 * half, height: 18, rx: 9, class: "badge" }), s("text", { class: "count", dy: "0.35em" }, text)];
}

// A stage keeps its elements and only moves them, so that it can be drawn at every frame. One user
// unit is one pixel: text has the size of the page's.
export class Stage {
  constructor(svg) {
    this.svg = svg;
    svg.setAttribute("role", "img");
    this.links = s("g", { class: "links" });
    this.cells = s("g", { class: "cells" });
    this.nodes = s("g", { class: "nodes" });
    this.flights = s("g", { class: "flights" });
    const arrow = s("path", { d: "M0,0 L7,3.5 L0,7 z", class: "arrow" });
    const marker = { id: "arrow", viewBox: "0 0 7 7", refX: 6, refY: 3.5, orient: "auto" };
    const head = s("marker", { ...marker, markerWidth: 6, markerHeight: 6 }, arrow);
    // Messages pass under nodes, so that no name is covered.
    svg.replaceChildren(s("defs", {}, head), this.links, this.cells, this.flights, this.nodes);
    this.drawn = "";
    // More messages at once would cover each other's words.
    this.labelsMax = 10;
    this.dots = [];
    this.measure();
  }

  measure() {
    const least = 300;
    this.width = Math.max(least, Math.round(this.svg.clientWidth) || 520);
    this.height = Math.max(least, Math.round(this.svg.clientHeight) || 420);
    this.radius = Math.min(this.width, this.height) / 2 - MARGIN;
    // Wider than high, where there is room.
    this.wide = Math.min(1.5, (this.width / 2 - MARGIN) / this.radius);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
  }

  at(node, count, radius = this.radius) {
    const angle = (2 * Math.PI * node) / count - Math.PI / 2;
    return [this.width / 2 + radius * this.wide * Math.cos(angle), this.height / 2 + radius * Math.sin(angle)];
  }

  // Everything but messages; drawn anew only if it differs from what stands there. Returns what the
  // picture says.
  show(protocol, scene) {
    const shown = picture(protocol, scene);
    this.measure();
    const key = JSON.stringify([this.width, this.height, scene.nodes, scene.units, scene.held, scene.cuts, scene.free, shown]);
    if (key === this.drawn) return shown;
    this.drawn = key;
    this.count = scene.nodes.length;
    this.size = this.count > 24 ? 14 : this.count > 12 ? 19 : NODE;
    this.keep = 0;
    if (scene.units > 0) this.showUnits(scene);
    else this.cells.replaceChildren();
    this.showLinks(scene, shown);
    this.showNodes(scene, shown);
    const down = scene.nodes.filter((node) => node.health === "down").length;
    const held = scene.units > 0 ? `; ${scene.held.length} of ${scene.units} units held` : "";
    this.svg.setAttribute("aria-label", `${plural(this.count, "node")}, ${down} down${held}.`);
    return shown;
  }

  // From the edge of a node to the edge of another, and around what stands in the middle.
  line(from, to, kind, arrow, lit) {
    const [a, b] = [this.at(from, this.count), this.at(to, this.count)];
    const middle = [this.width / 2, this.height / 2];
    const half = [(a[0] + b[0]) / 2 - middle[0], (a[1] + b[1]) / 2 - middle[1]];
    const far = Math.hypot(...half);
    const across = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const out = far > 1 ? [half[0] / far, half[1] / far] : [(b[1] - a[1]) / across, (a[0] - b[0]) / across];
    const bend = Math.max(0, 2 * (this.keep - far));
    const through = [middle[0] + half[0] + out[0] * bend, middle[1] + half[1] + out[1] * bend];
    const edge = (end, room) => {
      const [dx, dy] = [through[0] - end[0], through[1] - end[1]];
      const length = Math.hypot(dx, dy) || 1;
      return `${(end[0] + (dx / length) * room).toFixed(1)},${(end[1] + (dy / length) * room).toFixed(1)}`;
    };
    const room = (node) => this.size + (lit?.[node] ? 8 : 2);
    const d = `M${edge(a, room(from))} Q${through.map((n) => n.toFixed(1)).join(",")} ${edge(b, room(to) + (arrow ? 1 : 0))}`;
    return s("path", { d, class: kind, "marker-end": arrow ? "url(#arrow)" : null });
  }

  showLinks(scene, shown) {
    const lines = [];
    if (shown.ring) lines.push(s("ellipse", { cx: this.width / 2, cy: this.height / 2, rx: this.radius * this.wide, ry: this.radius, class: "ring" }));
    for (const { from, to, kind, arrow } of shown.links ?? []) lines.push(this.line(from, to, kind, arrow, shown.lit));
    for (const [from, to] of scene.cuts) lines.push(this.line(from, to, "cut", false, shown.lit));
    this.links.replaceChildren(...lines);
  }

  showNodes(scene, shown) {
    const drawn = scene.nodes.map((node, index) => {
      const [x, y] = this.at(index, this.count);
      const lit = shown.lit?.[index];
      const inside = node.name.length <= INSIDE && this.size >= 19;
      const below = [...(inside ? [] : [cropped(node.name, NAME_MAX)]), ...(shown.marks?.[index] ?? [])];
      const parts = [s("circle", { r: this.size, class: "body" })];
      if (inside) parts.push(s("text", { class: "name", dy: "0.35em" }, node.name));
      if (lit) parts.unshift(s("circle", { r: this.size + 6, class: "lit" }));
      if (node.health === "down") {
        const d = this.size * 0.7;
        parts.push(s("path", { class: "cross", d: `M${-d},${-d} L${d},${d} M${d},${-d} L${-d},${d}` }));
      }
      if (node.health === "paused") parts.push(s("text", { class: "mark warn", y: -this.size - 9 }, "paused"));
      // How many wait stands at its shoulder, outside, and never where marks are.
      if (node.waiting) {
        const side = x < this.width / 2 - 1 ? -1 : 1;
        const place = `translate(${side * (this.size + (lit ? 20 : 16))} ${-this.size * (lit ? 0.9 : 0.7)})`;
        parts.push(s("g", { transform: place }, ...badge(String(node.waiting))));
      }
      below.forEach((text, line) => {
        parts.push(s("text", { class: !inside && line === 0 ? "mark name" : "mark", y: this.size + (lit ? 22 : 16) + line * 16 }, text));
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
    const [mx, my] = [this.width / 2, this.height / 2];
    const room = Math.min(180, this.radius);
    const all = [];
    let [low, half] = [0, 0];
    if (units > CELLS_MAX) {
      const width = room;
      const full = (width * Math.min(held.length, units)) / units;
      [low, half] = [my + 12, width / 2];
      const box = { x: mx - width / 2, y: my - 12, height: 24, rx: 5 };
      all.push(s("rect", { ...box, width, class: "cell" }), s("rect", { ...box, width: full, class: "cell full" }));
    } else {
      // Where units are only counted, what was granted beyond them stands beside them.
      const cells = scene.named ? units : Math.max(units, held.length);
      const rows = Math.max(1, Math.round(Math.sqrt(cells / 1.6)));
      const columns = Math.ceil(cells / rows);
      const step = Math.min(44, room / Math.max(columns, rows));
      [low, half] = [my + (rows * step) / 2, (columns * step) / 2];
      const byUnit = new Map(held.map((one) => [one.unit, one]));
      for (let unit = 0; unit < cells; unit++) {
        const one = byUnit.get(unit);
        const x = mx + ((unit % columns) - (columns - 1) / 2) * step;
        const y = my + (Math.floor(unit / columns) - (rows - 1) / 2) * step;
        const box = { x: x - step * 0.43, y: y - step * 0.43, width: step * 0.86, height: step * 0.86, rx: step / 8 };
        const colour = one ? `cell full c${one.node % 8}${unit < units ? "" : " over"}` : "cell";
        const label = String(one ? (scene.nodes[one.node]?.name ?? "?") : scene.named ? unit : "");
        const about = one ? `unit ${unit}: ${one.claim} at ${label}` : `unit ${unit}: free`;
        // A name that does not fit stands in the title.
        const fits = label.length * 9 < step;
        all.push(
          s("g", {}, s("rect", { ...box, class: colour }), s("title", {}, about),
            fits ? s("text", { x, y, dy: "0.35em", class: one ? "in" : "free" }, label) : null),
        );
      }
    }
    const text = `${held.length} of ${units} held`;
    const waiting = scene.nodes.reduce((sum, node) => sum + node.waiting, 0);
    const line = low + 20;
    all.push(s("text", { x: mx, y: line, class: "sum" }, waiting ? `${text}, ${waiting} waiting` : text));
    // Links go around it.
    const side = Math.max(half, 70) + 8;
    const high = 2 * my - low - 8;
    this.keep = Math.min(this.radius - this.size / 2, Math.max(side * 0.8, (line + 10 - high) / 2 + 8));
    const panel = { x: mx - side, y: high, width: 2 * side, height: line + 10 - high, rx: 8 };
    this.cells.replaceChildren(s("rect", { ...panel, class: "panel" }), ...all);
  }

  // Messages: { from, to, progress: 0..1, kind, text, lost }.
  fly(flights) {
    while (this.dots.length < flights.length) {
      const label = s("text", { class: "said" });
      const dot = s("circle", { r: 5.5 });
      const group = s("g", {}, s("circle", { r: 14, class: "hit" }), dot, label);
      this.dots.push({ group, dot, label });
      this.flights.append(group);
    }
    const labels = flights.length <= this.labelsMax;
    this.dots.forEach(({ group, dot, label }, index) => {
      const flight = flights[index];
      if (!flight) return void group.setAttribute("visibility", "hidden");
      const [x1, y1] = this.at(flight.from, this.count);
      const [x2, y2] = this.at(flight.to, this.count);
      // From edge to edge, and a little to the right of the straight line, so that two that meet are
      // told apart.
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
      const way = this.size + 6 + (length - 2 * (this.size + 6)) * flight.progress;
      const bend = 14 * Math.sin(Math.PI * flight.progress);
      const x = x1 + dx * way - dy * bend;
      const y = y1 + dy * way + dx * bend;
      group.setAttribute("visibility", "visible");
      group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      group.setAttribute("class", flight.lost ? "flight lost" : `flight k${flight.kind % 8}`);
      dot.setAttribute("opacity", flight.lost && flight.progress > 0.75 ? 0.35 : 1);
      say(label, labels ? cropped(flight.text, 30) : "");
      label.setAttribute("x", 9);
      label.setAttribute("y", 4);
    });
  }
}
