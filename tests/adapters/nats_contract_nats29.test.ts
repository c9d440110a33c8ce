import { natsContract } from "./nats_harness.ts";

natsContract("nats29", "inline");
