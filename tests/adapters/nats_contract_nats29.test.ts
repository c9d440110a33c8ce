import { natsContract } from "./nats_harness.ts";

// The oldest server is a smoke. Several members that come and go fail on it now and then (see docs/nats.md).
natsContract("nats29", "inline", {}, /^(?!.*: order: )/);
