// A server of the first SDK: stateful, stateless or sse.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { equip } from "./tools.mjs";

const authorization = (context) => context.requestInfo?.headers.authorization;
const make = (kept) => equip(new McpServer({ name: "first", version: "1.0.0" }, { instructions: "Use it well." }), { authorization, kept });
const transports = new Map();

const refuse = (response, status, message) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32001, message }, id: null }));

const modes = {
  async stateful(request, response) {
    const id = request.headers["mcp-session-id"];
    if (id && !transports.has(id)) return refuse(response, 404, "Session not found");
    let transport = transports.get(id);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => transports.set(id, transport),
        onsessionclosed: (id) => transports.delete(id),
      });
      await make(true).connect(transport);
    }
    await transport.handleRequest(request, response);
  },

  async stateless(request, response) {
    if (request.method !== "POST") return refuse(response, 405, "Method not allowed.");
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    const server = make(false);
    response.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  },

  async sse(request, response) {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    if (request.method === "GET" && pathname === "/sse") {
      const transport = new SSEServerTransport("/message", response);
      transports.set(transport.sessionId, transport);
      response.on("close", () => transports.delete(transport.sessionId));
      return make(true).connect(transport);
    }
    const transport = transports.get(searchParams.get("sessionId"));
    if (!transport) return refuse(response, 404, "Session not found");
    await transport.handlePostMessage(request, response);
  },
};

const serve = modes[process.argv[2]];
createServer((request, response) => serve(request, response).catch((error) => console.error(error))).listen();

process.on("order", (order) => {
  if (order === "end") for (const transport of transports.values()) transport.closeStandaloneSSEStream();
  else if (order === "forget") transports.clear();
});
