import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import {
  type Proxy,
  type ProxyOptions,
  startProxy,
  startProxyProcess,
  test,
  type TestContext,
  within,
} from "./test.ts";

/** A server that sends back what it gets. */
function echo(context: TestContext): Promise<{ port: number; ended: () => number }> {
  const sockets = new Set<Socket>();
  let ended = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => socket.write(bytes));
    socket.on("close", () => {
      ended++;
      sockets.delete(socket);
    });
  });
  context.cleanup(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve({ port: (server.address() as { port: number }).port, ended: () => ended });
    });
  });
}

/** A client that collects what comes. */
class Client {
  readonly closed: Promise<void>;
  text = "";
  readonly #socket: Socket;
  #watch: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8").on("data", (text: string) => {
      this.text += text;
      this.#watch();
    });
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
  }

  static open(port: number, context: TestContext): Promise<Client> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port });
      context.cleanup(() => socket.destroy());
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Client(socket)));
    });
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  end(): void {
    this.#socket.end();
  }

  /** Resolves when `length` characters came. */
  got(length: number, timeoutMs = 3_000): Promise<void> {
    const came = new Promise<void>((resolve) => {
      this.#watch = () => this.text.length >= length && resolve();
      this.#watch();
    });
    return within(timeoutMs, `${length} characters`, came);
  }
}

type StartProxy = (options: ProxyOptions) => Promise<Proxy>;

for (
  const [where, start] of [["in process", startProxy], ["as a process", startProxyProcess]] as [string, StartProxy][]
) {
  const setUp = async (context: TestContext) => {
    const server = await echo(context);
    const proxy = await start({ port: server.port });
    context.cleanup(() => proxy.close());
    return { server, proxy };
  };

  test(`proxy ${where}: passes bytes both ways, counts, and passes an end on`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    client.send("hello");
    await client.got(5);
    await proxy.arrivals(1);
    assert.deepEqual(await proxy.counts(), { accepted: 1, open: 1, up: 5, down: 5 });
    client.end();
    await within(3_000, "the end to come back", client.closed);
  });

  test(`proxy ${where}: cut ends open connections and takes new ones`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    client.send("a");
    await client.got(1);
    await proxy.cut();
    await within(3_000, "the cut", client.closed);
    const second = await Client.open(proxy.port, context);
    second.send("b");
    await second.got(1);
    assert.equal((await proxy.counts()).accepted, 2);
  });

  test(`proxy ${where}: refuse refuses new connections, keeps open ones, and accept takes new ones`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    client.send("a");
    await client.got(1);
    await proxy.refuse();
    await assert.rejects(Client.open(proxy.port, context), /ECONNREFUSED|refused|connect/i);
    client.send("b");
    await client.got(2);
    await proxy.accept();
    const second = await Client.open(proxy.port, context);
    second.send("c");
    await second.got(1);
  });

  test(`proxy ${where}: a black hole holds bytes and ends, one way or both, until healed`, async (context) => {
    const { proxy, server } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    client.send("a");
    await client.got(1);
    await proxy.blackHole("down");
    client.send("b");
    await assert.rejects(client.got(2, 150));
    assert.deepEqual([(await proxy.counts()).up, (await proxy.counts()).down], [2, 1]);
    await proxy.heal();
    await client.got(2);
    await proxy.blackHole();
    client.send("c");
    client.end();
    await assert.rejects(client.got(3, 150));
    assert.equal((await proxy.counts()).up, 2);
    assert.equal(server.ended(), 0);
    const second = await Client.open(proxy.port, context);
    second.send("d");
    await assert.rejects(second.got(1, 100));
    await proxy.heal();
    await client.got(3);
    await second.got(1);
    await within(3_000, "the end to come back", client.closed);
  });

  test(`proxy ${where}: delay passes bytes on late`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    await proxy.delay(120, "up");
    const start = performance.now();
    client.send("late");
    await client.got(4);
    assert.ok(performance.now() - start >= 110);
  });

  test(`proxy ${where}: slow limits bytes a second`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    await proxy.slow(1_000, "down");
    const start = performance.now();
    client.send("x".repeat(200));
    await client.got(200);
    assert.ok(performance.now() - start >= 150);
    assert.equal(client.text, "x".repeat(200));
  });

  test(`proxy ${where}: cutAfter lets exactly so many bytes pass, once`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    await proxy.cutAfter(3, "down");
    client.send("abcdef");
    await within(3_000, "the cut", client.closed);
    assert.equal(client.text, "abc");
    const second = await Client.open(proxy.port, context);
    second.send("abcdef");
    await second.got(6);
  });

  test(`proxy ${where}: close ends connections and listener, twice`, async (context) => {
    const { proxy } = await setUp(context);
    const client = await Client.open(proxy.port, context);
    client.send("a");
    await client.got(1);
    await proxy.close();
    await proxy.close();
    await within(3_000, "the end", client.closed);
    await assert.rejects(Client.open(proxy.port, context));
  });

  test(`proxy ${where}: a server that is not there closes the client's connection`, async (context) => {
    const { proxy } = await setUp(context);
    const deaf = await start({ port: proxy.port });
    context.cleanup(() => deaf.close());
    await proxy.close();
    const client = await Client.open(deaf.port, context);
    await within(3_000, "the end", client.closed);
  });
}

test("a proxy's URL keeps everything but host and port", async (context) => {
  const { port } = await echo(context);
  const proxy = await startProxy({ port });
  context.cleanup(() => proxy.close());
  const url = proxy.url("rediss://user:p%40ss@db.example:6380/3?family=6");
  assert.equal(url, `rediss://user:p%40ss@127.0.0.1:${proxy.port}/3?family=6`);
  assert.equal(proxy.url("nats://a,b"), `nats://127.0.0.1:${proxy.port}`);
});
