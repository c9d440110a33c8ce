import { Buffer } from "node:buffer";
import { shareOf } from "../../core/ownership/rendezvous.ts";
import type { AssignerProtocol } from "./client.ts";

interface Member {
  readonly memberId: string;
  readonly memberMetadata: Uint8Array;
}

/** What the client asks of an assigner. */
interface Assigner {
  readonly name: string;
  readonly version: number;
  protocol(about: { readonly topics: readonly string[] }): { readonly name: string; readonly metadata: Buffer };
  assign(group: { readonly members: readonly Member[] }): Promise<{ memberId: string; memberAssignment: Buffer }[]>;
}

/** What assigners need of their member. */
export interface AssignerSettings {
  readonly protocol: AssignerProtocol;
  /** Stays the same while the transport lives, whatever name the group gives to its member. */
  readonly instance: string;
  /** How many partitions a topic has. Not as the client knows it: that would have to keep topics in mind that others read. */
  readonly partitionsOf: (topic: string) => Promise<number>;
  /** The member asks the group to let it in; called before the request is sent. */
  readonly joining: () => void;
}

/**
 * `xsm` is chosen where all members are ours. A member that knows no name which all others know is refused by the group: the
 * other names are those of other clients, of which the leader decides alone how it divides.
 */
const NAMES: readonly string[] = ["xsm", "roundrobin", "range", "RoundRobinAssigner"];
const VERSION = 1;

/**
 * Assigners by rendezvous hashing: when a member joins or leaves, few partitions move, and the topics of a group spread over
 * its members. Every topic is shared by those alone who read it; the client's own assigner gives the topics of the leader to
 * everybody.
 */
export function assigners({ protocol, instance, partitionsOf, joining }: AssignerSettings): (() => Assigner)[] {
  return NAMES.map((name, at) => () => ({
    name,
    version: VERSION,
    protocol: ({ topics }) => {
      if (at === 0) joining();
      const metadata = { version: VERSION, topics, userData: Buffer.from(instance, "utf8") };
      return { name, metadata: protocol.MemberMetadata.encode(metadata) };
    },
    assign: async ({ members }) => {
      const shares = new Map(members.map(({ memberId }) => [memberId, {} as Record<string, number[]>]));
      for (const [topic, names] of readersOf(protocol, members)) {
        const count = await partitionsOf(topic);
        const all = [...names.values()];
        for (const [memberId, called] of names) {
          const share = [...shareOf(called, all, count)];
          if (share.length > 0) shares.get(memberId)![topic] = share;
        }
      }
      return members.map(({ memberId }) => ({
        memberId,
        memberAssignment: protocol.MemberAssignment.encode({
          version: VERSION,
          assignment: shares.get(memberId)!,
          userData: Buffer.alloc(0),
        }),
      }));
    },
  }));
}

/** By topic, the members that read it and the names by which they are ranked. */
function readersOf(protocol: AssignerProtocol, members: readonly Member[]): Map<string, Map<string, string>> {
  const readers = new Map<string, Map<string, string>>();
  for (const { memberId, memberMetadata } of members) {
    const { topics, userData } = protocol.MemberMetadata.decode(memberMetadata);
    const instance = userData !== null && userData.length > 0 && userData.length < 128
      ? Buffer.from(userData).toString("utf8")
      : memberId;
    for (const topic of topics) {
      const names = readers.get(topic) ?? new Map<string, string>();
      readers.set(topic, names);
      // The topic is a part of the name, or one member would be first in all of them.
      const called = `${topic} ${instance}`;
      names.set(memberId, [...names.values()].includes(called) ? `${called} ${memberId}` : called);
    }
  }
  return readers;
}
