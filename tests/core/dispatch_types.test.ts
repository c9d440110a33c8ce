import assert from "node:assert/strict";
import { InboundDispatcher } from "../../core/dispatch/dispatcher.ts";
import type { Route } from "../../core/dispatch/route.ts";
import type { Store } from "../../core/store/contract.ts";
import { defineTopics, typed } from "../../core/topics.ts";
import { FakeBroker } from "../support/fake_broker.ts";
import { test } from "../support/test.ts";

const topics = defineTopics({
  orders: { "shop.order.placed": typed<{ total: number }>(), "shop.order.cancelled": typed<{ why: string }>() },
  mails: { "shop.mail.requested": typed<{ to: string }>() },
});

const machine: Route = {
  kind: "machine",
  snapshotKey: () => "k",
  ownsTimer: () => false,
  handle: () => "processed",
};

/** Compiled, and only partly run: the compiler is the judge. */
function declare(store: Store<{ query(text: string): Promise<void> }> | undefined): void {
  const broker = new FakeBroker({ topics, group: "types" });
  const app = new InboundDispatcher({
    broker,
    ...(store === undefined ? {} : { store }),
    use: [async (envelope, ctx, next) => {
      const type: string = envelope.type;
      ctx.signal.throwIfAborted();
      assert.ok(type);
      await next();
    }],
    routes: {
      "shop.order.*": (envelope) => {
        if (envelope.type === "shop.order.placed") {
          const total: number = envelope.data.total;
          return total;
        }
        const why: string = envelope.data.why;
        // @ts-expect-error a cancelled order has no total
        return [why, envelope.data.total];
      },
      "shop.order.placed": machine,
      "shop.mail.requested": async (envelope, ctx) => {
        const to: string = envelope.data.to;
        await ctx.tx.query(to);
        ctx.publish("mails", { type: "shop.mail.requested", data: { to } });
        ctx.publish("orders", { type: "shop.order.cancelled", subject: "o", data: { why: "x" } });
        ctx.schedule(new Date(0), "mails", { type: "shop.mail.requested", data: { to } });
        // @ts-expect-error wrong payload
        ctx.publish("mails", { type: "shop.mail.requested", data: { to: 1 } });
        // @ts-expect-error type of another topic
        ctx.publish("mails", { type: "shop.order.cancelled", data: { why: "x" } });
        // @ts-expect-error unknown topic
        ctx.publish("males", { type: "shop.mail.requested", data: { to } });
        // @ts-expect-error a mail has no total
        return envelope.data.total;
      },
      "shop.order.p?aced": (envelope) => {
        const total: number = envelope.data.total;
        return total;
      },
      "*": (envelope) => {
        const type: "shop.order.placed" | "shop.order.cancelled" | "shop.mail.requested" = envelope.type;
        return type;
      },
      "other.thing": (envelope) => {
        const data: unknown = envelope.data;
        return data;
      },
    },
  });
  void (() => app.run(["orders", "mails"]));
  // @ts-expect-error unknown topic
  void (() => app.run(["nope"]));
}

test("InboundDispatcher infers the envelope of each route from the broker's topics", () => {
  declare(undefined);
});

test("InboundDispatcher without topics takes any type and topic, and data is unknown", () => {
  const app = new InboundDispatcher({
    broker: new FakeBroker({ group: "types" }),
    routes: {
      "any.thing": (envelope, ctx) => {
        const data: unknown = envelope.data;
        ctx.publish("anywhere", { type: "any.other", data });
        // @ts-expect-error data is unknown
        return envelope.data.total;
      },
    },
  });
  void (() => app.run(["anything"]));
});

test("InboundDispatcher refuses a handler for another payload at compile time", () => {
  const broker = new FakeBroker({ topics, group: "types" });
  new InboundDispatcher({
    broker,
    routes: {
      // @ts-expect-error a placed order has a numeric total
      "shop.order.placed": (envelope: { data: { total: string } }) => envelope.data.total,
    },
  });
});
