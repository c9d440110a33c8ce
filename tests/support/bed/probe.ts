/**
 * One question to a server over TCP, to see whether it answers.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const LIMIT_MS = 1_000;

/**
 * Sends `question` to the port, over TLS with any certificate if so asked, and resolves to what `read` makes of the bytes that came so far, as soon as that is not
 * undefined; to undefined when the connection ends or a second passed before.
 */
export function probe<T>(
  { port, tls }: { readonly port: number; readonly tls: boolean },
  question: Uint8Array,
  read: (bytes: Buffer) => T | undefined,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const parts: Uint8Array[] = [];
    const socket: Socket = tls
      ? connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false })
      : connectPlain({ host: "127.0.0.1", port });
    const timer = setTimeout(() => end(undefined), LIMIT_MS);
    const end = (answer: T | undefined) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.once(tls ? "secureConnect" : "connect", () => socket.write(question));
    socket.on("data", (part: Uint8Array) => {
      parts.push(part);
      const answer = read(Buffer.concat(parts));
      if (answer !== undefined) end(answer);
    });
    socket.once("error", () => end(undefined));
    socket.once("close", () => end(undefined));
  });
}
