import { Fifo } from "../../core/fifo.ts";

/** One message of a topic. */
export interface Stored {
  readonly seq: number;
  readonly body: string;
  /** Deliveries so far. */
  deliveries: number;
}

/** A member of a group: one memory broker's interest in a topic. */
export interface Member {
  /** It owns the topic now. */
  owns(epoch: number): void;
  /** There may be something to read. */
  wake(): void;
}

/**
 * One group's reading of one topic. Ordered groups have one owner at a time, the longest member; what it leaves unsettled
 * goes to the next, oldest first.
 */
export class MemoryGroup {
  readonly #ordered: boolean;
  readonly #members: Member[] = [];
  readonly #fresh = new Fifo<Stored>();
  readonly #pending = new Map<number, { readonly stored: Stored; readonly member: Member }>();
  #returned: Stored[] = [];
  #epoch = 0;

  constructor(ordered: boolean, backlog: Iterable<Stored>) {
    this.#ordered = ordered;
    for (const stored of backlog) this.#fresh.push({ ...stored, deliveries: 0 });
  }

  /** Messages nobody has settled. */
  get unsettled(): number {
    return this.#fresh.length + this.#pending.size + this.#returned.length;
  }

  /** Messages handed to a member and not settled. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Whether `member` may read. */
  mayRead(member: Member): boolean {
    return this.#members.includes(member) && (!this.#ordered || this.#members[0] === member);
  }

  /** Adds a member; answers whether it owns the topic. */
  join(member: Member): void {
    if (this.#members.includes(member)) return;
    this.#members.push(member);
    if (this.#members[0] === member) member.owns(++this.#epoch);
  }

  /** Removes a member; what it held goes back, oldest first, and the next member takes over. */
  leave(member: Member): void {
    const at = this.#members.indexOf(member);
    if (at < 0) return;
    this.#members.splice(at, 1);
    this.giveBack(
      member,
      [...this.#pending.values()].filter((held) => held.member === member).map((held) => held.stored.seq),
    );
    if (at === 0 && this.#members[0] !== undefined) this.#members[0].owns(++this.#epoch);
    this.#wake();
  }

  /** A message was published. */
  add(seq: number, body: string): void {
    this.#fresh.push({ seq, body, deliveries: 0 });
    this.#wake();
  }

  #wake(): void {
    for (const member of this.#members) if (this.mayRead(member)) member.wake();
  }

  /** The next messages, oldest first. */
  take(member: Member, max: number): Stored[] {
    const out: Stored[] = [];
    while (out.length < max) {
      const stored = this.#returned.shift() ?? this.#fresh.shift();
      if (stored === undefined) break;
      this.#pending.set(stored.seq, { stored, member });
      out.push(stored);
    }
    return out;
  }

  /** Settles; answers whether it was still the member's. */
  settle(member: Member, seq: number): boolean {
    if (this.#pending.get(seq)?.member !== member) return false;
    return this.#pending.delete(seq);
  }

  /** Gives messages back for redelivery, counted. */
  giveBack(member: Member, seqs: readonly number[]): boolean[] {
    const outcomes = seqs.map((seq) => {
      const held = this.#pending.get(seq);
      if (held === undefined || held.member !== member) return false;
      this.#pending.delete(seq);
      held.stored.deliveries++;
      this.#returned.push(held.stored);
      return true;
    });
    this.#returned.sort((a, b) => a.seq - b.seq);
    if (outcomes.includes(true)) this.#wake();
    return outcomes;
  }
}

/** One topic: its groups, and what was published before there was any. */
class MemoryTopic {
  readonly groups = new Map<string, MemoryGroup>();
  readonly #backlog = new Fifo<Stored>();
  #seq = 0;

  publish(body: string): void {
    const seq = this.#seq++;
    if (this.groups.size === 0) this.#backlog.push({ seq, body, deliveries: 0 });
    for (const group of this.groups.values()) group.add(seq, body);
  }

  group(name: string, ordered: boolean): MemoryGroup {
    let group = this.groups.get(name);
    if (group === undefined) {
      const backlog: Stored[] = [];
      for (let next = this.#backlog.shift(); next !== undefined; next = this.#backlog.shift()) backlog.push(next);
      this.groups.set(name, group = new MemoryGroup(ordered, backlog));
    }
    return group;
  }
}

/**
 * The "server" of memory brokers: several brokers given one hub share its topics. A topic keeps what is published until a
 * first group reads it; a group made later sees what is published from then on.
 */
export class MemoryHub {
  readonly #topics = new Map<string, MemoryTopic>();

  #topic(name: string): MemoryTopic {
    let topic = this.#topics.get(name);
    if (topic === undefined) this.#topics.set(name, topic = new MemoryTopic());
    return topic;
  }

  /** Appends a message. */
  publish(topic: string, body: string): void {
    this.#topic(topic).publish(body);
  }

  /** A group's reading, made on first use. */
  group(topic: string, group: string, ordered: boolean): MemoryGroup {
    return this.#topic(topic).group(group, ordered);
  }

  /** Messages of a topic that some group has not settled, or that no group has read. */
  unsettled(topic: string, group = ""): number {
    return this.#topics.get(topic)?.groups.get(group)?.unsettled ?? 0;
  }
}
