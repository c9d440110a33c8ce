/**
 * Envelopes as this library makes them: a text, its attributes, and data that is parsed when somebody reads it.
 *
 * @module
 */
import { decodeBase64 } from "./codec_base64.ts";
import { type Attributes, readHead } from "./codec_head.ts";
import type { Envelope, Scalar } from "./envelope.ts";
import { EnvelopeInvalidError } from "./errors.ts";

/** Length of `,"data":` and `,"data_base64":`, which stand in front of the data of a canonical text. */
const DATA_KEY = 8;
const DATA_BASE64_KEY = 15;

const UNREAD = Symbol("unread");

/** The data as it travels: a JSON literal, or the quoted base64 of bytes. */
export interface WireData {
  readonly literal: string;
  readonly binary: boolean;
}

class WireEnvelope implements Envelope {
  declare readonly specversion: "1.0";
  declare readonly id: string;
  declare readonly source: string;
  declare readonly type: string;
  declare readonly subject?: string;
  declare readonly time?: string;
  declare readonly datacontenttype?: string;
  declare readonly dataschema?: string;
  declare readonly correlationid?: string;
  declare readonly causationid?: string;
  declare readonly extensions: Readonly<Record<string, Scalar>>;
  declare readonly data: unknown;
  readonly #text: string;
  readonly #dataAt: number;
  readonly #binary: boolean;
  #data: unknown;

  // A member of its own and not of the prototype, so that a spread copy has it; one descriptor, so that engines share shapes.
  static readonly #member: PropertyDescriptor & ThisType<WireEnvelope> = {
    enumerable: true,
    get(): unknown {
      return this.#read();
    },
  };

  constructor(text: string, dataAt: number, binary: boolean, data: unknown, a: Attributes) {
    Object.defineProperty(this, "data", WireEnvelope.#member);
    this.#text = text;
    this.#dataAt = dataAt;
    this.#binary = binary;
    this.#data = data;
    this.specversion = "1.0";
    this.id = a.id;
    this.source = a.source;
    this.type = a.type;
    // What is absent on the wire is absent here too.
    if (a.subject !== undefined) this.subject = a.subject;
    if (a.time !== undefined) this.time = a.time;
    if (a.datacontenttype !== undefined) this.datacontenttype = a.datacontenttype;
    if (a.dataschema !== undefined) this.dataschema = a.dataschema;
    if (a.correlationid !== undefined) this.correlationid = a.correlationid;
    if (a.causationid !== undefined) this.causationid = a.causationid;
    this.extensions = a.extensions;
    Object.freeze(this);
  }

  #read(): unknown {
    if (this.#data !== UNREAD) return this.#data;
    if (this.#dataAt === -1) return this.#data = undefined;
    const value: unknown = JSON.parse(this.#text.slice(this.#dataAt, -1));
    return this.#data = this.#binary ? decodeBase64(value as string) : value;
  }

  /** The CloudEvents JSON object, for JSON.stringify. Numbers in it are JavaScript's; {@link textOf} has the exact text. */
  toJSON(): Record<string, unknown> {
    return JSON.parse(this.#text) as Record<string, unknown>;
  }

  static is(value: unknown): value is WireEnvelope {
    return typeof value === "object" && value !== null && #text in value;
  }

  static text(envelope: WireEnvelope): string {
    return envelope.#text;
  }

  static wireData(envelope: WireEnvelope): WireData | undefined {
    if (envelope.#dataAt === -1) return undefined;
    return { literal: envelope.#text.slice(envelope.#dataAt, -1), binary: envelope.#binary };
  }

  static withData(envelope: WireEnvelope, data: unknown): WireEnvelope {
    return new WireEnvelope(envelope.#text, envelope.#dataAt, envelope.#binary, data, {
      id: envelope.id,
      source: envelope.source,
      type: envelope.type,
      subject: envelope.subject,
      time: envelope.time,
      datacontenttype: envelope.datacontenttype,
      dataschema: envelope.dataschema,
      correlationid: envelope.correlationid,
      causationid: envelope.causationid,
      extensions: envelope.extensions,
    });
  }
}

/** An envelope over a canonical text whose attributes are known. */
export function envelopeOver(text: string, dataAt: number, binary: boolean, attributes: Attributes): Envelope {
  return new WireEnvelope(text, dataAt, binary, UNREAD, attributes);
}

/** What is not checked again here: a text that `inspect` returned, on the other side of a thread boundary. */
export function fromInspected(text: string, dataAt: number, binary: boolean): Envelope {
  const end = dataAt === -1 ? text.length - 1 : dataAt - (binary ? DATA_BASE64_KEY : DATA_KEY);
  return new WireEnvelope(text, dataAt, binary, UNREAD, readHead(text, end));
}

/** Whether a value is an envelope of this library: validated, immutable, with its exact text. */
export function isEnvelope(value: unknown): value is Envelope {
  return WireEnvelope.is(value);
}

function own(envelope: Envelope): WireEnvelope {
  if (WireEnvelope.is(envelope)) return envelope;
  throw new EnvelopeInvalidError("the value is no envelope of this library; publish it or pass it to toEnvelope first");
}

/**
 * The exact structured-mode JSON text. That of a received envelope has its data as it came, digit for digit.
 *
 * @throws EnvelopeInvalidError for an object that only looks like an envelope.
 */
export function textOf(envelope: Envelope): string {
  return WireEnvelope.text(own(envelope));
}

/**
 * The data as it stands in the text; `undefined` = none.
 *
 * @throws EnvelopeInvalidError for an object that only looks like an envelope.
 */
export function wireDataOf(envelope: Envelope): WireData | undefined {
  return WireEnvelope.wireData(own(envelope));
}

/**
 * The same envelope with its data unread, so that nobody sees what an earlier reader did to it. Checks and parses nothing.
 *
 * @throws EnvelopeInvalidError for an object that only looks like an envelope.
 */
export function freshEnvelope(envelope: Envelope): Envelope {
  return WireEnvelope.withData(own(envelope), UNREAD);
}

/**
 * The same envelope with other `data` to read, such as the output of a schema. Its text stays what it was.
 *
 * @throws EnvelopeInvalidError for an object that only looks like an envelope.
 */
export function withData(envelope: Envelope, data: unknown): Envelope {
  return WireEnvelope.withData(own(envelope), data);
}
