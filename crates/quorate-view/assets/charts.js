// Small charts of a pool's last minutes: with a scale on the left, and the time below.

import { s, span } from "./dom.js";
import { ceiling, spanCeiling, waitedLately } from "./words.js";

const HEIGHT = 132;
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 8, 10, 24];
const FLOOR = HEIGHT - BOTTOM;

// One user unit is one pixel, so that text has the size of the page's.
function frame(svg, label, top, mark, parts) {
  const width = Math.max(240, Math.round(svg.clientWidth) || 320);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("aria-label", label);
  const inner = width - LEFT - RIGHT;
  const y = (value) => FLOOR - (value / top) * (FLOOR - TOP);
  const lines = [0, 0.5, 1].map((part) => s("line", { x1: LEFT, x2: width - RIGHT, y1: y(part * top), y2: y(part * top), class: "grid" }));
  const scale = [0, 0.5, 1].map((part) => s("text", { x: LEFT - 6, y: y(part * top), dy: "0.35em", class: "scale" }, mark(part * top)));
  const times = [[0, "10 min ago", "start"], [0.5, "5 min", "middle"], [1, "now", "end"]].map(([part, text, anchor]) =>
    s("text", { x: LEFT + part * inner, y: HEIGHT - 6, class: "time", "text-anchor": anchor }, text));
  svg.replaceChildren(...lines, ...parts(inner, y), ...scale, ...times);
}

function bar(inner, y, count, index, value, kind, title) {
  const width = inner / count;
  const box = { x: LEFT + index * width + 0.5, width: Math.max(1, width - 1), y: y(value), height: Math.max(1.5, FLOOR - y(value)) };
  return s("rect", { ...box, class: kind }, s("title", {}, title));
}

// Grants of every ten seconds, and in red what was lost.
export function grants(svg, chart) {
  const most = Math.max(...chart.map((point) => Math.max(point.granted, point.lost)));
  const sum = chart.reduce((total, point) => total + point.granted, 0);
  const label = `${sum} grants in the last ten minutes, at most ${most} in ten seconds`;
  // Half a grant is none: the middle of the scale is written where it is a number of grants.
  frame(svg, label, ceiling(Math.max(2, most)), (value) => (Number.isInteger(value) ? String(value) : ""), (inner, y) =>
    chart.flatMap((point, index) => [
      point.granted ? bar(inner, y, chart.length, index, point.granted, "bar", `${point.granted} granted in ten seconds`) : null,
      point.lost ? bar(inner, y, chart.length, index, point.lost, "bar lost", `${point.lost} expired or revoked in ten seconds`) : null,
    ]).filter(Boolean));
  const last = chart.slice(-6).reduce((total, point) => total + point.granted, 0);
  const lost = chart.reduce((total, point) => total + point.lost, 0);
  return `${last} in the last minute, a bar for ten seconds${lost ? "; red: expired or revoked" : ""}`;
}

// How long grants had waited, on average and the slowest; at the end those who still wait.
export function waits(svg, chart, still) {
  const now = still?.waiting ? still.waited_max_ms : 0;
  const most = Math.max(now, ...chart.map((point) => point.waited_max_ms));
  const top = spanCeiling(most);
  frame(svg, `Waiting time in the last ten minutes, at most ${span(most)}`, top, (ms) => (ms ? span(ms) : "0"), (inner, y) => {
    const parts = [];
    chart.forEach((point, index) => {
      if (!point.granted) return;
      const title = `granted after ${span(point.waited_ms)} on average, ${span(point.waited_max_ms)} at most`;
      parts.push(bar(inner, y, chart.length, index, point.waited_max_ms, "bar soft", title), bar(inner, y, chart.length, index, point.waited_ms, "bar", title));
    });
    if (still?.waiting) {
      const title = `${still.waiting} still wait: ${span(still.waited_ms)} on average, ${span(now)} the oldest`;
      parts.push(bar(inner, y, chart.length, chart.length - 1, now, "bar still", title));
    }
    return parts;
  });
  return waitedLately(chart, still);
}
