/**
 * Runs the schemas of {@link defineTopics} over data: before it is published and before it is handed out.
 *
 * @module
 */
import { quoteName } from "./codec_attributes.ts";
import { withData } from "./codec_envelope.ts";
import type { Envelope } from "./envelope.ts";
import { EnvelopeCorruptError, InvalidOptionError, SchemaInvalidError } from "./errors.ts";
import { closestName } from "./options.ts";
import { MASK, redactText } from "./redact.ts";
import { isTypedOnly, type Schema, type SchemaResult, type Topics } from "./topics.ts";

type Issue = NonNullable<SchemaResult<unknown>["issues"]>[number];

const MAX_NAMES = 20;

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map(quoteName).join(", ");
  return names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown;
}

function hintOf(name: string, names: readonly string[]): string {
  const close = closestName(name, names);
  return close === undefined ? "" : `; did you mean ${quoteName(close)}?`;
}

/** The types of a declared topic; `undefined` where topics are not declared at all. */
function typesOf(topics: Topics | undefined, topic: string): Topics[string] | undefined {
  if (topics === undefined) return undefined;
  if (Object.hasOwn(topics, topic)) return topics[topic];
  const names = Object.keys(topics);
  if (names.length === 0) return undefined;
  throw new InvalidOptionError(
    `topic ${quoteName(topic)} is not declared; declared are ${listed(names)}${hintOf(topic, names)}`,
    { details: { topic } },
  );
}

/**
 * The schema to run before data of `type` goes out on `topic`; `undefined` = nothing to run. Without topics (absent, or
 * none declared) there is nothing to look up.
 *
 * @throws InvalidOptionError for a topic that is not declared, or a type that is not declared in it.
 */
export function outgoingSchema(topics: Topics | undefined, topic: string, type: string): Schema | undefined {
  const types = typesOf(topics, topic);
  if (types === undefined) return undefined;
  const schema = Object.hasOwn(types, type) ? types[type] : undefined;
  if (schema === undefined) {
    const names = Object.keys(types);
    const known = names.length === 0 ? "it has none" : `it has ${listed(names)}`;
    throw new InvalidOptionError(
      `type ${quoteName(type)} is not declared in topic ${quoteName(topic)}; ${known}${hintOf(type, names)}`,
      { details: { topic, type } },
    );
  }
  return isTypedOnly(schema) ? undefined : schema;
}

/**
 * The schema to run before data of `type` from `topic` is handed out; `undefined` = nothing to run. Others may publish what
 * is not declared here: it passes.
 */
export function incomingSchema(topics: Topics | undefined, topic: string, type: string): Schema | undefined {
  if (topics === undefined || !Object.hasOwn(topics, topic)) return undefined;
  const types = topics[topic];
  const schema = types !== undefined && Object.hasOwn(types, type) ? types[type] : undefined;
  return schema === undefined || isTypedOnly(schema) ? undefined : schema;
}

const MAX_MESSAGE = 200;
const MAX_LOOKED_AT = 500;

/** Texts and numbers in a value, which a message about it might quote. Looks at a bounded part of it. */
function leavesOf(value: unknown): string[] {
  const leaves: string[] = [];
  const seen = new Set<object>();
  const todo: unknown[] = [value];
  while (todo.length > 0 && leaves.length + seen.size < MAX_LOOKED_AT) {
    const next = todo.pop();
    if (typeof next === "string" && next !== "") leaves.push(next);
    else if (typeof next === "number" || typeof next === "bigint") leaves.push(String(next));
    else if (typeof next === "object" && next !== null && !ArrayBuffer.isView(next) && !seen.has(next)) {
      seen.add(next);
      todo.push(...Object.values(next).slice(0, MAX_LOOKED_AT));
    }
  }
  return leaves;
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * A schema's message without the value it complains about. Some libraries write `received "…"`; a value counts as quoted
 * where it does not stand inside a longer word, so that a value of "a" does not eat the letters of the message.
 */
function scrub(message: string, value: unknown): string {
  let text = message.slice(0, 4 * MAX_MESSAGE);
  for (const leaf of leavesOf(value).sort((a, b) => b.length - a.length)) {
    // A long value may be cut in the message: its beginning is enough.
    const shown = leaf.slice(0, 64);
    if (!text.includes(shown) && !text.includes(JSON.stringify(shown).slice(1, -1))) continue;
    const forms = [shown, JSON.stringify(shown).slice(1, -1)].map(escapeRegExp).join("|");
    text = text.replace(
      new RegExp(`(?<![\\p{L}\\p{N}])(?:${forms})${leaf.length > 64 ? ".*" : "(?![\\p{L}\\p{N}])"}`, "gsu"),
      MASK,
    );
  }
  text = redactText(text);
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
}

function pathOf(issue: Issue): readonly PropertyKey[] {
  return (issue.path ?? []).map((step) => typeof step === "object" ? step.key : step);
}

function valueAt(data: unknown, path: readonly PropertyKey[]): unknown {
  let value = data;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

function pathText(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (text, key) => typeof key === "number" ? `${text}[${key}]` : `${text}.${String(key)}`,
    "data",
  );
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
}

interface Failure {
  readonly message: string;
  readonly details: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

function failureOf(topic: string, type: string, data: unknown, issues: readonly Issue[]): Failure {
  const [first] = issues;
  const path = first === undefined ? [] : pathOf(first);
  const at = pathText(path);
  const why = first === undefined ? "" : `: ${at}: ${scrub(String(first.message), valueAt(data, path))}`;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return {
    message: `data of type ${quoteName(type)} on topic ${quoteName(topic)} does not pass its schema${why}${more}`,
    details: { attribute: "data", path: at, topic, type },
  };
}

/** A schema that throws says the same about the same data each time, so it counts as a refusal. */
function thrown(topic: string, type: string, cause: unknown): Failure {
  return {
    message: `the schema of type ${quoteName(type)} on topic ${quoteName(topic)} threw instead of answering`,
    details: { attribute: "data", topic, type },
    cause,
  };
}

/**
 * Runs a schema. `accept` gets its result; `refuse` makes the error. Sync schemas are answered at once, without a promise.
 */
function run<R>(
  schema: Schema,
  data: unknown,
  topic: string,
  type: string,
  accept: (output: unknown) => R,
  refuse: (failure: Failure) => Error,
): R | Promise<R> {
  const settle = (result: SchemaResult<unknown>): R => {
    if (result.issues !== undefined) throw refuse(failureOf(topic, type, data, result.issues));
    return accept(result.value);
  };
  let result: SchemaResult<unknown> | Promise<SchemaResult<unknown>>;
  try {
    result = schema["~standard"].validate(data);
  } catch (cause) {
    throw refuse(thrown(topic, type, cause));
  }
  const answered = (answer: unknown): R => {
    if (typeof answer === "object" && answer !== null) return settle(answer as SchemaResult<unknown>);
    throw refuse(thrown(topic, type, new TypeError("a Standard Schema answers an object with value or issues")));
  };
  if (typeof (result as { then?: unknown } | undefined)?.then !== "function") return answered(result);
  return Promise.resolve(result).then(answered, (cause) => {
    throw refuse(thrown(topic, type, cause));
  });
}

/**
 * Checks data by the schema's input before it is published; what is sent is the input, unchanged. Answers a promise only
 * where the schema does.
 *
 * @throws InvalidOptionError for what is not declared, SchemaInvalidError naming the path and never the value; from the
 * promise where there is one, except the first.
 */
export function validateOutgoing(
  topics: Topics | undefined,
  topic: string,
  type: string,
  data: unknown,
): void | Promise<void> {
  const schema = outgoingSchema(topics, topic, type);
  if (schema === undefined) return;
  return run(schema, data, topic, type, () => {}, (failure) => new SchemaInvalidError(failure.message, failure));
}

/**
 * Checks a received envelope and answers it with the schema's output as `data`. What has no schema is answered as it is,
 * its data unread. Answers a promise only where the schema does.
 *
 * @throws EnvelopeCorruptError with reason `schema`; from the promise where there is one.
 */
export function validateIncoming(
  topics: Topics | undefined,
  topic: string,
  envelope: Envelope,
): Envelope | Promise<Envelope> {
  const schema = incomingSchema(topics, topic, envelope.type);
  if (schema === undefined) return envelope;
  const data = envelope.data;
  return run(
    schema,
    data,
    topic,
    envelope.type,
    (output) => output === data ? envelope : withData(envelope, output),
    (failure) => new EnvelopeCorruptError("schema", failure.message, failure),
  );
}

/** The schemas of one broker's topics, to put in the way of what goes out and comes in. */
export interface SchemaGate {
  /**
   * `undefined` = it may go out; a promise where the schema answers one.
   *
   * @throws As {@link validateOutgoing}; from the promise where there is one.
   */
  outgoing(topic: string, envelope: Envelope): undefined | Promise<void>;
  /**
   * `undefined` = hand it out as it is. Else a promise of the envelope with the schema's output as `data`, or of why it is
   * refused; never throws by itself.
   */
  incoming(topic: string, envelope: Envelope): undefined | Promise<Envelope>;
}

/** A gate of these topics. */
export function createSchemaGate(topics: Topics): SchemaGate {
  return {
    outgoing(topic, envelope) {
      const schema = outgoingSchema(topics, topic, envelope.type);
      if (schema === undefined) return undefined;
      const checked = validateOutgoing(topics, topic, envelope.type, envelope.data);
      if (!(checked instanceof Promise)) return undefined;
      // It may be looked at late, or never where another of its batch is refused first: no unhandled rejection.
      checked.catch(() => {});
      return checked;
    },
    incoming(topic, envelope) {
      if (incomingSchema(topics, topic, envelope.type) === undefined) return undefined;
      try {
        const checked = validateIncoming(topics, topic, envelope);
        return checked === envelope ? undefined : Promise.resolve(checked);
      } catch (error) {
        return Promise.reject(error);
      }
    },
  };
}
