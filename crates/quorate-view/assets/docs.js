// The calls of the node's OpenAPI document, each with a line for the shell.

import { byId, h, say } from "./dom.js";

// What most people come for stands first.
const TAGS = ["claims", "pools", "overview"];
const METHODS = ["get", "put", "post", "delete"];
const slug = (method, path) => `${method}${path.replace(/[^a-z0-9]+/gi, "-")}`;

// Names of schemas end a reference: "#/components/schemas/Want".
const named = (schema) => schema?.$ref?.split("/").at(-1);

// An example of a value of this schema, so that bodies can be pasted.
function example(schema, schemas, depth = 0) {
  const name = named(schema);
  if (name) return depth > 4 ? {} : example(schemas[name], schemas, depth + 1);
  if (schema?.type === "array") return [example(schema.items, schemas, depth + 1)];
  if (schema?.additionalProperties) return { key: "value" };
  if (schema?.properties) {
    const parts = Object.entries(schema.properties).map(([key, value]) => [key, example(value, schemas, depth + 1)]);
    return Object.fromEntries(parts);
  }
  if (schema?.type === "integer" || schema?.type === "number") return 1;
  return "text";
}

function curl(method, path, body) {
  const verb = method === "get" ? "" : ` -X ${method.toUpperCase()}`;
  const data = body ? ` -d '${JSON.stringify(body)}'` : "";
  return `curl${verb} "${location.origin}${path}"${data}`;
}

function call(method, path, operation, schemas) {
  const terms = (title, pairs) =>
    pairs.length ? [h("p", { class: "dim" }, title), h("dl", {}, ...pairs.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]))] : [];
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const parameters = (operation.parameters ?? []).map((one) => [one.name, [one.in, one.description].filter(Boolean).join(": ")]);
  const fields = Object.entries(schemas[named(schema)]?.properties ?? {}).map(([name, value]) => [name, value.description ?? ""]);
  const answers = Object.entries(operation.responses ?? {}).map(([status, one]) => {
    const kinds = Object.values(one.content ?? {}).map((content) => named(content.schema)).filter(Boolean);
    return [status, `${one.description}${kinds.length ? ` (${kinds.join(", ")})` : ""}`];
  });
  return h("section", { id: slug(method, path) },
    h("h3", {}, h("b", {}, method.toUpperCase()), path),
    h("p", {}, [operation.summary, operation.description].filter(Boolean).join(" ")),
    h("pre", {}, curl(method, path, schema ? example(schema, schemas) : null)),
    ...terms("Said in the address or a header", parameters), ...terms("Said in the body", fields), ...terms("Answers", answers));
}

async function draw() {
  const main = byId("calls");
  try {
    const document = await (await fetch("/v1/openapi.json")).json();
    const schemas = document.components?.schemas ?? {};
    say(byId("about"), document.info.description);
    const calls = Object.entries(document.paths).flatMap(([path, does]) => METHODS.filter((method) => does[method]).map((method) => [method, path, does[method]]));
    const tags = [...new Set([...TAGS, ...calls.map(([, , operation]) => operation.tags?.[0] ?? "other")])];
    const link = ([method, path]) => h("li", {}, h("a", { href: `#${slug(method, path)}` }, `${method.toUpperCase()} ${path}`));
    const of = (tag) => calls.filter(([, , operation]) => (operation.tags?.[0] ?? "other") === tag);
    byId("index").replaceChildren(h("ul", {}, ...tags.flatMap(of).map(link)));
    main.replaceChildren(...tags.flatMap((tag) => [h("h2", {}, tag), ...of(tag).map(([method, path, operation]) => call(method, path, operation, schemas))]));
    if (location.hash) window.document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch {
    main.replaceChildren(h("p", { class: "bad" }, "The node does not answer: load this page again."));
  }
}

draw();
