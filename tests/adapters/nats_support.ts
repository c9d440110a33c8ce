/**
 * What the tests of the NATS transport share.
 *
 * @module
 */
import { createTransport } from "../../adapters/nats/transport.ts";
import type { NatsTransportOptions } from "../../adapters/nats/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Transport } from "../../core/transport.ts";
import { fresh, type TestContext } from "../support/test.ts";
import { NatsAdmin } from "./nats_admin.ts";
import { Listener } from "./transport_support.ts";

export * from "./nats_admin.ts";
export * from "./transport_support.ts";

/** A transport of the test, opened; ends with the test. */
export async function openNats(
  context: TestContext,
  options: NatsTransportOptions,
  clock?: Clock,
): Promise<{ transport: Transport; listener: Listener }> {
  const transport = await createTransport(options, clock);
  const listener = new Listener();
  context.cleanup(() => transport.close());
  await transport.open(listener);
  return { transport, listener };
}

/** A client of the test's own; ends with the test. */
export async function natsAdmin(context: TestContext, url: string, options: object = {}): Promise<NatsAdmin> {
  const admin = await NatsAdmin.connect(url, options);
  context.cleanup(() => admin.close());
  return admin;
}

/** Names for one test. */
export function natsNames(): { topic: string; group: string; key: string } {
  const topic = fresh("t");
  return { topic, group: "billing", key: `owner.${topic}.billing.0` };
}

/** The owner record of a partition, as it stands in the bucket. */
export async function ownerRecord(admin: NatsAdmin, key: string): Promise<Record<string, unknown>> {
  const { message } = await admin.api<{ message: { data: string } }>("STREAM.MSG.GET.KV_xsm", {
    last_by_subj: `$KV.xsm.${key}`,
  });
  return JSON.parse(atob(message.data));
}

/** Resolves after `ms` real milliseconds: for holding a fault, never for guessing when something is done. */
export function hold(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
