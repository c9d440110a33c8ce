/**
 * The envelope: one CloudEvents 1.0 event, immutable.
 *
 * @module
 */

/** Value of an extension attribute (CloudEvents 1.0 type system: Boolean, Integer, String). */
export type Scalar = string | number | boolean;

/** One CloudEvents 1.0 event. Attribute names are those of the specification. */
export interface Envelope<K extends string = string, D = unknown> {
  readonly specversion: "1.0";
  /** With `source` the identity of the event. */
  readonly id: string;
  /** URI reference of the producer. */
  readonly source: string;
  readonly type: K;
  /** Business key: order is promised per subject. */
  readonly subject?: string;
  /** RFC 3339. */
  readonly time?: string;
  readonly datacontenttype?: string;
  readonly dataschema?: string;
  /** Extension: the id that all events of one story share. */
  readonly correlationid?: string;
  /** Extension: the id of the event that caused this one. */
  readonly causationid?: string;
  /** All other extension attributes; frozen. */
  readonly extensions: Readonly<Record<string, Scalar>>;
  /**
   * The payload, parsed on first access and anew for each attempt. `undefined` = none, `null` = a null payload, a
   * `Uint8Array` = it travelled as `data_base64`. Numbers are JavaScript's, so integers beyond 2^53 lose digits here; the
   * text that is relayed, recorded and replayed keeps every digit.
   */
  readonly data: D;
}

/** What `publish` takes; id, time, source and content type are filled in. */
export interface EnvelopeInit<K extends string = string, D = unknown> {
  readonly type: K;
  /** JSON value, or bytes (any ArrayBuffer or view), which travel as `data_base64`. */
  readonly data?: D;
  readonly subject?: string;
  readonly id?: string;
  readonly source?: string;
  /** RFC 3339 text or a Date. Default: now. */
  readonly time?: string | Date;
  readonly datacontenttype?: string;
  readonly dataschema?: string;
  readonly correlationid?: string;
  readonly causationid?: string;
  /** Names [a-z0-9]+. A Date becomes RFC 3339 text, bytes become base64; null and undefined are left out. */
  readonly extensions?: Readonly<Record<string, Scalar | Date | Uint8Array | null | undefined>>;
}
