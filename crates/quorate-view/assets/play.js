// The playground: a run that is its words, and whoever looks at it interferes.

import { byId, h, plural, say } from "./dom.js";
import { Film } from "./film.js";
import { LAWS, messageMenu, nodeMenu, readAct, sayAct, writeActs } from "./hands.js";
import { Player, seconds } from "./player.js";

// Steps beyond what is looked at that are there already, and how many are asked for at once.
const AHEAD = 150;
const MORE = 500;
const STEPS_MAX = 20000;

const WORKLOADS = {
  busy: { name: "busy", words: "" },
  calm: { name: "calm", words: "--think exponential:80ms" },
  mixed: { name: "claims of 1 and 2", words: "--want 1:60,2:40" },
  long: { name: "long holders", words: "--hold exponential:600ms" },
  hand: { name: "by hand", words: "--by-hand" },
};

// Where nothing happens by itself messages stand where they are until they are brought.
class Staged extends Film {
  constructor(data) {
    super(data);
    if (this.by_hand) {
      this.played = this.frames.map((_, index) => (index + 1) * 0.5);
      this.length = this.frames.length * 0.5;
    }
  }

  flying(time) {
    const found = super.flying(time).filter((flight) => !this.by_hand || flight.ends > time);
    if (!this.by_hand) return found;
    const ahead = {};
    for (const flight of found) {
      const link = `${flight.from}>${flight.to}`;
      ahead[link] = (ahead[link] ?? 0) + 1;
      flight.progress = Math.max(0.1, 0.62 - 0.2 * (ahead[link] - 1));
    }
    return found;
  }
}

// A run as words, taken apart for the form and put together again.
function readWords(text) {
  const run = { what: "--protocol central", nodes: 5, units: 2, workload: "busy", seed: "1", challenge: "", extra: [], acts: [], steps: 0 };
  const words = text.split(/[\s+]+/).filter(Boolean);
  const [rest, variant] = [[], []];
  for (let place = 0; place < words.length; place++) {
    const [word, value] = [words[place], words[place + 1] ?? ""];
    const takes = () => (place += 1);
    if (word === "--protocol") takes(), (run.what = `--protocol ${value}`);
    else if (word === "--variant") takes(), variant.push(`--variant ${value}`);
    else if (word === "--nodes") takes(), (run.nodes = Number(value));
    else if (word === "--units") takes(), (run.units = Number(value));
    else if (word === "--seed") takes(), (run.seed = value);
    else if (word === "--steps") takes(), (run.steps = Number(value) || 0);
    else if (word === "--challenge") takes(), (run.challenge = value);
    else if (word === "--intervene") takes(), (run.acts = value.split(",").filter(Boolean).map(readAct));
    else rest.push(word);
  }
  run.what = [run.what, ...variant].join(" ");
  const left = rest.join(" ");
  const known = Object.keys(WORKLOADS).find((key) => WORKLOADS[key].words && left.includes(WORKLOADS[key].words));
  if (known) run.workload = known;
  run.extra = (known ? left.replace(WORKLOADS[known].words, "") : left).split(" ").filter(Boolean);
  return run;
}

function writeWords(run, steps, acts = run.acts) {
  const words = run.challenge
    ? [`--challenge ${run.challenge}`]
    : [run.what, `--nodes ${run.nodes} --units ${run.units}`, WORKLOADS[run.workload].words, ...run.extra, `--seed ${run.seed}`];
  if (steps > 0) words.push(`--steps ${steps}`);
  if (acts.length) words.push(`--intervene ${writeActs(acts)}`);
  return words.filter(Boolean).join(" ");
}

async function fetchFilm(words) {
  const answer = await fetch(`/run?words=${encodeURIComponent(words)}`);
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error);
  return new Staged(data);
}

class Playground extends Player {
  constructor(choices, run, film) {
    super(film);
    this.choices = choices;
    this.run = run;
    this.branches = [];
    this.asked = film.steps;
    this.fillForm();
    this.listen();
    this.showRun();
    this.goto(this.frameOf(run.steps));
  }

  // The last frame of a step.
  frameOf(step) {
    let index = -1;
    while (index + 1 < this.film.frames.length && this.film.frames[index + 1][4] <= step) index += 1;
    return index;
  }

  get step() {
    return this.film.frames[this.index]?.[4] ?? 0;
  }

  listen() {
    const on = (id, event, what) => byId(id).addEventListener(event, what);
    for (const id of ["what", "nodes", "units", "workload", "seed"]) on(id, "change", () => this.fromForm());
    on("setting", "submit", (event) => (event.preventDefault(), this.fromForm()));
    on("reseed", "click", () => this.anew({ ...this.run, seed: String(1 + Math.floor(Math.random() * 99999)) }));
    on("challenge", "change", (event) => this.challenge(event.target.value));
    on("corrupt", "click", () => this.act("corrupt"));
    on("rest", "click", () => this.act("rest"));
    on("copy-command", "click", (event) => this.copy(event.target, byId("command").textContent));
    on("copy-link", "click", (event) => this.copy(event.target, location.href));
    on("stage", "click", (event) => this.touch(event));
    on("stage", "keydown", (event) => {
      if (event.key === "Enter" && event.target.closest(".node")) this.touch(event);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.closeMenu();
    });
    for (const tab of document.querySelectorAll("[data-tab]")) {
      tab.addEventListener("click", () => this.showTab(tab.dataset.tab));
    }
    window.addEventListener("hashchange", () => {
      const words = decodeURIComponent(location.hash.slice(1)).replaceAll("+", " ");
      if (words !== this.words()) this.open(readWords(words));
    });
  }

  fillForm() {
    const group = ({ name, about, variants }) => {
      const one = (words, text) => h("option", { value: words }, text);
      const plain = one(`--protocol ${name}`, `${name}: ${about.toLowerCase()}`);
      return [plain, ...variants.map((variant) => one(`--protocol ${name} --variant ${variant.name}`, `${name} ${variant.name}`))];
    };
    byId("what").replaceChildren(...this.choices.protocols.flatMap(group));
    byId("workload").replaceChildren(...Object.entries(WORKLOADS).map(([key, { name }]) => h("option", { value: key }, name)));
    byId("challenge").replaceChildren(
      h("option", { value: "" }, "–"),
      ...this.choices.challenges.map(({ name, title }) => h("option", { value: name }, title)),
    );
  }

  fromForm() {
    const number = (id) => Math.round(Number(byId(id).value)) || 1;
    const [what, workload, seed] = ["what", "workload", "seed"].map((id) => byId(id).value);
    this.anew({ ...this.run, what, workload, seed: seed.trim() || "1", nodes: number("nodes"), units: number("units"), challenge: "" });
  }

  challenge(name) {
    this.anew({ ...this.run, challenge: name });
  }

  // Another run, from its beginning.
  anew(run) {
    this.branches = [];
    return this.open({ ...run, acts: [], steps: 0 });
  }

  // Plays words up to their step; if they make no sense, nothing changes but what is said.
  async open(run, at = null) {
    const was = this.playing;
    this.closeMenu();
    try {
      const steps = Math.min(STEPS_MAX, Math.max(MORE, run.steps + AHEAD));
      const film = await fetchFilm(writeWords(run, steps));
      this.run = run;
      this.asked = steps;
      this.load(film);
      this.showRun();
      this.goto(this.frameOf(run.steps));
      // In the midst of two events, messages stay where they are.
      const next = film.frames[this.index + 1]?.[0] ?? Infinity;
      if (at !== null && at > this.time && at < next) {
        this.time = at;
        this.draw();
      }
      byId("problem").hidden = true;
      if (was && this.index < film.frames.length - 1) this.toggle();
    } catch (error) {
      byId("problem").hidden = false;
      say(byId("problem"), `That cannot be played: ${error.message}. Nothing was changed.`);
      this.showForm();
    }
  }

  // Somebody interferes, now: what was done later on belongs to another branch.
  act(act) {
    const { step } = this;
    const kept = this.run.acts.filter(({ after }) => after < step);
    if (kept.length < this.run.acts.length) this.keepBranch();
    const run = { ...this.run, acts: [...kept, { after: step, act }], steps: step + 1 };
    return this.open(run, this.film.by_hand ? null : this.time);
  }

  keepBranch() {
    const words = writeWords(this.run, 0);
    this.branches = [{ run: this.run, words }, ...this.branches.filter((other) => other.words !== words)].slice(0, 20);
  }

  // What was done is undone; the run with it stays among the branches.
  undo(index) {
    this.keepBranch();
    const steps = this.run.acts[index].after;
    return this.open({ ...this.run, acts: this.run.acts.filter((_, other) => other !== index), steps });
  }

  // The run goes on where the film ends.
  async extend() {
    if (this.extending || this.film.over || this.film.by_hand || this.asked >= STEPS_MAX) return;
    this.extending = true;
    const [run, steps] = [this.run, Math.min(STEPS_MAX, Math.max(this.asked * 2, this.asked + MORE))];
    try {
      const film = await fetchFilm(writeWords(run, steps));
      if (run === this.run) {
        this.asked = steps;
        this.load(film);
        this.draw();
      }
    } finally {
      this.extending = false;
    }
  }

  ended() {
    if (this.film.over || this.film.by_hand || this.asked >= STEPS_MAX) return this.pause();
    this.extend();
  }

  words() {
    return writeWords(this.run, this.step, this.run.acts.filter(({ after }) => after < Math.max(1, this.step)));
  }

  link() {
    const words = this.words();
    say(byId("command"), `quorate-lab play --show '${words}'`);
    history.replaceState(null, "", `#${words.replaceAll(" ", "+")}`);
  }

  async copy(button, text) {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      say(button, "copied");
    } catch {
      say(button, "not allowed: copy it below");
    }
    setTimeout(() => say(button, before), 1500);
  }

  draw() {
    super.draw();
    this.flights = this.film.flying(this.time);
    for (const [index, { group }] of this.stage.dots.entries()) {
      if (this.flights[index]) group.dataset.number = this.flights[index].number;
      else delete group.dataset.number;
    }
    for (const [index, node] of [...this.stage.nodes.children].entries()) {
      if (node.getAttribute("tabindex")) continue;
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "button");
      node.setAttribute("aria-label", `n${index}: what to do`);
    }
    if (this.shownAt !== this.index || this.shownFilm !== this.film) {
      [this.shownAt, this.shownFilm] = [this.index, this.film];
      this.showMoment();
    }
    if (!this.film.by_hand && this.step > this.film.steps - AHEAD / 2) this.extend();
  }

  key(event) {
    if (!byId("menu").hidden && event.key !== "Escape") return;
    super.key(event);
  }

  // A node, or a message, was clicked on.
  touch(event) {
    const node = event.target.closest(".node");
    const dot = event.target.closest(".flight");
    if (!node && !dot) return this.closeMenu();
    this.pause();
    const scene = this.film.scene(this.index);
    const does = (act) => this.act(act);
    let content;
    if (node) {
      const index = [...this.stage.nodes.children].indexOf(node);
      const claims = Object.entries(this.film.state(this.index).claims)
        .filter(([, claim]) => claim.node === index)
        .map(([name, { units, wants }]) => (units ? `${name} holds ${plural(units.length, "unit")}` : `${name} waits for ${wants}`));
      content = nodeMenu(scene, index, claims, does);
    } else {
      const flight = this.flights[this.stage.dots.findIndex(({ group }) => group === dot)];
      if (!flight) return;
      content = messageMenu(scene, flight, does);
    }
    this.openMenu(node ?? dot, content);
  }

  openMenu(at, content) {
    const menu = byId("menu");
    const over = this.film.over && this.index >= this.film.frames.length - 1;
    menu.replaceChildren(...content, ...(over ? [h("p", { class: "warn" }, "The run is over: go back to change it.")] : []));
    menu.hidden = false;
    const [board, where] = [menu.parentElement.getBoundingClientRect(), at.getBoundingClientRect()];
    const place = (start, size, room) => Math.max(4, Math.min(start, room - size - 4));
    const x = where.left + where.width / 2 - board.left;
    const y = where.top - board.top;
    const below = y + where.height + 8;
    const fits = below + menu.offsetHeight < board.height;
    menu.style.left = `${place(x - menu.offsetWidth / 2, menu.offsetWidth, board.width)}px`;
    menu.style.top = `${fits ? below : place(y - menu.offsetHeight - 8, menu.offsetHeight, board.height)}px`;
    menu.querySelector("button")?.focus({ preventScroll: true });
  }

  closeMenu() {
    byId("menu").hidden = true;
  }

  showTab(name) {
    for (const tab of document.querySelectorAll("[data-tab]")) tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
    for (const pane of document.querySelectorAll("[data-panel]")) pane.hidden = pane.dataset.panel !== name;
    // What was hidden was not kept up to date.
    [this.linesAt, this.shownAt] = [undefined, undefined];
    this.draw();
  }

  showForm() {
    const { run } = this;
    for (const id of ["what", "nodes", "units", "workload", "seed", "challenge"]) byId(id).value = run[id];
    byId("setting").hidden = Boolean(run.challenge);
  }

  // What is so for the whole run.
  showRun() {
    const { film } = this;
    this.stage.labelsMax = film.by_hand ? 24 : 10;
    this.showForm();
    document.title = `${film.title} – quorate playground`;
    byId("corrupt").hidden = !film.heals;
    byId("rest").hidden = Boolean(film.challenge);
    this.showBrief();
    this.showBranches();
  }

  showBrief() {
    const { challenge, broken } = this.film;
    const brief = byId("brief");
    brief.hidden = !challenge;
    if (!challenge) return;
    const steps = this.run.acts.length;
    const { par } = challenge;
    const best = challenge.proved ? "no history is shorter" : "our shortest";
    const parts = [h("h2", {}, challenge.title), h("p", {}, challenge.printed)];
    if (broken) {
      const how = steps < par ? "fewer than we needed!" : steps === par ? "as few as ours." : `we needed ${par}.`;
      parts.push(h("p", { class: "won" }, `Broken in ${plural(steps, "step")}: ${how}`), h("p", {}, challenge.why));
    } else {
      parts.push(h("p", { class: "dim" }, `${challenge.hint} Ours: ${par} steps (${best}). Yours so far: ${steps}.`));
    }
    const show = h("button", { type: "button", id: "solution", onclick: () => this.showSolution() }, "show ours");
    const again = h("button", { type: "button", onclick: () => this.anew(this.run) }, "from the start");
    const leave = h("button", { type: "button", onclick: () => this.challenge("") }, "leave");
    brief.replaceChildren(...parts, h("div", { class: "row" }, again, show, leave));
  }

  showSolution() {
    this.keepBranch();
    const acts = this.film.challenge.solution.split(",").map(readAct);
    return this.open({ ...this.run, acts, steps: STEPS_MAX });
  }

  showBranches() {
    const deeds = (acts) => (acts.length ? acts.map(({ act }) => sayAct(act)).join(", ") : "nothing was done");
    const row = ({ run }) => h("li", {}, h("button", { type: "button", onclick: () => this.toBranch(run) }, deeds(run.acts)));
    const here = h("li", { class: "here" }, `here: ${deeds(this.run.acts)}`);
    const hint = h("li", { class: "dim" }, "Go back and do something else: what was is kept here.");
    byId("branches").replaceChildren(here, ...(this.branches.length ? this.branches.map(row) : [hint]));
    say(document.querySelector("[data-tab=branches]"), this.branches.length ? `branches ${this.branches.length + 1}` : "branches");
  }

  toBranch(run) {
    this.keepBranch();
    this.branches = this.branches.filter((other) => other.run !== run);
    return this.open(run);
  }

  // What is so at this moment.
  showMoment() {
    this.showDeeds();
    this.showClaims();
    this.showLaws();
    const { broken, over, verdict, needs, frames } = this.film;
    const end = over && this.index >= frames.length - 1;
    const line = byId("verdict");
    line.className = `verdict ${end ? (broken ? "broken" : "fine") : ""}`;
    const drops = this.run.acts.some(({ act }) => act.startsWith("drop")) && needs.reliability;
    const crashes = this.run.acts.some(({ act }) => /^(crash|vanish)/.test(act)) && needs.permanence;
    const unfair = drops || crashes ? ` It was promised ${drops ? "links that lose nothing" : "nodes and clients that do not crash"}.` : "";
    say(line, end ? `${verdict}.${broken ? unfair : ""}` : "");
  }

  showDeeds() {
    const { step } = this;
    const chips = this.run.acts.map(({ after, act }, index) =>
      h("span", { class: after < step ? "deed" : "deed future" },
        h("button", { type: "button", title: "Go there", onclick: () => this.goto(this.frameOf(after + 1)) }, h("span", { class: "dim" }, `${after} `), sayAct(act)),
        h("button", { type: "button", class: "undo", title: "Undo this", "aria-label": `Undo: ${sayAct(act)}`, onclick: () => this.undo(index) }, "×"),
      ),
    );
    const tip = h("span", { class: "dim" }, "Click on a node or a message.");
    byId("deeds").replaceChildren(...(chips.length ? chips : [tip]));
    byId("clock").title = `step ${step}`;
  }

  showClaims() {
    if (byId("claims").closest("[hidden]")) return;
    const [held, waiting] = [[], []];
    for (const [name, { node, wants, units, fences }] of Object.entries(this.film.state(this.index).claims)) {
      const cells = (...texts) => h("tr", { class: `c${node % 8}` }, ...texts.map((text, place) => h("td", { class: place === 1 ? "who" : "" }, text)));
      const named = this.film.named && units;
      if (units) held.push(cells(name, `n${node}`, named ? units.map((unit) => `u${unit}`).join(", ") : plural(units.length, "unit"), named ? `fence ${[...new Set(fences)].join(", ")}` : ""));
      else waiting.push(cells(name, `n${node}`, `wants ${wants}`, ""));
    }
    const part = (title, rows) => [h("h3", {}, `${title} (${rows.length})`), h("table", {}, ...rows)];
    byId("claims").replaceChildren(...part("hold", held), ...part("wait", waiting));
  }

  showLaws() {
    const { broken, frames } = this.film;
    const law = broken && this.index >= frames.length - 1 ? broken.law : null;
    const known = LAWS.some(([name]) => name === law) || law === null ? LAWS : [...LAWS, [law, ""]];
    say(document.querySelector("[data-tab=laws]"), law ? "laws: 1 broken" : "laws");
    document.querySelector("[data-tab=laws]").classList.toggle("bad", Boolean(law));
    byId("laws").replaceChildren(
      ...known.map(([name, text]) =>
        h("li", { class: name === law ? "bad" : "" }, h("b", {}, `${name === law ? "✗" : "✓"} ${name}`), " ", name === law ? broken.what : text),
      ),
    );
  }
}

async function start() {
  const choices = await (await fetch("/choices")).json();
  let run = readWords(decodeURIComponent(location.hash.slice(1)));
  let film;
  try {
    film = await fetchFilm(writeWords(run, Math.max(MORE, run.steps + AHEAD)));
  } catch (error) {
    byId("problem").hidden = false;
    say(byId("problem"), `The link cannot be played: ${error.message}. Here is another run.`);
    run = readWords("");
    film = await fetchFilm(writeWords(run, MORE));
  }
  window.playground = new Playground(choices, run, film);
}

start();
