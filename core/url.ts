/**
 * Broker URLs. They need a parser of their own: `kafka://a:9092,b:9092` and `nats://a,b` are no URLs to WHATWG's.
 *
 * ```
 * scheme:path                                       memory:, sqlite:./events.db
 * scheme://[user[:password]@]host[:port][,host[:port]…][/path][?name=value[&…]]
 * ```
 *
 * All parts are percent-decoded; `+` stays `+`.
 *
 * @module
 */
import { InvalidOptionError } from "./errors.ts";

/** The schemes of all adapters. */
export const BROKER_SCHEMES = [
  "memory",
  "sqlite",
  "redis",
  "rediss",
  "kafka",
  "amqp",
  "amqps",
  "nats",
  "tls",
  "sqs",
  "postgres",
  "postgresql",
] as const;

/** A scheme of {@link BROKER_SCHEMES}. */
export type BrokerScheme = (typeof BROKER_SCHEMES)[number];

/** A server named in a URL. */
export interface BrokerHost {
  /** Name or address; IPv6 without brackets. */
  readonly host: string;
  /** 1 to 65,535; absent = the adapter's default. */
  readonly port?: number;
}

interface Parts {
  readonly scheme: BrokerScheme;
  readonly hosts: readonly BrokerHost[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly path: string | undefined;
  readonly query: ReadonlyMap<string, string>;
}

/** A parsed URL. No printed form of it (text, JSON, inspection, a spread copy) shows a host or a credential. */
export class BrokerUrl {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get scheme(): BrokerScheme {
    return this.#parts.scheme;
  }

  /** Empty for schemes that go without: memory, sqlite, sqs, postgres (socket in the query). */
  get hosts(): readonly BrokerHost[] {
    return this.#parts.hosts;
  }

  get username(): string | undefined {
    return this.#parts.username;
  }

  get password(): string | undefined {
    return this.#parts.password;
  }

  /** Without the slash in front; "" = only the slash, `undefined` = not even that. For sqlite and memory all of the rest. */
  get path(): string | undefined {
    return this.#parts.path;
  }

  /** Options by name. */
  get query(): ReadonlyMap<string, string> {
    return this.#parts.query;
  }

  toString(): string {
    return `BrokerUrl(${this.scheme})`;
  }

  toJSON(): string {
    return this.toString();
  }

  static {
    // Node and Bun ask for the first when they print an object, Deno for the second.
    for (const symbol of ["nodejs.util.inspect.custom", "Deno.customInspect"]) {
      Object.defineProperty(BrokerUrl.prototype, Symbol.for(symbol), { value: BrokerUrl.prototype.toString });
    }
  }
}

const ENCODE = "percent-encode / ? # @ : , in user name and password";

class Parser {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  #wrong(what: string): InvalidOptionError {
    return new InvalidOptionError(`${this.#name}: ${what}`, { details: { option: this.#name } });
  }

  parse(text: unknown): BrokerUrl {
    if (typeof text !== "string" || text === "") throw this.#wrong("must be a text that is not empty");
    if (/\p{Cc}/u.test(text)) throw this.#wrong("must not contain control characters, such as a line break at its end");
    const colon = text.indexOf(":");
    const given = colon === -1 ? "" : text.slice(0, colon).toLowerCase();
    const scheme = BROKER_SCHEMES.find((known) => known === given);
    if (scheme === undefined) {
      throw this.#wrong(`must begin with one of ${BROKER_SCHEMES.map((s) => `${s}:`).join(" ")}`);
    }
    let rest = text.slice(colon + 1);
    if (rest.includes("#")) throw this.#wrong(`must not contain #; ${ENCODE}`);
    const mark = rest.indexOf("?");
    const query = this.#query(mark === -1 ? "" : rest.slice(mark + 1));
    if (mark !== -1) rest = rest.slice(0, mark);
    if (scheme === "memory" || scheme === "sqlite") {
      const path = this.#decode("path", rest.startsWith("//") ? rest.slice(2) : rest);
      if (scheme === "sqlite" && path === "") {
        throw this.#wrong("the path of the database is missing, as in sqlite:./events.db");
      }
      return new BrokerUrl({ scheme, hosts: [], username: undefined, password: undefined, path, query });
    }
    if (/\s/.test(rest)) throw this.#wrong("must not contain spaces");
    if (rest !== "" && !rest.startsWith("//")) throw this.#wrong(`must have // behind ${scheme}:`);
    return this.#withHosts(scheme, rest.slice(2), query);
  }

  #withHosts(scheme: BrokerScheme, rest: string, query: ReadonlyMap<string, string>): BrokerUrl {
    // "nats://a,nats://b": the scheme may be repeated.
    const list = rest.replaceAll(`,${scheme}://`, ",");
    const slash = list.indexOf("/");
    const authority = slash === -1 ? list : list.slice(0, slash);
    const path = slash === -1 ? undefined : list.slice(slash + 1);
    if (path?.includes("@")) throw this.#wrong(`has an @ behind the hosts; ${ENCODE}`);

    const at = authority.indexOf("@");
    const user = at === -1 ? undefined : authority.slice(0, at);
    const hosts: BrokerHost[] = [];
    const named = authority.slice(at + 1);
    for (let item of named === "" ? [] : named.split(",")) {
      const again = item.indexOf("@");
      if (again !== -1 && hosts.length === 0) throw this.#wrong(`has more than one @; ${ENCODE}`);
      if (again !== -1 && item.slice(0, again) !== user) {
        throw this.#wrong("all hosts must have the same user and password");
      }
      item = item.slice(again + 1);
      hosts.push(this.#host(item));
    }
    const isOptional = scheme === "sqs" || scheme === "postgres" || scheme === "postgresql";
    if (hosts.length === 0 && !isOptional) throw this.#wrong("the host is missing");

    const colon = user?.indexOf(":") ?? -1;
    const username = this.#decode("user name", colon === -1 ? user ?? "" : user?.slice(0, colon) ?? "");
    const password = colon === -1 ? undefined : this.#decode("password", user?.slice(colon + 1) ?? "");
    return new BrokerUrl({
      scheme,
      hosts: Object.freeze(hosts),
      username: username === "" ? undefined : username,
      password,
      path: path === undefined ? undefined : this.#decode("path", path),
      query,
    });
  }

  #host(text: string): BrokerHost {
    const parts = /^(?:\[([0-9a-fA-F:.]+(?:%[\w.-]+)?)\]|([^\s\[\]:@/]+))(?::(.*))?$/.exec(text);
    const given = parts?.[1] ?? parts?.[2];
    if (given === undefined) {
      throw this.#wrong(`a host is empty or malformed (IPv6 addresses stand in brackets); ${ENCODE}`);
    }
    const host = this.#decode("host", given);
    const port = parts?.[3];
    if (port === undefined) return Object.freeze({ host });
    if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
      throw this.#wrong(`a port must be a number from 1 to 65,535; ${ENCODE}`);
    }
    return Object.freeze({ host, port: Number(port) });
  }

  #query(text: string): ReadonlyMap<string, string> {
    const query = new Map<string, string>();
    for (const pair of text === "" ? [] : text.split("&")) {
      const equals = pair.indexOf("=");
      const name = this.#decode("query", equals === -1 ? pair : pair.slice(0, equals));
      if (!/^[\w.-]{1,64}$/.test(name)) throw this.#wrong("an option in the query has no valid name");
      if (query.has(name)) throw this.#wrong(`option ${name} stands in the query twice`);
      query.set(name, this.#decode("query", equals === -1 ? "" : pair.slice(equals + 1)));
    }
    return query;
  }

  #decode(part: string, text: string): string {
    try {
      return decodeURIComponent(text);
    } catch {
      throw this.#wrong(`the ${part} has a % that is not followed by two hex digits of UTF-8; write % itself as %25`);
    }
  }
}

/**
 * Parses a broker URL.
 *
 * @param text Such as `redis://user:pw@host:6379/0?tls=true` or `kafka://a:9092,b:9092`.
 * @param name What errors call it, `url` by default.
 * @throws InvalidOptionError saying what is wrong, never quoting the text.
 */
export function parseBrokerUrl(text: string, name: string = "url"): BrokerUrl {
  return new Parser(name).parse(text);
}
