// Small tools for the page: making elements, and writing numbers the way the command does.

const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// An HTML element. Text is always text: nothing that a client said becomes markup.
export function h(tag, attributes, ...children) {
  return make(document.createElement(tag), attributes, children);
}

// An SVG element.
export function s(tag, attributes, ...children) {
  return make(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// Makes the children of a list be one per item, in order. Those that stay are kept, and with them
// the focus of whoever is there.
export function keyed(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = old.get(name);
    if (child) old.delete(name);
    else {
      child = create(item);
      child.dataset.key = name;
    }
    update?.(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

// Changes text only if it differs, so that screen readers are not told the same thing twice.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// 1234 ms as people say it: "1.2s", "4m 10s".
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return "0";
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes}m ${seconds % 60}s` : `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours}h ${minutes % 60}m` : `${hours}h`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

// What a node says. A fence has more digits than a number in a browser: it stays text.
export function readJson(json) {
  return JSON.parse(json.replace(/"fence":(\d+)/g, '"fence":"$1"'));
}

export function plural(count, one, many) {
  return `${count} ${count === 1 ? one : (many ?? one + "s")}`;
}
