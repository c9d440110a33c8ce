/**
 * What an adapter fills so that a group's members can share the partitions of a topic, one owner a partition.
 *
 * @module
 */

/**
 * The owner records of one topic and group at the broker. Every call is one atomic step there, has a deadline, and rejects
 * when the broker cannot be reached; a rejected call may have taken effect.
 */
export interface OwnerStore {
  /**
   * One try to become the owner for `leaseMs` from now. Answers the new epoch, greater than any epoch before, or `undefined`
   * while another member's lease runs. A lease of this same instance does not stand in its way.
   */
  acquire(partition: number, leaseMs: number): Promise<number | undefined>;
  /** Keeps it for `leaseMs` from now; `false` = it is no longer ours in that epoch. */
  renew(partition: number, epoch: number, leaseMs: number): Promise<boolean>;
  /** Gives it up if it is still ours in that epoch, so that another member can have it at once. */
  surrender(partition: number, epoch: number): Promise<void>;
}

/** The live members of one topic and group. */
export interface MemberStore {
  /** Our own name there, unique. */
  readonly self: string;
  /** Says that we are alive and answers all who said so within `leaseMs`, ourselves included. */
  beat(leaseMs: number): Promise<readonly string[]>;
  /** Takes our name out. */
  leave(): Promise<void>;
}

/** Times of ownership, in milliseconds. */
export interface OwnershipTimes {
  /** How long an owner may stay silent. Renewed every third of it. */
  readonly leaseMs: number;
  /** How often a member that waits for a partition tries to get it. */
  readonly pollMs: number;
}
