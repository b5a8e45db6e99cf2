// A player of recorded runs: scrub, step, play. Pages say where a moment is linked to.

import { byId, h, plural, s, say } from "./dom.js";
import { Stage } from "./stage.js";

const LINES = 61;
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 10];

export function seconds(nanos) {
  return (nanos / 1e9).toFixed(6);
}

export class Player {
  constructor(film) {
    this.stage = new Stage(byId("stage"));
    this.index = -1;
    this.time = 0;
    this.playing = false;
    this.speed = 1;
    this.begin();
    this.load(film);
  }

  // Another film; where it is played is up to whoever loads it.
  load(film) {
    this.film = film;
    this.linesAt = undefined;
    this.drawStrip();
  }

  begin() {
    for (const speed of SPEEDS) {
      byId("speed").append(h("option", { value: speed, selected: speed === 1 }, `${speed}×`));
    }
    const on = (id, event, what) => byId(id).addEventListener(event, what);
    on("play", "click", () => this.toggle());
    on("first", "click", () => this.goto(-1));
    on("back", "click", () => this.step(-1));
    on("next", "click", () => this.step(1));
    on("fault", "click", () => this.nextFault());
    on("speed", "change", (event) => (this.speed = Number(event.target.value)));
    on("scrub", "input", (event) => this.seek(this.film.timeAt((event.target.value / 1e6) * this.film.length)));
    on("lines", "click", (event) => {
      const line = event.target.closest("li");
      if (line) this.goto(Number(line.dataset.index));
    });
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.matches("select, textarea, input:not([type=range])") || event.ctrlKey || event.metaKey || event.altKey) return;
    const scrubbing = event.target.matches("input");
    const does = {
      " ": () => this.toggle(),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.step(1),
      ArrowUp: () => this.step(-1),
      Home: () => this.goto(-1),
      End: () => this.goto(this.film.frames.length - 1),
      f: () => this.nextFault(),
    }[event.key];
    // A button that has the focus is pressed by the space bar already.
    if (!does || (event.key === " " && event.target.matches("button"))) return;
    if (scrubbing && event.key !== " " && event.key !== "f") return;
    event.preventDefault();
    does();
  }

  // Where this moment is linked to.
  link() {}

  // The last frame was played.
  ended() {
    this.pause();
  }

  goto(index) {
    this.pause();
    this.index = Math.max(-1, Math.min(index, this.film.frames.length - 1));
    this.time = this.index < 0 ? 0 : this.film.frames[this.index][0];
    this.draw();
    this.link();
  }

  step(by) {
    this.goto(this.index + by);
  }

  seek(time) {
    this.pause();
    this.time = Math.max(0, Math.min(time, this.film.end));
    this.index = this.film.frameAt(this.time);
    this.draw();
    this.link();
  }

  nextFault() {
    const next = this.film.marks.find((mark) => mark.index > this.index);
    if (next) this.goto(next.index);
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.index >= this.film.frames.length - 1) this.goto(-1);
    this.playing = true;
    this.showButton();
    this.last = performance.now();
    requestAnimationFrame((now) => this.tick(now));
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.showButton();
    this.link();
  }

  showButton() {
    say(byId("play"), this.playing ? "❚❚" : "▶");
    byId("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  tick(now) {
    if (!this.playing) return;
    const left = Math.min(0.1, (now - this.last) / 1000) * this.speed;
    this.last = now;
    const { film } = this;
    this.time = Math.max(this.time, film.timeAt(film.playedAt(this.index, this.time) + left));
    this.index = film.frameAt(this.time);
    if (this.index >= film.frames.length - 1) this.ended();
    this.draw();
    requestAnimationFrame((then) => this.tick(then));
  }

  draw() {
    const { film } = this;
    const scene = film.scene(this.index);
    say(byId("caption"), this.stage.show(film.protocol, scene).caption ?? "");
    this.stage.fly(film.flying(this.time));
    say(byId("clock"), `${seconds(this.time)} s`);
    byId("clock").title = `event ${this.index + 1} of ${film.frames.length}`;
    const played = film.playedAt(this.index, this.time);
    const place = film.length ? Math.round((played / film.length) * 1e6) : 0;
    byId("scrub").value = place;
    byId("scrub").setAttribute("aria-valuetext", `${seconds(this.time)} seconds`);
    this.cursor?.setAttribute("x1", place / 1000);
    this.cursor?.setAttribute("x2", place / 1000);
    this.drawLines();
  }

  // Only lines near the current one exist.
  drawLines() {
    if (this.linesAt === this.index) return;
    this.linesAt = this.index;
    const { frames } = this.film;
    const first = Math.max(0, Math.min(this.index - (LINES >> 1), frames.length - LINES));
    const lines = frames.slice(first, first + LINES).map(([at, who, text], offset) => {
      const index = first + offset;
      const kind = text.startsWith("* ") ? "world" : /GRANT/.test(text) ? "grant" : "";
      const here = index === this.index;
      const past = index > this.index ? "future" : "";
      return h(
        "li",
        { class: `${kind} ${past} ${here ? "here" : ""}`, "data-index": index, "aria-current": here ? "step" : null },
        h("span", { class: "t" }, seconds(at)),
        h("span", { class: `w c${Number(who.slice(1)) % 8 || 0}` }, who),
        h("span", { class: "x" }, text),
      );
    });
    const list = byId("lines");
    list.replaceChildren(...lines);
    const here = list.querySelector(".here");
    if (here) list.scrollTop = here.offsetTop - list.clientHeight / 2 + here.clientHeight;
    else list.scrollTop = 0;
  }

  // Units in use over the whole run, and where things went wrong.
  drawStrip() {
    const { film } = this;
    const strip = byId("strip");
    strip.setAttribute("viewBox", "0 0 1000 40");
    const buckets = new Array(500).fill(0);
    const held = new Map();
    let total = 0;
    let last = 0;
    const where = (index) => film.played[index] / (film.length || 1);
    for (const [index, [, , , changes]] of film.frames.entries()) {
      const place = Math.min(499, Math.floor(where(index) * 500));
      for (; last < place; last++) buckets[last + 1] = total;
      for (const [what, claim, units] of changes) {
        if (what === "g") {
          held.set(claim, units.length);
          total += units.length;
        } else if (what === "x" && held.has(claim)) {
          total -= held.get(claim);
          held.delete(claim);
        }
      }
      buckets[place] = Math.max(buckets[place], total);
    }
    const y = (value) => (38 - (34 * value) / (film.units || 1)).toFixed(1);
    const points = buckets.map((value, index) => `${index * 2},${y(value)} ${index * 2 + 2},${y(value)}`);
    const area = s("polygon", { class: "use", points: `0,38 ${points.join(" ")} 1000,38` });
    const faults = film.marks.map(({ index, text }) =>
      s("line", { x1: where(index) * 1000, x2: where(index) * 1000, y1: 0, y2: 40,
        class: /RESTART|resume|healed|over/.test(text) ? "mend" : "fault" }),
    );
    this.cursor = s("line", { x1: 0, x2: 0, y1: 0, y2: 40, class: "cursor" });
    strip.replaceChildren(area, ...faults, this.cursor);
    byId("fault").disabled = film.marks.length === 0;
    byId("fault").title = `${plural(film.marks.length, "mark")} (f)`;
  }
}

