import { Buffer } from "node:buffer";
import type { AssignerProtocol } from "./client.ts";
import { divide, type Reader } from "./divide.ts";

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
  /** The partitions of its topic that the member has now. */
  readonly owned: () => readonly number[];
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
 * Assigners that leave partitions where they are as far as that is even, and give free ones to who has fewest. Every topic is
 * shared by those alone who read it; the client's own assigner gives the topics of the leader to everybody.
 */
export function assigners({ protocol, instance, owned, partitionsOf, joining }: AssignerSettings): (() => Assigner)[] {
  return NAMES.map((name, at) => () => ({
    name,
    version: VERSION,
    protocol: ({ topics }) => {
      if (at === 0) joining();
      const userData = Buffer.from(`${instance} ${owned().join(",")}`, "utf8");
      return { name, metadata: protocol.MemberMetadata.encode({ version: VERSION, topics, userData }) };
    },
    assign: async ({ members }) => {
      const shares = new Map(members.map(({ memberId }) => [memberId, {} as Record<string, number[]>]));
      const totals = new Map<string, number>();
      for (const [topic, readers] of readersOf(protocol, members)) {
        for (const [memberId, share] of divide(topic, await partitionsOf(topic), readers, totals)) {
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

/** Who reads which topic. */
function readersOf(protocol: AssignerProtocol, members: readonly Member[]): Map<string, Reader[]> {
  const found = new Map<string, Reader[]>();
  for (const { memberId, memberMetadata } of members) {
    const { topics, userData } = protocol.MemberMetadata.decode(memberMetadata);
    // Other clients write what they like there.
    const told = /^([0-9a-z]{1,16}) ((?:\d{1,5}(?:,\d{1,5})*)?)$/.exec(
      userData === null || userData.length > 65_536 ? "" : Buffer.from(userData).toString("latin1"),
    );
    const claims = told?.[2] === undefined || told[2] === "" || topics.length > 1 ? [] : told[2].split(",").map(Number);
    for (const topic of topics) {
      const readers = found.get(topic) ?? [];
      found.set(topic, readers);
      readers.push({ memberId, instance: told?.[1] ?? memberId, claims });
    }
  }
  return found;
}
