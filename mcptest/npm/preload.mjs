// Runs before a server's own script.
import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function (...given) {
  const callback = given.findLast((argument) => typeof argument === "function");
  this.once("listening", () => console.log(`listening on http://127.0.0.1:${this.address().port}`));
  return listen.call(this, { host: "127.0.0.1", port: 0 }, ...(callback ? [callback] : []));
};

process.stdin.resume().on("end", () => process.exit());
