// A server of the second SDK: stateful, or 2026-07-28 with answers as auto or sse.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { equip, onChange } from "./tools.mjs";

const mode = process.argv[2];
const authorization = (context) => context.http?.req?.headers.get("authorization");
const options = {
  instructions: "Use it well.",
  capabilities: { tools: { listChanged: true } },
  cacheHints: { "tools/list": { ttlMs: 3_600_000, cacheScope: "private" } },
};
const make = (kept) => equip(new McpServer({ name: "second", version: "1.0.0" }, options), { authorization, kept });
const transports = new Map();

async function stateful(request, response) {
  const id = request.headers["mcp-session-id"];
  let transport = transports.get(id);
  if (id && !transport) {
    const gone = { jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null };
    return response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify(gone));
  }
  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => transports.set(id, transport),
      onsessionclosed: (id) => transports.delete(id),
    });
    await make(true).connect(transport);
  }
  await transport.handleRequest(request, response);
}

function modern() {
  const handler = createMcpHandler(() => make(false), { responseMode: mode });
  onChange(() => handler.notify.toolsChanged());
  return toNodeHandler(handler);
}

const serve = mode === "stateful" ? stateful : modern();
createServer((request, response) => serve(request, response).catch((error) => console.error(error))).listen();

process.on("order", (order) => {
  if (order === "end") for (const transport of transports.values()) transport.closeStandaloneSSEStream();
  else if (order === "forget") transports.clear();
});
