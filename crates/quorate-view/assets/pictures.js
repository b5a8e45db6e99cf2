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
//   caption  one sentence
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
  const links = [];
  const marks = {};
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (about !== null && value > 0 && /suspect|crashed/.test(name)) {
        links.push({ from: node, to: about, kind: "bad", arrow: true });
      }
      if (about === null && name === "grace" && value > 0) push(marks, node, "grace");
    }
  }
  return { links, marks };
}

function plain(scene) {
  const { links, marks } = common(scene);
  const drawn = new Set(["grace"]);
  for (const node of each(scene)) {
    for (const { name, about, value, grows } of scene.facts(node)) {
      if (value === 0) continue;
      const bad = /suspect|crashed/.test(name);
      if (about !== null && !bad) links.push({ from: node, to: about, kind: "quiet", arrow: true });
      if (about === null && !drawn.has(name) && !grows) {
        push(marks, node, `${value} ${name.replaceAll("_", " ")}`);
      }
    }
  }
  return { links, marks, caption: "" };
}

function central(scene) {
  const { links, marks } = common(scene);
  const lit = {};
  for (const node of known(scene, "decides")) {
    lit[node] = "decides";
    for (const other of each(scene)) {
      if (other === node || scene.nodes[other].health === "down") continue;
      const busy = scene.nodes[other].holds + scene.nodes[other].waiting > 0;
      links.push({ from: other, to: node, kind: busy ? "strong" : "quiet" });
    }
  }
  const seats = Object.keys(lit);
  const grace = seats.filter((node) => scene.fact(Number(node), "grace") > 0);
  let caption = seats.length
    ? `${names(scene, seats)} decides: claims travel to it, grants back.`
    : "The seat is down: nothing is granted until it is back.";
  if (grace.length) caption = `${names(scene, grace)} restarted and waits until old promises are over.`;
  return { lit, marks, links, caption };
}

function arbiter(scene) {
  const { links, marks } = common(scene);
  const lit = {};
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (value === 0 || about === null) continue;
      if (/quorum/.test(name)) {
        lit[about] = "in a quorum in use";
        links.push({ from: node, to: about, kind: "strong", arrow: true });
      } else if (/migrat/.test(name)) {
        links.push({ from: node, to: about, kind: "quiet", arrow: true });
      }
    }
    const held = scene.fact(node, "promised");
    if (held > 0) push(marks, node, `${held} promised`);
  }
  const count = Object.keys(lit).length;
  const caption = count ? `Quorums in use are lit: ${names(scene, Object.keys(lit))}.` : "No quorum is in use.";
  return { lit, marks, links, caption };
}

function broadcast(scene) {
  const { links, marks } = common(scene);
  const lost = new Set(links.map((link) => link.to));
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (about !== null && value > 0 && /permi/.test(name)) {
        links.push({ from: about, to: node, kind: "strong", arrow: true });
      }
    }
    const slots = scene.fact(node, "slots_lost");
    if (slots > 0) push(marks, node, `${slots} slots lost`);
  }
  const left = scene.units - lost.size;
  const caption = lost.size
    ? `Believed crashed: ${names(scene, [...lost])}; ${left} more and nobody is served.`
    : "An arrow is a permission to enter.";
  return { marks, links, caption };
}

function ring(scene) {
  const { links, marks } = common(scene);
  const lit = {};
  let tokens = 0;
  for (const node of each(scene)) {
    for (const { name, about, value } of scene.facts(node)) {
      if (about !== null || value === 0) continue;
      if (name === "tokens") {
        tokens += value;
        lit[node] = "has tokens";
        push(marks, node, plural(value, "token"));
      } else if (/root|resetting|healing/.test(name)) {
        push(marks, node, name.replaceAll("_", " "));
      }
    }
  }
  const caption = tokens && tokens !== scene.units ? `${tokens} tokens for ${scene.units} units: the others travel.` : "";
  return { lit, marks, links, ring: true, caption };
}

const PICTURES = { central, arbiter, broadcast, ring };

// The picture of a protocol, "broadcast/raymond" and "broadcast" alike.
export function picture(protocol, scene) {
  const family = protocol.split(/[^a-z]/)[0];
  return (PICTURES[family] ?? plain)(scene);
}
