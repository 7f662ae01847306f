// The tools of every server here; see doc.go. They are given to the servers of
// both SDKs, which register tools alike.
import { z } from "zod";

const more = new Set(["gone"]);
const equipped = new Set();
const listeners = new Set();
let release;
const released = new Promise((resolve) => (release = resolve));

const text = (said) => ({ content: [{ type: "text", text: said }] });

// onChange is told of each change of the tools.
export const onChange = (listener) => listeners.add(listener);

// equip gives a server its tools, and those that appear while it is kept.
// authorization finds the request's Authorization in what a handler is given.
export function equip(server, { authorization, kept }) {
  let count = 0;
  const register = (name, inputSchema, run, others) =>
    server.registerTool(name, { description: `Does ${name}.`, inputSchema: z.object(inputSchema), ...others }, async (given, context) => {
      console.log("ran " + name);
      return run(given, context);
    });
  const readOnly = { annotations: { readOnlyHint: true } };
  const registered = new Map();
  const add = (name) => registered.set(name, register(name, {}, () => text(name), readOnly));
  register("echo", { text: z.string() }, ({ text: said }) => text(said), readOnly);
  register("add", { a: z.number(), b: z.number() }, ({ a, b }) => ({ content: [], structuredContent: { sum: a + b } }),
    { ...readOnly, outputSchema: z.object({ sum: z.number() }) });
  register("fail", {}, () => { throw new Error("it broke"); }, readOnly);
  register("slow", {}, async () => { await released; return text("done"); }, readOnly);
  register("counter", {}, () => text(String(++count)), readOnly);
  register("whoami", {}, (_, context) => text(authorization(context) ?? ""), readOnly);
  register("grow", { name: z.string() }, ({ name }) => { change("add", name); return text("grown"); }, readOnly);
  for (const name of more) add(name);
  if (!kept) return server;
  const self = {
    add,
    remove(name) {
      registered.get(name)?.remove();
      registered.delete(name);
    },
  };
  equipped.add(self);
  server.server.onclose = () => equipped.delete(self);
  return server;
}

function change(what, name) {
  if (what === "add" ? more.has(name) : !more.has(name)) return;
  more[what === "add" ? "add" : "delete"](name);
  for (const one of equipped) one[what](name);
  for (const listener of listeners) listener();
}

process.on("order", (order) => {
  const [what, name] = order.split(" ");
  if (what === "release") release();
  else if (what === "add" || what === "remove") change(what, name);
});
