/** Identity of a handled event: CloudEvents source + id, per consumer. Compared as exact strings. */
export interface ReceiptKey {
  readonly consumer: string;
  readonly source: string;
  readonly id: string;
}
