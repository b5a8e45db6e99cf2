// The dashboard: one stream of overviews in, one page out.
//
// What is shown is written in the address after #, so that it can be linked and survives a reload.
// The node sends all that is on the screen and nothing else, at most three times a second.

import { askDrain, askRevoke, showWhy } from "./dialogs.js";
import { byId, readJson, say } from "./dom.js";
import { drawKinds } from "./kinds.js";
import { drawHolders, drawLog, drawMembers, drawPages, drawPool, drawQueue, drawRows, eventKey } from "./panels.js";
import { drawLegend, Stage } from "./stage.js";
import { sentence } from "./words.js";

const ROWS = 25;
// On a small screen what is not the pool is folded away.
const small = matchMedia("(max-width: 900px)");
const NODES_OPEN = 12;
const CLAIM_ROWS = small.matches ? 5 : 10;
const FLIGHT_MS = 800;
// Screen readers are told of a few things, and not too often.
const SPEAK = new Set(["expired", "revoked", "missed", "met", "suspected", "stopped"]);
const SPEAK_MS = 5000;

const stage = new Stage(byId("stage"));
const still = matchMedia("(prefers-reduced-motion: reduce)");
let screen = readScreen();
let source = null;
let retry = null;
let seen = null;
let heard = null;
let spokenAt = 0;
let flights = [];
let unknown = "";
let last = null;

function readScreen() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const number = (name) => Math.max(0, Math.floor(Number(hash.get(name)) || 0));
  return {
    pool: hash.get("pool") ?? "", search: hash.get("search") ?? "", claims: hash.get("claims") ?? "",
    sort: hash.get("sort") ?? "", only: hash.get("only") ?? "",
    page: number("page"), holders_page: number("holders_page"), queue_page: number("queue_page"),
  };
}

function change(what) {
  screen = { ...screen, ...what };
  const hash = new URLSearchParams(Object.entries(screen).filter(([, value]) => value));
  history.replaceState(null, "", `#${hash}`);
  open();
}

function choose(pool) {
  change({ pool, claims: "", holders_page: 0, queue_page: 0 });
  byId("claims").value = "";
  if (!small.matches) return;
  byId("pools-box").open = false;
  byId("pool").scrollIntoView();
}

function open() {
  source?.close();
  clearTimeout(retry);
  [seen, heard, flights, unknown] = [null, heard, [], ""];
  const query = new URLSearchParams({ rows: ROWS, claim_rows: CLAIM_ROWS });
  for (const [name, value] of Object.entries(screen)) if (value) query.set(name, value);
  source = new EventSource(`/v1/overview/watch?${query}`);
  const mine = source;
  source.addEventListener("overview", (event) => mine === source && draw(readJson(event.data)));
  source.addEventListener("problem", (event) => mine === source && lost(readJson(event.data)));
  source.onerror = () => {
    if (mine !== source) return;
    link("no answer", "down");
    document.body.classList.add("stale");
    // A browser gives up after some errors; we do not.
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, 1000);
  };
}

function link(text, kind) {
  say(byId("link"), text);
  byId("link").className = `pill ${kind}`;
}

function lost(problem) {
  link("live", "up");
  const none = `There is no pool ${screen.pool}, and no pattern that its name would fit. Choose one of those there are.`;
  unknown = problem.type === "unknown-pool" ? none : `${problem.title}: ${problem.detail}`;
  nothing();
}

// No pool is shown: either there is none of that name, or none was chosen.
function nothing() {
  byId("detail").hidden = true;
  const none = byId("none");
  none.hidden = false;
  none.className = unknown ? "empty bad" : "empty";
  say(none, unknown || "No pool is shown. Choose one.");
}

function draw(view) {
  link("live", "up");
  document.body.classList.remove("stale");
  const { node } = view;
  document.title = `${node.cluster}: quorate`;
  say(byId("cluster"), node.cluster);
  say(byId("here"), `seen from ${node.name}, epoch ${node.epoch}, version ${node.version}`);
  if (!last) byId("nodes").open = !small.matches && view.nodes.length <= NODES_OPEN;
  last = view;
  drawMembers(view);
  drawRows(view, screen, choose, seek);
  drawPages(byId("pools-pages"), screen.page, view.pools_found, ROWS, (page) => change({ page }));
  drawLog(byId("notable"), view.notable, true);
  say(byId("notable-none"), view.notable.length ? "" : "Nothing yet. Expired leases, revoked claims, and nodes that come and go will appear here.");
  speak(view.notable);
  const { pool } = view;
  if (!pool) {
    nothing();
    // A first look shows something.
    if (!screen.pool && !screen.search && view.pools.length) choose(view.pools[0].name);
    return;
  }
  byId("detail").hidden = false;
  byId("none").hidden = true;
  const revoke = (claim) => askRevoke(pool.view.name, claim, view.guarded);
  drawPool(view);
  drawHolders(pool, screen.claims, revoke);
  drawPages(byId("holders-pages"), screen.holders_page, pool.holders_found, CLAIM_ROWS, (page) => change({ holders_page: page }));
  drawQueue(pool, screen.claims, revoke, (claim) => showWhy(pool.view.name, claim));
  drawPages(byId("queue-pages"), screen.queue_page, pool.queue_found, CLAIM_ROWS, (page) => change({ queue_page: page }));
  drawPicture(view);
}

function drawPicture({ nodes, pool, guarded }) {
  const place = new Map(nodes.map((node, index) => [node.name, index]));
  const facts = nodes.map(() => []);
  for (const { node, name, about, value, grows } of pool.view.facts ?? []) {
    facts[place.get(node)]?.push({ name, about: about === undefined ? null : (place.get(about) ?? null), value, grows });
  }
  // Units stand in a card of their own.
  const scene = {
    nodes: nodes.map((node, index) => ({
      name: node.name,
      health: node.answers ? "up" : "down",
      holds: pool.shares[index]?.held ?? 0,
      waiting: pool.shares[index]?.waiting ?? 0,
    })),
    units: 0,
    held: [],
    cuts: nodes.flatMap((node, from) => node.sees.flatMap((sight, to) => (from < to && node.answers && nodes[to].answers && !sight.connected ? [[from, to]] : []))),
    facts: (node) => facts[node] ?? [],
    fact: (node, name, about = null) => facts[node]?.find((fact) => fact.name === name && fact.about === about)?.value ?? 0,
  };
  const shown = stage.show(pool.view.protocol, scene);
  say(byId("caption"), shown.caption ?? "");
  drawLegend(byId("legend"), shown.legend ?? []);
  drawKinds(pool, nodes, place, (unit, drained) => askDrain(pool.view.name, unit, drained, guarded));
  animate(pool.events, shown.deciders ?? (() => []), place);
}

// What happened since the last look travels once: claims to those who decide, grants back.
function animate(events, deciders, place) {
  const known = seen;
  seen = new Set(events.map(eventKey));
  if (!known || still.matches || document.hidden) return;
  const now = performance.now();
  for (const event of events.filter((one) => !known.has(eventKey(one))).slice(0, 12)) {
    const home = place.get(event.node);
    if (home === undefined) continue;
    for (const seat of deciders(home).filter((node) => node !== home)) {
      const flight = { began: now, text: event.what, lost: false };
      if (event.what === "claimed" || event.what === "released") flights.push({ ...flight, from: home, to: seat, kind: 0 });
      if (event.what === "granted") flights.push({ ...flight, from: seat, to: home, kind: 2 });
    }
  }
  if (flights.length) requestAnimationFrame(fly);
}

function fly(now) {
  flights = flights.filter((flight) => now - flight.began < FLIGHT_MS);
  stage.fly(flights.map((flight) => ({ ...flight, progress: Math.max(0, (now - flight.began) / FLIGHT_MS) })));
  if (flights.length) requestAnimationFrame(fly);
}

function speak(notable) {
  const known = heard;
  heard = new Set(notable.map(eventKey));
  if (!known || performance.now() - spokenAt < SPEAK_MS) return;
  const news = notable.find((event) => SPEAK.has(event.what) && !known.has(eventKey(event)));
  if (!news) return;
  spokenAt = performance.now();
  say(byId("spoken"), sentence(news));
}

function searchField(id, name, pages) {
  const field = byId(id);
  field.value = screen[name];
  let wait = null;
  field.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(() => change({ [name]: field.value.trim(), ...pages }), 200);
  });
}

function choice(id) {
  const field = byId(id);
  field.value = screen[id];
  field.addEventListener("change", () => change({ [id]: field.value, page: 0 }));
}

// A pattern was pressed: its pools.
function seek(part) {
  byId("search").value = part;
  change({ search: part, page: 0 });
}

choice("sort");
choice("only");
byId("pools-stalled").addEventListener("click", () => {
  byId("only").value = "unavailable";
  change({ only: "unavailable", page: 0 });
});
// Pictures are drawn pixel by pixel, and anew when there is more or less room.
new ResizeObserver(() => last?.pool && draw(last)).observe(byId("pool"));
if (small.matches && screen.pool) byId("pools-box").open = false;
searchField("search", "search", { page: 0 });
searchField("claims", "claims", { holders_page: 0, queue_page: 0 });
window.addEventListener("hashchange", () => {
  screen = readScreen();
  for (const id of ["sort", "only", "search", "claims"]) byId(id).value = screen[id];
  open();
});
open();
