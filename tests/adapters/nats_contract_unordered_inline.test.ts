import { natsContract } from "./nats_harness.ts";

natsContract("nats", "inline", { ordered: false, ackWaitMs: 1_000 });
