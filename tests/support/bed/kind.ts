/**
 * What the bed has to know about one kind of server. One kind = one file; `kinds.ts` lists them.
 *
 * @module
 */

/** An installed server program. */
export interface Binary {
  /** The program, as it is called inside `root` (or on this machine). */
  readonly file: string;
  /** The folder of the system that holds the program, entered by `chroot`; undefined for this machine's own. */
  readonly root?: string;
}

/** What a caller asks of a server of its own. */
export interface StartOptions {
  /** Further arguments, after the bed's own. `{dir}` in one stands for the data folder. */
  readonly args?: readonly string[];
  /** The port; a free one by default. */
  readonly port?: number;
  /** Further ports, by the names in the kind's `ports`; free ones by default. */
  readonly ports?: Readonly<Record<string, number>>;
  /** Files written to the data folder before the start, by name: an ACL file, a configuration. */
  readonly files?: Readonly<Record<string, string>>;
  /** Makes a certificate authority and certificates in the data folder, and a server that speaks TLS alone. */
  readonly tls?: boolean;
}

/** What a kind needs to know to start a server. */
export interface StartPlan {
  readonly port: number;
  /** A port for each name in the kind's `ports`. */
  readonly ports: Readonly<Record<string, number>>;
  /** The data folder as the server sees it. */
  readonly dir: string;
  /** The same folder as this machine sees it. */
  readonly hostDir: string;
  readonly tls: boolean;
}

/** How a server process is started. */
export interface Launch {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** One kind of server. */
export interface ServerKind {
  /** The name of the leg. */
  readonly name: string;
  /** The environment variable by which a user gives a server. */
  readonly env: string;
  /** What a person must install to have it, for the reason of a skipped leg. */
  readonly needs: string;
  /** Names of further ports that a server takes: of a controller, of a management interface. */
  readonly ports?: readonly string[];
  /** The account that runs the program where root starts it, in the system that holds it; it is given the data folder. */
  readonly user?: string;
  /** What ends the program in order; SIGTERM by default. */
  readonly stopSignal?: "SIGTERM" | "SIGINT";
  /** How long it may take until it answers, milliseconds; 30,000 by default. */
  readonly startMs?: number;
  /** How long it may take to end in order before it is killed, milliseconds; 5,000 by default. */
  readonly stopMs?: number;
  /** The program: installed earlier by the bed, else on the PATH. */
  find(): Binary | undefined;
  /** Installs the program. What several kinds ask of one source in the same turn is installed at once. */
  install(): Promise<void>;
  /**
   * Makes what a server needs in its data folder (a formatted storage, a database, a list of plugins). Called before
   * every start, a restart on kept data too: what is there already stays.
   */
  prepare?(binary: Binary, plan: StartPlan): Promise<void>;
  /** The command line. */
  start(binary: Binary, plan: StartPlan): Launch;
  /** The URL for clients. */
  url(port: number, tls: boolean): string;
  /** One look: whether the server on the port answers. */
  ready(port: number, tls: boolean): Promise<boolean>;
  /** The version of the program, such as `7.0.15`. */
  version(binary: Binary): Promise<string>;
}

/** A leg that is a program to run, not a server. */
export interface ToolKind {
  /** The name of the leg. */
  readonly name: string;
  /** The environment variable by which a user gives the path of the program. */
  readonly env: string;
  /** What a person must install to have it. */
  readonly needs: string;
  /** The path of the program, installed earlier by the bed. */
  find(): string | undefined;
  /** Installs it in the bed's folder. */
  install(): Promise<void>;
}
