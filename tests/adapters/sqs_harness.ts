import { SqsBroker, type SqsBrokerOptions } from "../../adapters/sqs/mod.ts";
import { contractCases, type Harness } from "../contract/mod.ts";
import { leg, onLeg, type Proxy, startProxy, test, type TestContext } from "../support/test.ts";
import { SqsEndpoint } from "../support/sqs/endpoint.ts";
import { SqsClient } from "./sqs_client.ts";

/** Options with which a broker reaches an emulator. */
export const EMULATED: SqsBrokerOptions = {
  region: "us-east-1",
  client: { credentials: { accessKeyId: "test", secretAccessKey: "test" } },
};

interface State {
  proxy?: Proxy;
  client?: SqsClient;
  url?: string;
}

type Isolation = "worker" | "inline";

/** Registers the contract over the emulator of the bed and one isolation. */
export function sqsContract(isolation: Isolation, extra: SqsBrokerOptions = {}): void {
  const known = leg("sqs");
  const register = onLeg("sqs");
  const ordered = extra.ordered !== false;
  const name = ["sqs", isolation, ordered ? "" : "unordered"].filter(Boolean).join(" ");
  const state: State = known === undefined ? {} : { url: known.url };
  // The emulator has one message of a group in flight, and hands messages to reads whose client is gone.
  const harness = { ...harnessOf(name, isolation, extra, state), ...(ordered ? { inFlightPerSubject: 1 } : {}) };
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    const options = { skip, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    register(title, options, async (_info, context) => await runCase(state, run, context));
  }
}

/** The same over an endpoint in this process that keeps the documented rules. */
export function sqsRulesContract(isolation: Isolation, extra: SqsBrokerOptions = {}): void {
  const ordered = extra.ordered !== false;
  const state: State = {};
  const name = ["sqs rules", isolation, ordered ? "" : "unordered"].filter(Boolean).join(" ");
  const harness = harnessOf(name, isolation, extra, state);
  for (const { name: title, run, skip, timeoutMs } of contractCases(harness)) {
    test(title, { skip, ...(timeoutMs === undefined ? {} : { timeoutMs }) }, async (context) => {
      const endpoint = await SqsEndpoint.start();
      context.cleanup(() => endpoint.close());
      state.url = endpoint.url;
      await runCase(state, run, context);
    });
  }
}

async function runCase(state: State, run: () => Promise<void>, context: TestContext): Promise<void> {
  state.proxy = await startProxy({ port: Number(new URL(state.url!).port) });
  context.cleanup(() => state.proxy!.close());
  state.client = new SqsClient(state.url!);
  await run();
}

function harnessOf(name: string, isolation: Isolation, extra: SqsBrokerOptions, state: State): Harness {
  const options = { ...EMULATED, isolation, visibilityTimeoutMs: 2_000, waitMs: 1_000, ...extra };
  const ordered = extra.ordered !== false;
  const queueOf = (topic: string): string => ordered ? `${topic}.fifo` : topic;
  return {
    name,
    ordering: ordered ? "subject" : "none",
    groups: false,
    ...(ordered ? {} : { scattered: true }),
    // SQS takes texts of at least one character.
    carries: (bytes) => bytes.length > 0 && isText(bytes),
    broker: (more) => new SqsBroker({ ...options, endpoint: state.url!, ...more }),
    faultyBroker: (more) => new SqsBroker({ ...options, endpoint: state.proxy!.url(state.url!), ...more }),
    faults: {
      down: async () => {
        await state.proxy!.refuse();
        await state.proxy!.cut();
      },
      up: () => state.proxy!.heal(),
      cut: () => state.proxy!.cut(),
      blackHole: () => state.proxy!.blackHole(),
    },
    raw: async (topic, bytes) => await state.client!.send(queueOf(topic), new TextDecoder().decode(bytes)),
    inFlight: async (topic) => await state.client!.inFlight(queueOf(topic)),
  };
}

function isText(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
