import { ENVIRONMENT_IDS } from '@servegym/environments';
import { DEFAULT_RATE_LIMIT, isLoopback, MAX_PROXIES, type RateLimitOptions } from '@servegym/openenv';
import { Command, InvalidArgumentError, Option } from 'commander';
import { defaultWorkLimits } from '../../server/background/background-work.ts';
import { consoleIsBuilt } from '../../server/console-files.ts';
import type { EnvironmentName } from '../../server/mount-environment.ts';
import {
  LOG_FORMATS,
  LOG_LEVELS,
  type LogFormat,
  type LogLevel,
  serverLog,
} from '../../server/server-log.ts';
import { defaultSessionFile } from '../../server/session-storage.ts';
import { startServer } from '../../server/start-server.ts';
import { stopOnSignals } from '../../server/stop-on-signals.ts';
import { byteCount, numberAbove, wholeNumber } from '../arguments/options.ts';
import { loadAnyTask, loadTrace } from '../arguments/own-inputs.ts';
import { allowedHostsOption, withBoundName } from '../arguments/server-options.ts';
import { InputError } from '../input-error.ts';

interface ServeOptions {
  readonly env: readonly [EnvironmentName, ...EnvironmentName[]];
  readonly port: number;
  readonly host: string;
  readonly mode: 'simulation' | 'production';
  readonly store: string;
  readonly storeMaxBytes: number;
  readonly maxSessions: number;
  readonly sessionTimeout: number | 'never';
  readonly drainTimeout: number;
  readonly maxEpisodeRequests: number;
  readonly maxFleetRequests: number;
  readonly maxMessageBytes: number;
  readonly workTimeout: number;
  readonly workMemory: number;
  readonly workThreads: number;
  readonly token: readonly string[];
  readonly cors: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly rateLimit?: RateLimitOptions;
  readonly trustProxy: number;
  readonly log: LogFormat;
  readonly logLevel: LogLevel;
  readonly trace: readonly string[];
  readonly taskFile: readonly string[];
  readonly table?: string;
}

/** In the place of a file: sessions live no longer than the server. */
const IN_MEMORY = 'memory';

/** Simulated requests of all sessions together, for each session that there may be: an episode of a task has about 3,000. */
const REQUESTS_OF_SESSION = 4000;

/** `servegym serve`: an environment over OpenEnv, with its console, until a signal ends it. */
export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Serve an environment over OpenEnv, with the web console.')
    .addOption(
      new Option(
        '--env <names>',
        `environments, separated by commas: ${ENVIRONMENT_IDS.join(', ')}, or a module that exports one. The first is at the root, the others are below their names, as in /inferencegym/web/`,
      )
        .env('SERVEGYM_ENV')
        .argParser(environmentNames)
        .default(ENVIRONMENT_IDS, ENVIRONMENT_IDS.join(',')),
    )
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 takes any free one')
        .env('PORT')
        .default(7860)
        .argParser(wholeNumber(0, 65535)),
    )
    .addOption(
      new Option('--host <address>', 'address to listen on; 0.0.0.0 is all of them, for other machines too')
        .env('HOST')
        .default('127.0.0.1'),
    )
    .addOption(
      new Option(
        '--mode <mode>',
        'production leaves out what only trainers need: /reset, /step, /state, the console',
      )
        .env('SERVEGYM_MODE')
        .choices(['simulation', 'production'])
        .default('simulation'),
    );
  for (const addOptions of [
    addContentOptions,
    addSessionOptions,
    addLimitOptions,
    addAccessOptions,
    addLogOptions,
  ])
    addOptions(command);
  return command.action(serve);
}

function addContentOptions(command: Command): void {
  command
    .optionsGroup('Environments:')
    .option(
      '--trace <file>',
      'your own requests. Clients select them with `reset({trace: NAME})`, the file name without its ending; may be repeated',
      repeated,
      [],
    )
    .option(
      '--task-file <file>',
      'a task of your own, of llmserve or fleet, JSON or a module; may be repeated',
      repeated,
      [],
    )
    .addOption(
      new Option('--table <file.parquet>', 'inferencegym: a table of your own measurements').env(
        'SERVEGYM_TABLE',
      ),
    );
}

function addSessionOptions(command: Command): void {
  command
    .optionsGroup('Sessions:')
    .addOption(
      new Option(
        '--store <file|url>',
        'SQLite file that keeps sessions over a restart, redis://... for servers on several machines, or `memory` to keep none',
      )
        .env('SERVEGYM_STORE')
        .argParser(storeName)
        .default(defaultSessionFile()),
    )
    .addOption(
      new Option(
        '--store-max-bytes <size>',
        'limit of the file, such as 500MB or 2GiB. Each client may use a quarter of it. The oldest sessions are deleted first',
      )
        .env('SERVEGYM_STORE_MAX_BYTES')
        .argParser(byteCount(2 ** 20))
        .default(2 ** 30, '1GiB'),
    )
    .addOption(
      new Option('--max-sessions <number>', 'most sessions at once')
        .env('MAX_CONCURRENT_ENVS')
        .default(1024)
        .argParser(wholeNumber(1, 1_000_000)),
    )
    .addOption(
      new Option(
        '--session-timeout <seconds>',
        'idle time after which a session without a socket leaves memory, or `never`',
      )
        .env('SERVEGYM_SESSION_TIMEOUT')
        .argParser((text) => (text === 'never' ? text : numberAbove(0)(text)))
        .default(3600),
    )
    .addOption(
      new Option('--drain-timeout <seconds>', 'how long open sessions may continue when the server stops')
        .env('SERVEGYM_DRAIN_TIMEOUT')
        .argParser(wholeNumber(0, 86_400))
        .default(5),
    );
}

function addLimitOptions(command: Command): void {
  const work = defaultWorkLimits();
  command
    .optionsGroup('Limits:')
    .addOption(
      new Option('--max-episode-requests <number>', 'llmserve: most simulated requests of an episode, about')
        .env('SERVEGYM_MAX_EPISODE_REQUESTS')
        .default(20_000)
        .argParser(wholeNumber(1, 10_000_000)),
    )
    .addOption(
      new Option('--max-fleet-requests <number>', 'fleet: most simulated requests of an episode, about')
        .env('SERVEGYM_MAX_FLEET_REQUESTS')
        .default(8_000_000)
        .argParser(wholeNumber(1, 1_000_000_000)),
    )
    .addOption(
      new Option('--max-message-bytes <number>', 'longest request body and WebSocket message')
        .env('SERVEGYM_MAX_MESSAGE_BYTES')
        .default(1_048_576)
        .argParser(wholeNumber(1024, 1_000_000_000)),
    )
    .addOption(
      new Option('--work-timeout <seconds>', 'most time of a planner, a baseline or a grading')
        .env('SERVEGYM_WORK_TIMEOUT')
        .default(work.seconds)
        .argParser(numberAbove(0, 86_400)),
    )
    .addOption(
      new Option('--work-memory <MB>', 'most memory (heap) of each')
        .env('SERVEGYM_WORK_MEMORY')
        .default(work.heapMb)
        .argParser(wholeNumber(64, 1_000_000)),
    )
    .addOption(
      new Option('--work-threads <number>', 'most of them at once; one client has all but one of the threads')
        .env('SERVEGYM_WORK_THREADS')
        .default(work.threads)
        .argParser(wholeNumber(1, 256)),
    );
}

function addAccessOptions(command: Command): void {
  command
    .optionsGroup('Who may use the server:')
    .addOption(
      new Option(
        '--token <text>',
        'token that requests must carry (authorization: Bearer); may be repeated. Other users of this machine can see arguments, so prefer the variable, with tokens separated by commas',
      )
        .env('SERVEGYM_TOKEN')
        .argParser(listed)
        .default([], 'everybody'),
    )
    .addOption(
      new Option(
        '--cors <origin>',
        'also let in pages of another site, for instance https://example.com; `*` is all',
      )
        .env('SERVEGYM_CORS')
        .argParser(origins)
        .default([], 'none'),
    )
    .addOption(
      new Option('--rate-limit <number>', 'most requests a minute from each client; `seed` stands for 100')
        .env('SERVEGYM_RATE_LIMIT')
        .argParser(rateLimit),
    )
    .addOption(allowedHostsOption())
    .addOption(
      new Option(
        '--trust-proxy [proxies]',
        'number of your proxies in front of the server. The server then takes the client address from x-forwarded-for and the host from x-forwarded-host',
      )
        .env('SERVEGYM_TRUST_PROXY')
        .preset('1')
        .argParser(wholeNumber(0, MAX_PROXIES))
        .default(0, 'none'),
    );
}

function addLogOptions(command: Command): void {
  command
    .optionsGroup('Log, on standard error:')
    .addOption(
      new Option('--log <format>', 'how it looks').env('SERVEGYM_LOG').choices(LOG_FORMATS).default('pretty'),
    )
    .addOption(
      new Option('--log-level <level>', 'least severe messages to log')
        .env('SERVEGYM_LOG_LEVEL')
        .choices(LOG_LEVELS)
        .default('warn'),
    );
}

async function serve(options: ServeOptions): Promise<void> {
  const { host, store, sessionTimeout } = options;
  requireTokens(options.token);
  for (const file of options.taskFile) {
    const task = await loadAnyTask(file);
    console.log(`Task ${task.id}: ${file}`);
  }
  for (const file of options.trace) {
    const { name, requests } = await loadTrace(file);
    console.log(`Trace ${name}: ${requests} requests of ${file}`);
  }
  const server = await startServer({
    environments: options.env,
    port: options.port,
    host,
    mode: options.mode,
    sessionFile: store === IN_MEMORY ? undefined : store,
    sessionFileMaxBytes: options.storeMaxBytes,
    tableFile: options.table,
    maxSessions: options.maxSessions,
    maxEpisodeSize: options.maxEpisodeRequests,
    maxFleetRequests: options.maxFleetRequests,
    maxTotalSize: options.maxSessions * REQUESTS_OF_SESSION,
    maxMessageBytes: options.maxMessageBytes,
    work: { threads: options.workThreads, seconds: options.workTimeout, heapMb: options.workMemory },
    idleTimeoutMs: sessionTimeout === 'never' ? null : sessionTimeout * 1000,
    guard: {
      tokens: options.token,
      origins: options.cors,
      allowedHosts: withBoundName(options.allowedHosts, host),
      rateLimit: options.rateLimit,
    },
    trustedProxies: options.trustProxy,
    logger: serverLog({ format: options.log, level: options.logLevel }),
  });
  console.log(`ServeGym is ready: ${server.url}/web/ (Ctrl-C stops it)`);
  for (const id of server.below) console.log(`${id}: ${server.url}/${id}/web/`);
  if (!isLoopback(server.address)) {
    console.log(`It listens on ${server.address}, port ${server.port}: other machines can reach it`);
    if (options.token.length === 0) {
      console.error(
        'warning: the server asks for no token: anyone who reaches this machine can use it. Set SERVEGYM_TOKEN, or listen on 127.0.0.1',
      );
    }
  }
  if (server.keepsSessions) console.log(`Sessions are kept in ${store}`);
  for (const note of server.storageNotes) console.log(`note: ${note}`);
  if (server.realMode) {
    const { baseUrl, maxRequestsPerStep } = server.realMode;
    console.log(`Real mode: each step sends up to ${maxRequestsPerStep} requests to ${baseUrl}`);
  }
  if (server.hasConsole && !consoleIsBuilt()) {
    console.error('warning: the console is not built; build it with `npm run build -w packages/console`');
  }
  await stopOnSignals(server, { graceMs: options.drainTimeout * 1000, say: console.log });
}

function environmentNames(text: string): [EnvironmentName, ...EnvironmentName[]] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes(''))
    throw new InvalidArgumentError('Expected names of environments with commas between them.');
  return names as [EnvironmentName, ...EnvironmentName[]];
}

function storeName(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a file, redis://... or `memory`.');
  return text;
}

function repeated(text: string, before: readonly string[]): readonly string[] {
  return [...before, text];
}

/** Adds the parts of a text with commas to what other options of the name gave. */
function listed(text: string, before: readonly string[]): readonly string[] {
  return [...before, ...text.split(',')];
}

/** The messages of commander would tell the token, so that this is not left to it. */
function requireTokens(tokens: readonly string[]): void {
  if (tokens.every((token) => /^\S+$/.test(token))) return;
  throw new InputError(
    'Expected each token of --token or SERVEGYM_TOKEN to be a text without spaces, got one that is empty or has some. Leave the option and the variable out to let everybody in.',
  );
}

function origins(text: string, before: readonly string[]): readonly string[] {
  const all = listed(text, before);
  for (const origin of all) {
    if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) continue;
    throw new InvalidArgumentError(
      `Expected an origin such as https://example.com, without a path or a slash at the end, or \`*\`; got \`${origin}\`.`,
    );
  }
  return all;
}

function rateLimit(text: string): RateLimitOptions {
  if (text === 'seed') return DEFAULT_RATE_LIMIT;
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number or `seed`.');
  return { requests: wholeNumber(1, 1_000_000_000)(text), perMs: 60_000 };
}
