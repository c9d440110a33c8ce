/** A client of SQS past the library: the JSON protocol by `fetch`, one connection a call. */
export class SqsClient {
  readonly #url: string;
  #next = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** One call; rejects with the code of what SQS refused. */
  async call<T>(action: string, input: Readonly<Record<string, unknown>>): Promise<T> {
    const answer = await fetch(this.#url, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `AmazonSQS.${action}`,
        authorization:
          "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=, Signature=",
        connection: "close",
      },
      body: JSON.stringify(input),
      signal: AbortSignal.timeout(25_000),
    });
    const body = JSON.parse(await answer.text() || "{}") as T & { readonly __type?: string };
    if (!answer.ok) throw new Error(`${action}: ${body.__type}`);
    return body;
  }

  /** The queue's URL; creates it where it is missing. */
  async queue(name: string, attributes: Readonly<Record<string, string>> = {}): Promise<string> {
    try {
      return (await this.call<{ QueueUrl: string }>("GetQueueUrl", { QueueName: name })).QueueUrl;
    } catch {
      const all = { ...attributes, ...(name.endsWith(".fifo") ? { FifoQueue: "true" } : {}) };
      return (await this.call<{ QueueUrl: string }>("CreateQueue", { QueueName: name, Attributes: all })).QueueUrl;
    }
  }

  async send(name: string, body: string): Promise<void> {
    const id = `raw-${this.#next++}`;
    const fifo = name.endsWith(".fifo") ? { MessageGroupId: id, MessageDeduplicationId: id } : {};
    const Entries = [{ Id: "0", MessageBody: body, ...fifo }];
    const answer = await this.call<{ Failed?: unknown[] }>("SendMessageBatch", {
      QueueUrl: await this.queue(name),
      Entries,
    });
    if ((answer.Failed ?? []).length > 0) throw new Error(`not sent: ${JSON.stringify(answer.Failed)}`);
  }

  async attribute(name: string, attribute: string): Promise<string | undefined> {
    const input = { QueueUrl: await this.queue(name), AttributeNames: [attribute] };
    const answer = await this.call<{ Attributes?: Record<string, string> }>("GetQueueAttributes", input);
    return answer.Attributes?.[attribute];
  }

  async inFlight(name: string): Promise<number> {
    return Number(await this.attribute(name, "ApproximateNumberOfMessagesNotVisible"));
  }

  async visible(name: string): Promise<number> {
    return Number(await this.attribute(name, "ApproximateNumberOfMessages"));
  }
}
