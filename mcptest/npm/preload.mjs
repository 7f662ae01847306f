// Runs before a server's own script: it keeps the server on loopback, tells what
// reaches it, and takes orders. Both are lines: of its standard output and input.
import { IncomingMessage, Server as HTTPServer } from "node:http";
import { Server } from "node:net";
import { createInterface } from "node:readline";

const port = Number(process.env.MCPTEST_PORT ?? 0);
const listen = Server.prototype.listen;
Server.prototype.listen = function (...given) {
  const callback = given.findLast((argument) => typeof argument === "function");
  this.once("listening", () => console.log(`listening on http://127.0.0.1:${this.address().port}`));
  return listen.call(this, { host: "127.0.0.1", port }, ...(callback ? [callback] : []));
};

// What arrives is copied on its way to whoever reads it.
const pushed = IncomingMessage.prototype.push;
IncomingMessage.prototype.push = function (chunk, ...rest) {
  if (chunk) (this.copied ??= []).push(chunk);
  return pushed.call(this, chunk, ...rest);
};

const streams = new Set();
const emit = HTTPServer.prototype.emit;
HTTPServer.prototype.emit = function (event, request, response, ...rest) {
  if (event === "request") {
    if (request.method === "GET" || request.headers["mcp-method"] === "subscriptions/listen") {
      streams.add(response);
      response.once("close", () => streams.delete(response));
    }
    request.once("end", () => {
      const body = Buffer.concat(request.copied ?? []).toString();
      console.log("request " + JSON.stringify({ method: request.method, path: request.url, header: request.headers, body }));
    });
    if (request.method !== "POST") request.resume(); // it has no body, and nobody may read to its end
  }
  return emit.call(this, event, request, response, ...rest);
};

createInterface({ input: process.stdin })
  .on("line", (order) => {
    if (order === "cut") for (const stream of streams) stream.destroy();
    else process.emit("order", order);
    console.log("did " + order);
  })
  .on("close", () => process.exit());
