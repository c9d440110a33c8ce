/**
 * SQS's own bounds, from its API reference.
 *
 * @module
 */

/** Most entries of a batch, and messages of one receive. Source: `SendMessageBatch`, `ReceiveMessage`. */
export const MOST_A_CALL = 10;
/** The most that SQS takes as one message or one batch, bytes, attributes included. Source: `SendMessageBatch`. */
export const MOST_BYTES = 1_048_576;
/** Longest that one receipt can be held, ms. Source: `ChangeMessageVisibility`, 12 hours from the receipt on. */
export const MOST_HELD_MS = 43_200_000;
/** How long a FIFO queue drops what it has had already, ms. Source: `MessageDeduplicationId`. */
export const DEDUP_WINDOW_MS = 300_000;
/** The longest that SQS keeps messages, seconds. Source: `MessageRetentionPeriod`. */
export const LONGEST_RETENTION_S = 1_209_600;
