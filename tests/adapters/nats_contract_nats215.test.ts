import { natsContract } from "./nats_harness.ts";

natsContract("nats215", "inline");
