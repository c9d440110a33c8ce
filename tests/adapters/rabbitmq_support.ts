/**
 * What the tests of the RabbitMQ adapter share.
 *
 * @module
 */
import { connect } from "amqplib";
import { Buffer } from "node:buffer";
import type { RabbitMqTransportOptions } from "../../adapters/rabbitmq/options.ts";
import { createTransport } from "../../adapters/rabbitmq/transport.ts";
import type { Clock } from "../../core/clock.ts";
import type { Outgoing, Raw, Transport } from "../../core/transport.ts";
import { bedState } from "../support/bed/state.ts";
import { type ControlledServer, rabbitmqctl } from "../support/bed/rabbitmq_kind.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { Listener } from "./transport_support.ts";

/** The bed's server of a leg; `undefined` where the user gave one. */
export function bedServer(leg: string): ControlledServer | undefined {
  return bedState()?.legs[leg];
}

/** Runs Erlang at a server and answers what it printed. */
export async function evaluate(server: ControlledServer, code: string): Promise<string> {
  const { code: exit, stdout, stderr } = await rabbitmqctl(server, ["eval", code]);
  if (exit !== 0) throw new Error(`rabbitmqctl eval failed: ${stderr.slice(-500)}`);
  return stdout.trim();
}

/** What a quorum queue itself counts as delivered and unsettled, at this moment. */
export async function inFlightOf(server: ControlledServer, queue: string): Promise<number> {
  const answer = await evaluate(
    server,
    `case rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"${queue}">>)) of ` +
      "{ok, Q} -> {ok, {_, N}, _} = ra:leader_query(amqqueue:get_pid(Q), " +
      "fun rabbit_fifo:query_messages_checked_out/1), N; _ -> 0 end.",
  );
  return Number(answer);
}

/** The slice of amqplib that tests use past the library. */
export interface RawClient {
  /** Puts bytes into a queue, which is declared with these arguments; resolves when they are confirmed. */
  put(queue: string, bytes: Uint8Array, queueArguments?: object, properties?: object): Promise<void>;
  /** Runs `use` on a channel of its own. */
  channel<T>(use: (channel: RawChannel) => Promise<T>): Promise<T>;
}

/** A channel of amqplib. */
export type RawChannel = Awaited<ReturnType<Awaited<ReturnType<typeof connect>>["createConfirmChannel"]>>;

/** A client of the test's own; ends with the test. */
export async function rawClient(context: TestContext, url: string): Promise<RawClient> {
  const connection = await connect(url);
  connection.on("error", () => {});
  context.cleanup(() => connection.close().catch(() => {}));
  const channel = async <T>(use: (channel: RawChannel) => Promise<T>): Promise<T> => {
    const opened = await connection.createConfirmChannel();
    let ended = false;
    opened.on("error", () => {});
    opened.on("close", () => ended = true);
    try {
      return await use(opened);
    } finally {
      if (!ended) await opened.close();
    }
  };
  return {
    channel,
    put: (queue, bytes, queueArguments = {}, properties = {}) =>
      channel(async (opened) => {
        await opened.assertQueue(queue, { durable: true, arguments: queueArguments });
        opened.sendToQueue(queue, Buffer.from(bytes), { persistent: true, ...properties });
        await opened.waitForConfirms();
      }),
  };
}

/** The transport and what it told; opened, ends with the test. */
export async function openTransport(
  context: TestContext,
  options: RabbitMqTransportOptions,
  clock?: Clock,
): Promise<{ transport: Transport; listener: Listener }> {
  const transport = await createTransport(options, clock);
  const listener = new Listener();
  context.cleanup(() => transport.close());
  await transport.open(listener);
  return { transport, listener };
}

/** Names for one test. */
export function names(): { topic: string; group: string } {
  return { topic: fresh("t"), group: fresh("g") };
}

/** A canonical event as it stands on the wire. */
export function event(data: unknown, subject?: string, id: string = fresh("e")): Outgoing {
  const about = subject === undefined ? "" : `,"subject":${JSON.stringify(subject)}`;
  const body = `{"specversion":"1.0","id":${JSON.stringify(id)},"source":"/t","type":"n"${about},"data":${
    JSON.stringify(data)
  }}`;
  return { body, ...(subject === undefined ? {} : { subject }) };
}

/** The data of what was read. */
export function dataOf(raws: readonly Raw[]): unknown[] {
  return raws.map(({ body }) => {
    const text = typeof body === "string" ? body : new TextDecoder().decode(body!);
    return (JSON.parse(text) as { data: unknown }).data;
  });
}

/** Publishes numbers `from` … `to` and expects all to be confirmed. */
export async function publishNumbers(
  transport: Transport,
  topic: string,
  from: number,
  to: number,
  subject: (n: number) => string = () => "s",
): Promise<void> {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  const failed = (await transport.send(topic, numbers.map((n) => event(n, subject(n))))).find((one) =>
    one !== undefined
  );
  if (failed !== undefined) throw failed;
}
