import { natsContract } from "./nats_harness.ts";

natsContract("nats", "worker", { ordered: false, ackWaitMs: 1_000 });
