/**
 * As much of PostgreSQL's protocol as the tests of the bed need: one connection that asks in plain SQL.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { startupPacket } from "../bed/postgres_kind.ts";

/** One connection, as a superuser whom the server trusts. */
export class PostgresTalk {
  readonly #socket: Socket;
  #bytes = Buffer.alloc(0);
  #answer: { rows: string[]; resolve(rows: string[]): void; reject(error: Error): void } | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (part: Uint8Array) => {
      this.#bytes = Buffer.concat([this.#bytes, part]);
      this.#read();
    });
    socket.on("error", () => {});
    socket.on("close", () => this.#answer?.reject(new Error("The server closed the connection")));
  }

  /** Connects to the port, over TLS with a certificate by `ca` if given; rejects when the server is not there or refuses. */
  static async open(port: number, ca?: string): Promise<PostgresTalk> {
    const plain = connect({ host: "127.0.0.1", port });
    const socket = ca === undefined ? plain : await upgraded(plain, ca);
    const talk = new PostgresTalk(socket);
    await talk.#exchange(startupPacket({ user: "postgres", database: "postgres" }));
    return talk;
  }

  /** Runs one statement; resolves to its rows, the columns joined by `|`. */
  ask(sql: string): Promise<string[]> {
    const text = Buffer.from(`${sql}\0`);
    const packet = Buffer.alloc(5 + text.length);
    packet.write("Q");
    packet.writeInt32BE(4 + text.length, 1);
    text.copy(packet, 5);
    return this.#exchange(packet);
  }

  /** Ends the connection. */
  close(): void {
    this.#socket.destroy();
  }

  #exchange(packet: Uint8Array): Promise<string[]> {
    return new Promise((resolve, reject) => {
      this.#answer = { rows: [], resolve, reject };
      this.#socket.write(packet);
    });
  }

  /** Every message is a letter, its length and its body. */
  #read(): void {
    while (this.#bytes.length >= 5 && this.#bytes.length > this.#bytes.readInt32BE(1)) {
      const end = 1 + this.#bytes.readInt32BE(1);
      const body = this.#bytes.subarray(5, end);
      const type = String.fromCharCode(this.#bytes[0]!);
      this.#bytes = this.#bytes.subarray(end);
      if (type === "D") this.#answer?.rows.push(columns(body));
      else if (type === "E") this.#answer?.reject(new Error(body.toString("utf8").replaceAll("\0", " ")));
      else if (type === "Z") this.#answer?.resolve(this.#answer.rows);
    }
  }
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/** Asks for TLS, which is granted by one letter, and begins with it. */
function upgraded(plain: Socket, ca: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    plain.once("error", reject);
    plain.once("data", (answer: Uint8Array) => {
      if (String.fromCharCode(answer[0]!) !== "S") return reject(new Error("The server refuses TLS"));
      plain.removeAllListeners("data");
      const socket = connectTls({ socket: plain, ca, host: "127.0.0.1" });
      socket.once("secureConnect", () => resolve(socket));
      socket.once("error", reject);
    });
    plain.write(SSL_REQUEST);
  });
}

function columns(row: Buffer): string {
  const values: string[] = [];
  let at = 2;
  for (let left = row.readInt16BE(0); left > 0; left--) {
    const length = row.readInt32BE(at);
    values.push(length < 0 ? "null" : row.toString("utf8", at + 4, at + 4 + length));
    at += 4 + Math.max(0, length);
  }
  return values.join("|");
}
