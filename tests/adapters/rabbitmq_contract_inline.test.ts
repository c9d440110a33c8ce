import { rabbitMqContract } from "./rabbitmq_harness.ts";

rabbitMqContract("rabbitmq", "inline");
