import { plural } from "./dom.js";

// One picture per protocol.
//
// A picture is a function from what is known of a pool to a drawing in words; stage.js does the
// drawing, here and in the replay. It gets a scene:
//
//   nodes   [{ name, health: "up" | "paused" | "down", waiting, holds }]
//   units   how many units the pool has
//   fact    (node, name, about?) => number, 0 if that node does not show it
//   facts   node => [{ name, about, value }]
//
// and returns any of:
//
//   lit      nodes that are special now: { node: "why" }
//   marks    short texts under nodes: { node: ["3 tokens"] }
//   links    [{ from, to, kind: "quiet" | "strong" | "bad", arrow: true }]
//   ring     true to draw the way round
//   deciders node => [nodes] whom a claim made there travels to, and from whom a grant comes back
//   caption  one sentence
//   legend   [[sign, text]]: what the signs mean that it uses; a sign is the class of a link, "lit"
//            or "ring"
//
// A protocol without a function of its own gets `plain`: every fact about another node becomes a
// link, every other fact a mark. To add a picture, add a function to PICTURES; the facts are what
// the protocol's `Protocol::facts` shows (docs/pictures.md).

const names = (scene, nodes) => nodes.map((node) => scene.nodes[node].name).join(", ");
const each = (scene) => scene.nodes.map((_, node) => node);
const known = (scene, fact) => each(scene).filter((node) => scene.fact(node, fact) > 0);

function push(map, key, value) {
  (map[key] ??= []).push(value);
}

// What every protocol may show: who is suspected by whom, who waits out old promises.
function common(scene) {
  const [links, marks, lit] = [[], {}, {}];
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (value === 0) continue;
      if (about !== null && (name === "suspected" || name === "crashed")) {
        links.push({ from: node, to: about, kind: "bad", arrow: true });
      }
      if (about === null && name === "in_grace") push(marks, node, "grace");
    }
  }
  return { links, marks, lit };
}

function plain(scene) {
  const shown = common(scene);
  for (const node of each(scene)) {
    for (const { name, about, value, grows } of scene.facts(node)) {
      if (value === 0 || grows || ["suspected", "crashed", "in_grace"].includes(name)) continue;
      if (about !== null) shown.links.push({ from: node, to: about, kind: "quiet", arrow: true });
      else push(shown.marks, node, `${value} ${name.replaceAll("_", " ")}`);
    }
  }
  const legend = [["quiet", "what a node says of another"]];
  const caption = "Marks under a node are what it says of itself.";
  return { ...shown, legend, caption };
}

function central(scene) {
  const shown = common(scene);
  const seats = known(scene, "decides");
  for (const seat of seats) {
    shown.lit[seat] = "decides";
    for (const other of each(scene)) {
      if (other === seat || scene.nodes[other].health === "down") continue;
      const busy = scene.nodes[other].holds + scene.nodes[other].waiting > 0;
      shown.links.push({ from: other, to: seat, kind: busy ? "strong" : "quiet" });
    }
  }
  const grace = seats.filter((seat) => scene.fact(seat, "in_grace") > 0);
  let caption = `${names(scene, seats)} decides: claims travel to it, grants back.`;
  if (!seats.length) caption = "The seat is down: nothing is granted until it is back.";
  if (grace.length) caption = `${names(scene, grace)} restarted and waits until old promises are over.`;
  const legend = [["lit", "decides"], ["strong", "its clients hold units or wait"], ["quiet", "nobody there wants anything"]];
  return { ...shown, deciders: () => seats, legend, caption };
}

function arbiter(scene) {
  const shown = common(scene);
  let moved = 0;
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (value === 0) continue;
      if (name === "quorum_member" && about !== null) {
        // Whoever holds has its quorum; whoever waits is still asking one.
        const holds = scene.nodes[node].holds > 0;
        if (holds) shown.lit[about] = "in a quorum in use";
        if (about !== node) shown.links.push({ from: node, to: about, kind: holds ? "strong" : "quiet", arrow: holds });
      } else if (name === "permissions") push(shown.marks, node, `${value} permitted`);
      else if (name === "migrations") moved += value;
    }
  }
  const quorum = Object.keys(shown.lit);
  let caption = quorum.length ? `Quorums in use: ${names(scene, quorum)}.` : "No quorum is in use.";
  if (moved) caption += ` ${plural(moved, "migration")} so far.`;
  const deciders = (home) => each(scene).filter((node) => scene.fact(home, "quorum_member", node) > 0);
  const legend = [["lit", "in a quorum that is in use"], ["strong", "relies on it for what its clients hold"], ["quiet", "asks it for a claim that waits, or would"]];
  return { ...shown, deciders, legend, caption };
}

// One table of which members keep copies. Whoever wants something locks a quorum of them in turn,
// takes the newest copy, and stores the next.
function table(scene) {
  const shown = common(scene);
  const version = (node) => [scene.fact(node, "round"), scene.fact(node, "version")];
  const later = (a, b) => a[0] - b[0] || a[1] - b[1];
  const keepers = each(scene).filter((node) => scene.facts(node).some(({ name }) => name === "rows"));
  const newest = keepers.map(version).sort(later).at(-1) ?? [0, 0];
  const [current, behind] = [[], []];
  for (const node of keepers) {
    const same = later(version(node), newest) === 0;
    (same ? current : behind).push(node);
    if (same) shown.lit[node] = "has the newest copy";
    else push(shown.marks, node, "older copy");
    if (scene.fact(node, "locked") > 0) push(shown.marks, node, "locked");
  }
  for (const node of each(scene)) {
    const busy = scene.nodes[node].holds + scene.nodes[node].waiting > 0;
    for (const { name, about, value } of scene.facts(node)) {
      if (name !== "quorum_member" || value === 0 || about === null || about === node) continue;
      shown.links.push({ from: node, to: about, kind: busy ? "strong" : "quiet", arrow: true });
    }
  }
  const rows = Math.max(0, ...current.map((node) => scene.fact(node, "rows")));
  let caption = keepers.length ? `${names(scene, current)} ${current.length === 1 ? "has" : "have"} the newest table, with ${plural(rows, "claim")} in it` : "No member that answers keeps a copy of the table";
  if (behind.length) caption += `; ${names(scene, behind)} will get it when next asked`;
  const deciders = (home) => each(scene).filter((node) => scene.fact(home, "quorum_member", node) > 0);
  const legend = [["lit", "has the newest copy of the table"], ["strong", "will write there next, for clients that hold or wait"], ["quiet", "would write there"]];
  return { ...shown, deciders, legend, caption: `${caption}.` };
}

function broadcast(scene) {
  const shown = common(scene);
  const lost = new Set(shown.links.map((link) => link.to));
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (value === 0) continue;
      const waits = scene.nodes[node].waiting > 0;
      if (name === "answered" && about !== null && waits) {
        shown.links.push({ from: about, to: node, kind: "strong", arrow: true });
      } else if (name === "units_lost") push(shown.marks, node, `${value} lost`);
      else if (name === "joining") push(shown.marks, node, "joining");
    }
  }
  // Responsiveness: whoever too few nodes hear from will be taken for crashed.
  const up = each(scene).filter((node) => scene.nodes[node].health === "up");
  const faint = [];
  for (const node of up) {
    const heard = up.filter((other) => other !== node).map((other) => scene.fact(other, "heard_by", node));
    const least = Math.min(scene.nodes.length, ...heard.filter((count) => count > 0));
    // The last ones to answer are unheard for a moment in the best of networks.
    const most = Math.max(0, ...up.map((other) => scene.fact(other, "crashes_max")));
    if (least > most) continue;
    faint.push(node);
    push(shown.marks, node, `heard by ${least} of ${scene.nodes.length}`);
  }
  const broken = known(scene, "too_many_crashed").length > 0;
  let caption = "An arrow is a permission for whoever waits.";
  if (faint.length) caption = `Too few hear ${names(scene, faint)}, and will take them for crashed.`;
  if (lost.size) caption = `Believed crashed: ${names(scene, [...lost])}.`;
  if (broken) caption = "More are believed crashed than the pool allows for.";
  const deciders = (home) => up.filter((node) => node !== home);
  const legend = [["strong", "has permitted a claim that waits there"], ["bad", "takes it for crashed"]];
  return { ...shown, deciders, legend, caption };
}

function ring(scene) {
  const shown = common(scene);
  let healing = false;
  let known = false;
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (name === "legitimate") [known, healing] = [true, value === 0];
      if (value === 0) continue;
      if (name === "tokens_held") {
        shown.lit[node] = "has tokens";
        push(shown.marks, node, plural(value, "token"));
      } else if (name === "tokens_in_use") {
        shown.lit[node] = "uses tokens";
        push(shown.marks, node, `${value} in use`);
      } else if (name === "blind" || name === "fenced" || name === "quarantine") push(shown.marks, node, name);
      else if (name === "left_out" && about !== null) {
        shown.links.push({ from: node, to: about, kind: "bad", arrow: true });
      }
    }
  }
  let caption = "Tokens go round; whoever has one may use a unit.";
  if (known) caption = healing ? "Healing: the tokens are not yet as many as the units." : "As many tokens as units.";
  const legend = [["ring", "the way of the tokens"], ["lit", "has tokens"], ["bad", "leaves it out"]];
  return { ...shown, ring: true, legend, caption };
}

const PICTURES = { central, arbiter, ticket: arbiter, table, broadcast, ring };

// The picture of a protocol, "broadcast/raymond" and "broadcast" alike.
export function picture(protocol, scene) {
  const family = protocol.split(/[^a-z]/)[0];
  return (PICTURES[family] ?? plain)(scene);
}
