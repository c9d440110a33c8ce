/**
 * What a test imports: `test` over the native runner of each runtime, legs, child scripts, waiting.
 *
 * @module
 */
export { type Child, child, type ChildOptions, type ChildResult } from "./child.ts";
export { isRequired, leg, type LegBody, type LegInfo, type LegTest, onLeg, onLegs } from "./legs.ts";
export { assertExits, type ExitOptions, leakCheck, type LeakOptions } from "./leaks.ts";
export { startProxyProcess } from "./proxy/process.ts";
export { type Direction, type Proxy, type ProxyCounts, type ProxyOptions, startProxy } from "./proxy/proxy.ts";
export { randomFrom } from "./random.ts";
export { type Runtime, runtime, test, type TestBody, type TestContext, type TestOptions } from "./runner.ts";
export type { StartOptions } from "./bed/kind.ts";
export { type Server, startServer } from "./bed/server.ts";
export { onServer, type ServerBody, type ServerTest, type Start } from "./servers.ts";
export { fresh, until, type UntilOptions, within } from "./wait.ts";
