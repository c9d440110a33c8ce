/**
 * The mailer: the outside world, as far as this demo needs one.
 *
 * @module
 */

/** What a customer is told. */
export interface Mail {
  readonly order: string;
  readonly to: string;
  readonly text: string;
}

/** Sends mails. */
export class Mailer {
  readonly #sent = new Map<string, Mail>();
  #count = 0;

  /** Mails sent. */
  get count(): number {
    return this.#count;
  }

  /** Orders about which at least one mail was sent. */
  get orders(): number {
    return this.#sent.size;
  }

  send(mail: Mail): void {
    this.#count++;
    this.#sent.set(mail.order, mail);
  }
}
