/**
 * The service: its topics, and what happens to each event on them. This is the file to copy.
 *
 * @module
 */
import { defineTopics, InboundDispatcher, MemoryStore, typed } from "@xsm/eda";
import type { DeadLetter, OutcomeReport, RunReport } from "@xsm/eda";
import { machine } from "@xsm/eda/xstate";
import { openBroker } from "./brokers.ts";
import { type Mail, Mailer } from "./mailer.ts";
import type { Cancellation, Order, OrderLine } from "./order.ts";
import { orderMachine } from "./order_machine.ts";
import { type Payment, PaymentProvider } from "./payments.ts";
import { Warehouse } from "./warehouse.ts";

/** Topic, event type, and what an event of this type carries. The subject of every event is the order's number. */
const topics = defineTopics({
  orders: {
    "shop.order.placed": typed<Order>(),
    "shop.order.paid": typed<{ receipt: string }>(),
    "shop.order.packed": typed<{ label: string }>(),
    "shop.order.shipped": typed<{ tracking: string }>(),
    "shop.order.cancelled": typed<Cancellation>(),
    "shop.order.refunded": typed<undefined>(),
  },
  payments: {
    "shop.payment.requested": typed<Payment>(),
    "shop.refund.requested": typed<{ order: string; receipt: string }>(),
  },
  warehouse: {
    "shop.packing.requested": typed<Order>(),
    "shop.shipping.requested": typed<{ order: string }>(),
  },
  mails: { "shop.mail.requested": typed<Mail>() },
});

/** What the demo does with the service. */
export interface FulfilmentService {
  /** The topics it consumes. */
  readonly topics: readonly string[];
  readonly payments: PaymentProvider;
  readonly mailer: Mailer;
  /** Connects now, and fails where it cannot; without it the first call connects, and a run waits for the broker to come. */
  connect(): Promise<void>;
  publish(lines: readonly OrderLine[]): Promise<void>;
  /** Handles what is ready, then returns. */
  catchUp(): Promise<RunReport>;
  /** Handles what comes until `signal` aborts, then finishes what it has begun. */
  run(signal: AbortSignal): Promise<RunReport>;
  deadLetters(): Promise<readonly DeadLetter[]>;
  close(): Promise<void>;
}

/** Builds the service. */
export function createService(
  options: { readonly engravingMs: number; readonly onOutcome: (report: OutcomeReport) => void },
): FulfilmentService {
  const broker = openBroker({ group: "fulfilment", topics });
  const store = new MemoryStore();
  const payments = new PaymentProvider();
  const warehouse = new Warehouse(options.engravingMs);
  const mailer = new Mailer();

  const app = new InboundDispatcher({
    broker,
    store,
    // The table at the end names what was given up; a warning for each would say it twice.
    logger: false,
    onOutcome: options.onOutcome,
    routes: {
      // One stored instance an order; its state, the receipt of the event and what it emits are stored together or not at all.
      "shop.order.*": machine(orderMachine, { starts: ["shop.order.placed"] }),

      // Plain handlers. `ctx.publish` puts an event into the outbox: it is sent once the handler's unit is stored, never if
      // the handler fails. Returning acks; throwing tries again, and after five failures the event is a dead letter.
      "shop.payment.requested": ({ id, data }, ctx) => {
        const receipt = payments.charge(id, data);
        ctx.publish("orders", { type: "shop.order.paid", subject: data.order, data: { receipt } });
      },
      "shop.refund.requested": ({ data }, ctx) => {
        payments.refund(data.receipt);
        ctx.publish("orders", { type: "shop.order.refunded", subject: data.order });
      },
      "shop.packing.requested": ({ data }, ctx) => {
        const label = warehouse.pack(data);
        ctx.publish("orders", { type: "shop.order.packed", subject: data.order, data: { label } });
      },
      "shop.shipping.requested": ({ data }, ctx) => {
        const tracking = warehouse.ship(data.order);
        ctx.publish("orders", { type: "shop.order.shipped", subject: data.order, data: { tracking } });
      },
      "shop.mail.requested": ({ data }) => mailer.send(data),
    },
  });

  const consumed = ["orders", "payments", "warehouse", "mails"] as const;
  return {
    topics: consumed,
    payments,
    mailer,
    connect: () => broker.connect(),
    publish: async (lines) => void await broker.publishAll("orders", lines),
    catchUp: () => app.runOnce(consumed),
    run: (signal) => app.run(consumed, { signal }),
    deadLetters: () => store.deadLetters.list(),
    async close() {
      await broker.close();
      await store.close();
    },
  };
}
