// What somebody can do to a run, in words and in menus.

import { h } from "./dom.js";

// "12:crash:2" and back.
export function readAct(text) {
  const [after, ...act] = text.split(":");
  return { after: Number(after), act: act.join(":") };
}

export function writeActs(acts) {
  return acts.map(({ after, act }) => `${after}:${act}`).join(",");
}

// An act as people say it.
export function sayAct(act) {
  const [what, whom = ""] = act.split(":");
  const pair = whom.split("-").map((node) => `n${node}`);
  return {
    crash: `n${whom} crashes`,
    restart: `n${whom} restarts`,
    forget: `n${whom} restarts, remembering nothing`,
    pause: `n${whom} stands still`,
    resume: `n${whom} goes on`,
    vanish: `clients of n${whom} vanish`,
    cut: `${pair.join("–")} cut`,
    heal: `${pair.join("–")} healed`,
    drop: `message ${whom} lost`,
    deliver: `message ${whom} delivered`,
    claim: `n${whom} claims`,
    release: `n${whom} releases`,
    corrupt: "ring corrupted",
    rest: "let it rest",
  }[what] ?? act;
}

const button = (does, act, text, kind = "") =>
  h("button", { type: "button", class: kind, "data-act": act, onclick: () => does(act) }, text);

// What can be done to a node.
export function nodeMenu(scene, node, claims, does) {
  const { name, health, holds, waiting } = scene.nodes[node];
  const states = { up: "runs", paused: "stands still", down: "is down" };
  const rows = [];
  if (health === "down") {
    rows.push(button(does, `restart:${node}`, "restart"), button(does, `forget:${node}`, "restart, remembering nothing"));
  } else {
    if (health === "paused") rows.push(button(does, `resume:${node}`, "go on"));
    else rows.push(button(does, `pause:${node}`, "stand still"));
    rows.push(button(does, `crash:${node}`, "crash", "bad"));
  }
  const clients = [button(does, `claim:${node}`, "claim now")];
  if (holds) clients.push(button(does, `release:${node}`, "release now"));
  if (holds || waiting) clients.push(button(does, `vanish:${node}`, "vanish", "bad"));
  const isCut = (other) => scene.cuts.some(([a, b]) => (a === node && b === other) || (a === other && b === node));
  const links = scene.nodes.flatMap((other, index) => {
    if (index === node) return [];
    const cut = isCut(index);
    return [button(does, `${cut ? "heal" : "cut"}:${node}-${index}`, `${cut ? "heal" : "✂"} ${other.name}`, cut ? "good" : "")];
  });
  const has = claims.length ? claims.join(", ") : "nobody there wants anything";
  return [
    h("p", { class: "what" }, h("b", {}, name), ` ${states[health]}; ${has}`),
    h("div", { class: "row" }, ...rows),
    h("p", { class: "dim" }, "its clients"),
    h("div", { class: "row" }, ...clients),
    ...(links.length ? [h("p", { class: "dim" }, "its links"), h("div", { class: "row" }, ...links)] : []),
  ];
}

// What can be done to a message.
export function messageMenu(scene, flight, does) {
  const way = `${scene.nodes[flight.from].name} → ${scene.nodes[flight.to].name}`;
  const rows = flight.lost || flight.number === null
    ? [h("span", { class: "dim" }, "it is lost")]
    : [button(does, `deliver:${flight.number}`, "deliver now", "good"), button(does, `drop:${flight.number}`, "lose it", "bad")];
  return [h("p", { class: "what" }, h("b", {}, way), " ", h("code", {}, flight.text)), h("div", { class: "row" }, ...rows)];
}

// What must hold, whatever is done, and when it is looked at.
export const LAWS = [
  ["capacity", "Never more units held than there are."],
  ["exclusivity", "No unit held twice."],
  ["fence order", "Who gets a unit later gets a higher fence."],
  ["one grant per claim", "A claim is granted once, and only while it waits."],
  ["cancelled is over", "What was taken back is not granted any more."],
  ["bounded overtaking", "Nobody is overtaken more often than the pool promises."],
  ["closure", "A ring that is right stays right."],
  ["no panic", "No participant contradicts itself."],
  ["contract", "No participant does what the contract forbids."],
  ["anomaly", "No participant hears what nobody can have said."],
  ["everyone served", "At rest, everybody who waited was served."],
  ["no lost units", "At rest, every unit is free again."],
  ["convergence", "At rest, a corrupted ring has become right."],
];
