// What an operator does, behind a confirmation; and why a claim waits.

import { byId, h, plural, say, span } from "./dom.js";

const path = (pool, id, rest) => `/v1/pools/${encodeURIComponent(pool)}/claims/${id}/${rest}`;

const CUT_MAX = 48;

// The administrator's token, as long as the page is open.
let token = "";

// Opens a question; `request` says what is sent once it was confirmed.
function confirm(name, what, guarded, request) {
  const dialog = byId(name);
  const part = (rest) => byId(`${name}-${rest}`);
  say(part("what"), what);
  part("token").value = token;
  part("token-label").hidden = !guarded;
  say(part("problem"), "");
  part("no").onclick = () => dialog.close();
  part("yes").onclick = (event) => {
    const reason = part("reason");
    if (reason && !reason.reportValidity()) return;
    event.preventDefault();
    send(dialog, part, request(reason?.value));
  };
  dialog.showModal();
  (part("reason") ?? part("no")).focus();
}

async function send(dialog, part, { url, method, body }) {
  const shown = part("token").value.trim();
  const headers = { "content-type": "application/json" };
  if (shown) headers.authorization = `Bearer ${shown}`;
  part("yes").disabled = true;
  try {
    const response = await fetch(url, { method, headers, body });
    const answer = await response.json();
    if (response.ok) {
      token = shown;
      dialog.close();
    } else say(part("problem"), `${answer.title}: ${answer.detail}`);
  } catch {
    say(part("problem"), "No answer: whether it was done is unknown. Repeating is harmless.");
  } finally {
    part("yes").disabled = false;
  }
}

export function askRevoke(pool, claim, guarded) {
  const what = plural(claim.count, "unit");
  const about = `${claim.client || "A client"} (${what}${claim.reason ? `, ${claim.reason}` : ""}), claim ${claim.id}`;
  byId("revoke-reason").value = "";
  const url = path(pool, claim.id, "revoke");
  confirm("revoke", about, guarded, (reason) => ({ url, method: "POST", body: JSON.stringify({ reason }) }));
}

// Takes a unit out of service, or brings it back.
export function askDrain(pool, unit, drained, guarded) {
  say(byId("drain-title"), drained ? "Bring this unit back?" : "Take this unit out of service?");
  say(byId("drain-yes"), drained ? "Bring back" : "Drain");
  const url = `/v1/pools/${encodeURIComponent(pool)}/units/${encodeURIComponent(unit)}/drain`;
  confirm("drain", `${unit} of ${pool}`, guarded, () => ({ url, method: drained ? "DELETE" : "PUT" }));
}

export async function showWhy(pool, claim) {
  const dialog = byId("why");
  const text = byId("why-text");
  byId("why-close").onclick = () => dialog.close();
  text.replaceChildren(h("p", { class: "dim" }, "Asking the nodes."));
  dialog.showModal();
  try {
    const response = await fetch(path(pool, claim.id, "why"));
    const answer = await response.json();
    text.replaceChildren(...(response.ok ? explain(answer) : [h("p", { class: "bad" }, answer.detail)]));
  } catch {
    text.replaceChildren(h("p", { class: "bad" }, "The node does not answer."));
  }
}

function explain(status) {
  const { why } = status;
  const title = `${status.client || status.id} asks for ${plural(status.asked, "unit")}`;
  if (!why) return [h("p", {}, `${title}. It does not wait: ${status.state}.`)];
  const parts = [h("p", {}, `${title}: ${why.summary}.`)];
  const place = why.position ? `Place ${why.position} in the queue. ` : "";
  // Where units differ, how many are free in all says nothing.
  const room = why.shortage ? "" : `${plural(why.free, "unit")} free, ${why.missing} missing.`;
  if (place || room) parts.push(h("p", {}, `${place}${room}`));
  if (why.shortage) parts.push(h("p", {}, h("b", {}, why.shortage.summary)), units(why.shortage));
  if (why.estimate) {
    const { soon_ms, likely_ms, late_ms, holds } = why.estimate;
    parts.push(h("p", {}, `Starts in about `, h("b", {}, span(likely_ms)), `; ${span(soon_ms)} to ${span(late_ms)} in 8 of 10 cases, going by ${plural(holds, "past hold")}.`));
  } else parts.push(h("p", { class: "dim" }, "No estimate: too few past holds are known."));
  const list = (heading, claims) =>
    claims.length
      ? [h("h3", {}, heading), h("ul", {}, ...claims.slice(0, 12).map((one) => h("li", {}, obstacle(one)))),
         claims.length > 12 ? h("p", { class: "dim" }, `and ${claims.length - 12} more`) : null]
      : [];
  parts.push(...list("In the way", why.holders), ...list("Ahead in the queue", why.ahead));
  const { release = [], cancel = [] } = why.remedy ?? {};
  if (release.length + cancel.length) {
    const name = (id) => [...why.holders, ...why.ahead].find((one) => one.id === id)?.client || id;
    const of = (verb, ids) => (ids.length ? `${verb} ${ids.slice(0, 6).map(name).join(", ")}${ids.length > 6 ? ` and ${ids.length - 6} more` : ""}` : "");
    const both = [of("released:", release), of("cancelled:", cancel)].filter(Boolean).join("; ");
    parts.push(h("h3", {}, "It would start now if"), h("p", {}, `${both}.`));
  }
  return parts.filter(Boolean);
}

// The full cut, unit by unit.
function units({ units, free }) {
  const chips = units.slice(0, CUT_MAX).map((unit) => h("li", { class: "chip short" }, unit));
  if (units.length > CUT_MAX) chips.push(h("li", { class: "dim" }, `and ${units.length - CUT_MAX} more`));
  const label = `${plural(units.length, "unit")} that are short, ${free} free`;
  return h("ul", { class: "chips", "aria-label": label }, ...chips);
}

function obstacle({ units, client, reason, since_ms, expires_in_ms }) {
  const since = since_ms === undefined ? "" : `, for ${span(since_ms)}`;
  const lease = expires_in_ms === undefined ? "" : `, lease ends in ${span(expires_in_ms)} unless renewed`;
  return `${client || "somebody"}: ${plural(units, "unit")}${since}${lease}${reason ? ` (${reason})` : ""}`;
}
