// What an operator does, behind a confirmation; and why a claim waits.

import { byId, h, plural, say, span } from "./dom.js";

const path = (pool, id, rest) => `/v1/pools/${encodeURIComponent(pool)}/claims/${id}/${rest}`;

// The administrator's token, as long as the page is open.
let token = "";

export function askRevoke(pool, claim, guarded) {
  const dialog = byId("revoke");
  const what = claim.count === 1 ? "1 unit" : `${claim.count} units`;
  say(byId("revoke-what"), `${claim.client || "A client"} (${what}${claim.reason ? `, ${claim.reason}` : ""}), claim ${claim.id}`);
  byId("revoke-reason").value = "";
  byId("revoke-token").value = token;
  byId("revoke-token-label").hidden = !guarded;
  say(byId("revoke-problem"), "");
  byId("revoke-no").onclick = () => dialog.close();
  byId("revoke-yes").onclick = (event) => {
    if (!byId("revoke-reason").reportValidity()) return;
    event.preventDefault();
    send(dialog, pool, claim.id);
  };
  dialog.showModal();
  byId("revoke-reason").focus();
}

async function send(dialog, pool, id) {
  const shown = byId("revoke-token").value.trim();
  const headers = { "content-type": "application/json" };
  if (shown) headers.authorization = `Bearer ${shown}`;
  const body = JSON.stringify({ reason: byId("revoke-reason").value });
  byId("revoke-yes").disabled = true;
  try {
    const response = await fetch(path(pool, id, "revoke"), { method: "POST", headers, body });
    const answer = await response.json();
    if (response.ok) {
      token = shown;
      dialog.close();
    } else say(byId("revoke-problem"), `${answer.title}: ${answer.detail}`);
  } catch {
    say(byId("revoke-problem"), "No answer: whether it was revoked is unknown. Repeating is harmless.");
  } finally {
    byId("revoke-yes").disabled = false;
  }
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
  parts.push(h("p", {}, `${place}${plural(why.free, "unit")} free, ${why.missing} missing.`));
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

function obstacle({ units, client, reason, since_ms, expires_in_ms }) {
  const since = since_ms === undefined ? "" : `, for ${span(since_ms)}`;
  const lease = expires_in_ms === undefined ? "" : `, lease ends in ${span(expires_in_ms)} unless renewed`;
  return `${client || "somebody"}: ${plural(units, "unit")}${since}${lease}${reason ? ` (${reason})` : ""}`;
}
