/**
 * Names of streams, durables, subjects and keys, and which partition a subject belongs to.
 *
 * A topic is a stream of its own name, and an envelope is published on `<topic>.<token>`, as the first reference system does
 * it; with more than one partition on `<topic>.<n>.<token>`. What a server takes for no name is written `=XX`, the bytes of its
 * UTF-8 in hex, and so is `=` itself: the name can be read back.
 *
 * @module
 */
import { sha256Hex } from "../../core/sha256.ts";
import { InvalidOptionError } from "../../core/errors.ts";

const utf8 = new TextEncoder();

/** The longest name of a topic or group in bytes: servers take 255, and a durable has its partition and generation behind it. */
const MAX_NAME = 230;
/** The longest token of a subject as it is; what is longer is cut and told apart by its hash. */
const MAX_TOKEN = 128;

/** What is no part of a name: separators and wildcards of subjects and paths, white space, control characters, our `=`. */
// deno-lint-ignore no-control-regex
const NOT_IN_NAMES = /[.*>=\s/\\\u0000-\u001f\u007f-\u009f]|^\$/gu;
/** The same for keys of a bucket, which hold less. */
const NOT_IN_KEYS = /[^A-Za-z0-9_-]/gu;

function escape(text: string, pattern: RegExp): string {
  return text.replace(pattern, (found) => {
    let out = "";
    for (const byte of utf8.encode(found)) out += `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return out;
  });
}

/** The name of the stream of a topic, or of the durable of a group. */
export function nameOf(what: "topic" | "group", name: string): string {
  const escaped = escape(name, NOT_IN_NAMES);
  if (utf8.encode(escaped).length > MAX_NAME) {
    throw new InvalidOptionError(
      `${what} is too long for a server: at most ${MAX_NAME} bytes, where each byte of . * > = / \\ and white space takes three`,
      { details: { option: what } },
    );
  }
  return escaped;
}

/** A name as a part of a key in a bucket. */
export function keyPart(name: string): string {
  return escape(name, NOT_IN_KEYS);
}

/** The last token of the subject that an envelope is published on; no subject counts as the empty one. */
export function tokenOf(subject: string | undefined): string {
  if (subject === undefined || subject === "") return "_";
  // deno-lint-ignore no-control-regex
  const token = subject.replace(/[.*>\s\u0000-\u001f]/gu, "_");
  if (token.length <= MAX_TOKEN) return token;
  return `${token.slice(0, MAX_TOKEN / 2).toWellFormed()}_${sha256Hex(subject).slice(0, 32)}`;
}

/** The partition of a subject; no subject counts as the empty one. */
export function partitionOf(subject: string | undefined, partitions: number): number {
  return partitions === 1 ? 0 : parseInt(sha256Hex(subject ?? "").slice(0, 8), 16) % partitions;
}

/** Names of one topic. */
export class TopicNames {
  readonly stream: string;
  readonly partitions: number;
  /** What the stream takes; says also how many partitions there are. */
  readonly subjects: readonly string[];

  constructor(topic: string, partitions: number) {
    this.stream = nameOf("topic", topic);
    this.partitions = partitions;
    this.subjects = partitions === 1
      ? [`${this.stream}.>`]
      : Array.from({ length: partitions }, (_, partition) => `${this.stream}.${partition}.*`);
  }

  /** What an envelope is published on. */
  subject(of: string | undefined): string {
    if (this.partitions === 1) return `${this.stream}.${tokenOf(of)}`;
    return `${this.stream}.${partitionOf(of, this.partitions)}.${tokenOf(of)}`;
  }

  /** What a durable of one partition reads; `undefined` = all. */
  filter(partition: number): string | undefined {
    return this.partitions === 1 ? undefined : this.subjects[partition]!;
  }

  /** The durable of a partition's owner. */
  durable(group: string, partition: number, generation: number): string {
    return `${nameOf("group", group)}-${partition}-${generation}`;
  }

  /** The generation of a durable that belongs to a partition and group; `undefined` = it is another's. */
  generation(durable: string, group: string, partition: number): number | undefined {
    const lead = `${nameOf("group", group)}-${partition}-`;
    const rest = durable.startsWith(lead) ? durable.slice(lead.length) : "";
    return /^\d+$/.test(rest) ? Number(rest) : undefined;
  }

  /** The bucket's key of who owns a partition. */
  ownerKey(group: string, partition: number): string {
    return `owner.${keyPart(this.stream)}.${keyPart(group)}.${partition}`;
  }

  /** The bucket's key of how far a group is that competes. */
  floorKey(group: string): string {
    return `floor.${keyPart(this.stream)}.${keyPart(group)}`;
  }

  /** Where members of a group say that they are alive. */
  members(bucket: string, group: string): string {
    return `$XSM.${bucket}.${keyPart(this.stream)}.${keyPart(group)}`;
  }
}
