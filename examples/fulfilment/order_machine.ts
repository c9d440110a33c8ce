/**
 * The life of one order, as a state machine. It decides what happens next and does none of it: what it emits is published to
 * those who do.
 *
 * ```text
 * new -> placed -> paid -> packed -> shipped
 *           |       |
 *           v       v
 *    cancelling -> refunding -> cancelled
 * ```
 *
 * @module
 */
import { type AnyStateMachine, assign, emit, setup } from "xstate";
import type { Cancellation, Order } from "./order.ts";

/** What an instance remembers between two events; stored as JSON. */
interface Context {
  readonly order?: Order;
  readonly receipt?: string;
}

type OrderEvent =
  | { readonly type: "shop.order.placed"; readonly data: Order }
  | { readonly type: "shop.order.paid"; readonly data: { readonly receipt: string } }
  | { readonly type: "shop.order.packed" | "shop.order.refunded" }
  | { readonly type: "shop.order.shipped"; readonly data: { readonly tracking: string } }
  | { readonly type: "shop.order.cancelled"; readonly data: Cancellation };

/** `topic` says where it is published; the subject is the instance's own, the order's number. */
interface FollowUp {
  readonly type: string;
  readonly topic: "payments" | "warehouse" | "mails";
  readonly data: unknown;
}

/** What the shop knows of one order. The state names say what has been done; the actions ask for the next step. */
export const orderMachine: AnyStateMachine = setup({
  types: { context: {} as Context, events: {} as OrderEvent, emitted: {} as FollowUp },
  actions: {
    askForPayment: emit(({ context: { order } }) => ({
      type: "shop.payment.requested",
      topic: "payments",
      data: { order: order?.order, cents: order?.totalCents, payBy: order?.payBy },
    })),
    askForPacking: emit(({ context: { order } }) => ({
      type: "shop.packing.requested",
      topic: "warehouse",
      data: order,
    })),
    askForShipping: emit(({ context: { order } }) => ({
      type: "shop.shipping.requested",
      topic: "warehouse",
      data: { order: order?.order },
    })),
    askForRefund: emit(({ context: { order, receipt } }) => ({
      type: "shop.refund.requested",
      topic: "payments",
      data: { order: order?.order, receipt },
    })),
    askForMail: emit(({ context: { order } }, { text }: { text: string }) => ({
      type: "shop.mail.requested",
      topic: "mails",
      data: { order: order?.order, to: order?.customer.email, text },
    })),
  },
}).createMachine({
  id: "order",
  initial: "new",
  context: {},
  states: {
    new: {
      on: {
        "shop.order.placed": {
          target: "placed",
          actions: [assign({ order: ({ event }) => event.data }), "askForPayment"],
        },
      },
    },
    placed: {
      on: {
        "shop.order.paid": {
          target: "paid",
          actions: [assign({ receipt: ({ event }) => event.data.receipt }), "askForPacking"],
        },
        "shop.order.cancelled": "cancelling",
      },
    },
    paid: {
      on: {
        "shop.order.packed": { target: "packed", actions: "askForShipping" },
        "shop.order.cancelled": { target: "refunding", actions: "askForRefund" },
      },
    },
    packed: {
      on: {
        "shop.order.shipped": {
          target: "shipped",
          actions: { type: "askForMail", params: { text: "Your order is on its way." } },
        },
      },
    },
    // The payment was asked for already: it has to arrive before it can be given back.
    cancelling: {
      on: {
        "shop.order.paid": {
          target: "refunding",
          actions: [assign({ receipt: ({ event }) => event.data.receipt }), "askForRefund"],
        },
      },
    },
    refunding: {
      on: {
        "shop.order.refunded": {
          target: "cancelled",
          actions: { type: "askForMail", params: { text: "Your order was cancelled and your money is on its way." } },
        },
      },
    },
    shipped: { type: "final" },
    cancelled: { type: "final" },
  },
});
