/** What a consumer consumes. */
export interface ConsumerPlan {
  readonly queue: string;
  readonly partition: number;
  /** Most messages unsettled here. */
  readonly share: number;
  /** Whether the queue counts deliveries. */
  readonly counts: boolean;
  readonly priority: number | undefined;
}
