/**
 * Typed topics: which event types a topic carries, and the schema of each. Any Standard Schema (zod, valibot, arktype …)
 * checks `data` on the way out and in; {@link typed} only gives a type.
 *
 * @module
 */
import { quoteName } from "./codec_attributes.ts";
import type { Envelope, EnvelopeInit } from "./envelope.ts";
import { InvalidOptionError } from "./errors.ts";

export type { Envelope, EnvelopeInit } from "./envelope.ts";

/** What a Standard Schema validator answers. See https://standardschema.dev. */
export type SchemaResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | {
    readonly issues: readonly {
      readonly message: string;
      readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
    }[];
  };

/** The slice of Standard Schema v1 used here; zod, valibot and arktype schemas fit it. */
export interface Schema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

/** Topic name to event type to schema. */
// deno-lint-ignore no-explicit-any
export type Topics = Readonly<Record<string, Readonly<Record<string, Schema<any, any>>>>>;

/** What a broker built without `topics` has: every name and type is allowed, `data` is unknown. */
export interface AnyTopics extends Topics {}

type SchemaInput<S> = S extends Schema<infer In, infer _Out> ? In : never;
type SchemaOutput<S> = S extends Schema<infer _In, infer Out> ? Out : never;

/** Names of the topics in T. */
export type TopicName<T extends Topics> = keyof T & string;

/** The envelopes of one topic (or of all), as a union over its event types. */
export type EnvelopeOf<T extends Topics, N extends keyof T = keyof T> = string extends keyof T ? Envelope
  : { [P in N]: { [K in keyof T[P] & string]: Envelope<K, SchemaOutput<T[P][K]>> }[keyof T[P] & string] }[N];

/** An init whose `data` may only be left out where its type allows `undefined`. */
type TypedInit<K extends string, In> = undefined extends In ? EnvelopeInit<K, In>
  : EnvelopeInit<K, In> & { readonly data: In };

/** What may be published on one topic, as a union over its event types. */
export type InitOf<T extends Topics, N extends keyof T = keyof T> = string extends keyof T ? EnvelopeInit
  : { [P in N]: { [K in keyof T[P] & string]: TypedInit<K, SchemaInput<T[P][K]>> }[keyof T[P] & string] }[N];

const TYPED = "xsm-typed";

/** A schema that gives `data` a type and checks nothing. */
export function typed<D>(): Schema<D> {
  return { "~standard": { version: 1, vendor: TYPED, validate: (value) => ({ value: value as D }) } };
}

/** Whether a schema is {@link typed}, so that there is nothing to run. */
export function isTypedOnly(schema: Schema): boolean {
  return schema["~standard"].vendor === TYPED;
}

/** Declares the topics of a service; returns what it is given, with its types. */
export function defineTopics<const T extends Topics>(topics: T): T {
  return topics;
}

/** Whether `validate` of a Standard Schema is there. Some libraries' schemas are functions. */
function isSchema(value: unknown): boolean {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  const standard = (value as { readonly "~standard"?: { readonly validate?: unknown } | null })["~standard"];
  return typeof standard?.validate === "function";
}

/**
 * Checks topics as {@link defineTopics} takes them, so that a broker refuses what it could not run.
 *
 * @throws InvalidOptionError naming the topic and the type.
 */
export function checkTopics(topics: unknown): asserts topics is Topics {
  const refuse = (where: string, what: string): InvalidOptionError =>
    new InvalidOptionError(`${where} must be ${what}`, { details: { option: "topics" } });
  if (typeof topics !== "object" || topics === null) throw refuse("topics", "an object, see defineTopics");
  for (const [topic, types] of Object.entries(topics)) {
    if (typeof types !== "object" || types === null) {
      throw refuse(`topics: topic ${quoteName(topic)}`, "an object of event types");
    }
    for (const [type, schema] of Object.entries(types)) {
      if (isSchema(schema)) continue;
      throw refuse(
        `topics: type ${quoteName(type)} of topic ${quoteName(topic)}`,
        "a Standard Schema (zod, valibot, arktype …) or typed<T>()",
      );
    }
  }
}
