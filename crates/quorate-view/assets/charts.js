// Small charts of a pool's last minutes.

import { s, span } from "./dom.js";

const [WIDTH, HEIGHT] = [300, 64];

function frame(svg, label, top, parts) {
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-label", label);
  const line = (y) => s("line", { x1: 0, x2: WIDTH, y1: y, y2: y, class: "grid" });
  svg.replaceChildren(line(HEIGHT - 1), line(6), ...parts);
  svg.parentElement.dataset.top = top;
}

// Grants of every ten seconds, and in red what was lost.
export function grants(svg, chart) {
  const most = Math.max(1, ...chart.map((point) => point.granted));
  const width = WIDTH / chart.length;
  const bar = (point, index, value, kind) =>
    value > 0
      ? s("rect", { x: index * width + 0.5, width: width - 1, y: HEIGHT - 1 - (value / most) * 56,
          height: (value / most) * 56, class: kind })
      : null;
  const bars = chart.flatMap((point, index) => [
    bar(point, index, point.granted, "bar"),
    bar(point, index, Math.min(point.lost, most), "bar lost"),
  ]);
  const sum = chart.reduce((total, point) => total + point.granted, 0);
  frame(svg, `${sum} grants in the last ten minutes, at most ${most} in ten seconds`, most, bars.filter(Boolean));
  const last = chart.slice(-6).reduce((total, point) => total + point.granted, 0);
  return `${last} in the last minute`;
}

// How long grants had waited: on average, and the slowest.
export function waits(svg, chart) {
  const most = Math.max(1, ...chart.map((point) => point.waited_max_ms));
  const width = WIDTH / chart.length;
  const y = (ms) => (HEIGHT - 1 - (ms / most) * 56).toFixed(1);
  const parts = [];
  chart.forEach((point, index) => {
    if (!point.granted) return;
    const x = index * width + 0.5;
    parts.push(
      s("rect", { x, width: width - 1, y: y(point.waited_max_ms), height: Math.max(1, HEIGHT - 1 - y(point.waited_max_ms)), class: "bar soft" }),
      s("rect", { x, width: width - 1, y: y(point.waited_ms), height: Math.max(1.5, HEIGHT - 1 - y(point.waited_ms)), class: "bar" }),
    );
  });
  frame(svg, `Waiting time of grants in the last ten minutes, at most ${span(most)}`, span(most), parts);
  const [count, sum] = chart.slice(-6).reduce(
    ([n, total], point) => [n + point.granted, total + point.waited_ms * point.granted],
    [0, 0],
  );
  return count ? `${span(sum / count)} on average lately` : "no grants lately";
}
