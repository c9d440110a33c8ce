import { Buffer } from "node:buffer";
import { shareOf } from "../../core/ownership/rendezvous.ts";
import type { AssignerProtocol, ClusterSlice } from "./client.ts";

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

/** Makes an assigner for one member. */
export type AssignerFactory = (about: { readonly cluster: ClusterSlice }) => Assigner;

/**
 * `xsm` is chosen where all members are ours. A member that knows no name the others know is refused by the group for good, and
 * `roundrobin` is what other clients know.
 */
const NAMES = ["xsm", "roundrobin"] as const;
const VERSION = 1;

/**
 * Assigners by rendezvous hashing: when a member joins or leaves, few partitions move, and the topics of a group spread over
 * its members. Every topic is shared by those alone who read it; the client's own assigner gives the topics of the leader to
 * everybody.
 *
 * @param instance Stays the same while this transport lives, whatever name the group gives to its member.
 * @param joining Called whenever the member asks the group to let it in, before the request is sent.
 */
export function assigners(protocol: AssignerProtocol, instance: string, joining: () => void): AssignerFactory[] {
  return NAMES.map((name, at) => ({ cluster }) => ({
    name,
    version: VERSION,
    protocol: ({ topics }) => {
      if (at === 0) joining();
      const metadata = { version: VERSION, topics, userData: Buffer.from(instance, "utf8") };
      return { name, metadata: protocol.MemberMetadata.encode(metadata) };
    },
    assign: async ({ members }) => {
      const readers = readersOf(protocol, members);
      await know(cluster, [...readers.keys()]);
      const shares = new Map(members.map(({ memberId }) => [memberId, {} as Record<string, number[]>]));
      for (const [topic, names] of readers) {
        const count = cluster.findTopicPartitionMetadata(topic).length;
        const all = [...names.values()];
        for (const [memberId, called] of names) shares.get(memberId)![topic] = [...shareOf(called, all, count)];
      }
      return members.map(({ memberId }) => ({
        memberId,
        memberAssignment: protocol.MemberAssignment.encode({
          version: VERSION,
          assignment: Object.fromEntries(Object.entries(shares.get(memberId)!).filter(([, share]) => share.length > 0)),
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

/** Topics that other members read may be unknown here. One that is gone keeps nobody from the others. */
async function know(cluster: ClusterSlice, topics: readonly string[]): Promise<void> {
  try {
    await cluster.addMultipleTargetTopics(topics);
  } catch {
    for (const topic of topics) await cluster.addMultipleTargetTopics([topic]).catch(() => {});
  }
}
