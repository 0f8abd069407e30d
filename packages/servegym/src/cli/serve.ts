import { ENVIRONMENT_IDS } from '@servegym/environments';
import { checkSqliteStore, DEFAULT_RATE_LIMIT, MAX_PROXIES } from '@servegym/openenv';
import { counted } from '@servegym/simulator';
import { InvalidArgumentError } from 'commander';
import { defaultWorkLimits } from '../server/background-work.ts';
import { consoleIsBuilt } from '../server/console-files.ts';
import { stopOnSignals, tellOthers } from '../server/listening.ts';
import { DEFAULT_CALL_LIMITS } from '../server/outside-calls.ts';
import { LOG_FORMATS, LOG_LEVELS, serverLog } from '../server/server-log.ts';
import { defaultSessionFile, isRedisAddress } from '../server/session-storage.ts';
import { startServer } from '../server/start-server.ts';
import {
  allowedHosts,
  byteCount,
  listenOptions,
  namedValues,
  numberAbove,
  whole,
  wholeNumber,
  withBoundName,
} from './arguments/options.ts';
import { loadTask, loadTrace } from './arguments/scenario-options.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { InputError, storeFailure, type Verdict } from './failure.ts';

/** In the place of a file: sessions live no longer than the server. */
const IN_MEMORY = 'memory';

/** Simulated requests of all sessions together, for each session that there may be: an episode of a task has about 3,000. */
const REQUESTS_OF_SESSION = 4000;

const work = defaultWorkLimits();

const limit = <Initial extends number | undefined>(
  env: string,
  parse: (text: string) => number,
  initial: Initial,
) => ({ env, parse, initial: initial as Initial | number });

/** Limits of a server by their names in `--limit`. */
export const LIMITS = {
  /** Simulated requests of an episode of `llmserve`, about. */
  'episode-requests': limit('SERVEGYM_MAX_EPISODE_REQUESTS', wholeNumber(1, 10_000_000), 20_000),
  /** Simulated requests of an episode of `fleet`, about. */
  'fleet-requests': limit('SERVEGYM_MAX_FLEET_REQUESTS', wholeNumber(1, 1_000_000_000), 8_000_000),
  /** Longest request body and WebSocket message, bytes. */
  'message-bytes': limit('SERVEGYM_MAX_MESSAGE_BYTES', wholeNumber(1024, 1_000_000_000), 1_048_576),
  /** Size of the file of sessions, bytes. Each client may use a quarter of it; the oldest sessions are deleted first. */
  'store-bytes': limit('SERVEGYM_STORE_MAX_BYTES', byteCount(2 ** 20), 2 ** 30),
  /** Time of a planner, a baseline or a grading, s. */
  'work-seconds': limit('SERVEGYM_WORK_TIMEOUT', numberAbove(0, 86_400), work.seconds),
  /** Heap of each of these, MB. */
  'work-memory': limit('SERVEGYM_WORK_MEMORY', wholeNumber(64, 1_000_000), work.heapMb),
  /** How many of these run at once; one client can use all but one of the threads. */
  'work-threads': limit('SERVEGYM_WORK_THREADS', wholeNumber(1, 256), work.threads),
  /** Requests to language models and real servers that each client may cause in an hour. Default: none without a token. */
  calls: limit('SERVEGYM_MAX_CALLS', wholeNumber(0, 1_000_000_000), undefined),
  /** Tokens of these. */
  'call-tokens': limit('SERVEGYM_MAX_CALL_TOKENS', wholeNumber(1, 1e12), DEFAULT_CALL_LIMITS.tokens),
};
type LimitName = keyof typeof LIMITS;
type Limits = { readonly [Name in LimitName]: (typeof LIMITS)[Name]['initial'] };

const serveOptions = {
  env: {
    value: '<names>',
    help: 'environments, or modules that export one; the first is at the root',
    env: 'SERVEGYM_ENV',
    parse(text: string): readonly string[] {
      const names = text.split(',').map((name) => name.trim());
      if (!names.includes('')) return names;
      throw new InvalidArgumentError('Expected names of environments with commas between them.');
    },
    default: ENVIRONMENT_IDS as readonly string[],
    defaultText: ENVIRONMENT_IDS.join(','),
  },
  ...listenOptions(7860),
  mode: {
    value: '<mode>',
    help: 'production leaves out /reset, /step, /state and the console',
    env: 'SERVEGYM_MODE',
    choices: ['simulation', 'production'],
    default: 'simulation',
  },
  traffic: {
    value: '<file>',
    help: 'your own requests, for `reset({trace: NAME})`; may be repeated',
    repeated: true,
  },
  task: { value: '<file>', help: 'a task of your own, JSON or a module; may be repeated', repeated: true },
  table: {
    value: '<file.parquet>',
    help: 'inferencegym: a table of your own measurements',
    env: 'SERVEGYM_TABLE',
  },
  store: {
    value: '<file|url>',
    help: 'SQLite file of the sessions, redis://..., or `memory`',
    env: 'SERVEGYM_STORE',
    parse(text: string): string {
      if (text !== '') return text;
      throw new InvalidArgumentError('Expected a file, redis://... or `memory`.');
    },
    default: defaultSessionFile(),
    defaultText: 'a file in your state folder',
  },
  checkStore: { help: 'check the file of --store and end: with 1 where it is damaged' },
  maxSessions: {
    ...whole('<number>', 1, 1_000_000, 'most sessions at once', 1024),
    env: 'MAX_CONCURRENT_ENVS',
  },
  sessionTimeout: {
    value: '<seconds>',
    help: 'idle time until a session leaves memory, or `never`',
    env: 'SERVEGYM_SESSION_TIMEOUT',
    parse: (text: string) => (text === 'never' ? text : numberAbove(0)(text)),
    default: 3600,
  },
  drainTimeout: {
    ...whole('<seconds>', 0, 86_400, 'time of open sessions when the server stops', 5),
    env: 'SERVEGYM_DRAIN_TIMEOUT',
  },
  limit: {
    value: '<name=value,...>',
    help: `limits: ${Object.keys(LIMITS).join(', ')}`,
    repeated: true,
    parse: namedValues(LIMITS),
  },
  token: {
    value: '<text>',
    help: 'bearer token that requests must carry; may be repeated. The variable hides it from other users',
    env: 'SERVEGYM_TOKEN',
    repeated: true,
    parse: (text: string) => text.split(','),
  },
  cors: {
    value: '<origin>',
    help: 'let in pages of this site too; `*` is all',
    env: 'SERVEGYM_CORS',
    repeated: true,
    parse: origins,
  },
  rateLimit: {
    value: '<number>',
    help: 'requests a minute from a client; `seed` is 100',
    env: 'SERVEGYM_RATE_LIMIT',
    parse(text: string): typeof DEFAULT_RATE_LIMIT {
      if (text === 'seed') return DEFAULT_RATE_LIMIT;
      if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number or `seed`.');
      return { requests: wholeNumber(1, 1_000_000_000)(text), perMs: 60_000 };
    },
  },
  allowedHosts,
  trustProxy: {
    ...whole('[proxies]', 0, MAX_PROXIES, 'number of your proxies whose x-forwarded-... headers count', 0),
    env: 'SERVEGYM_TRUST_PROXY',
    preset: '1',
    defaultText: 'none',
  },
  log: {
    value: '<format>',
    help: 'how the log on standard error looks',
    env: 'SERVEGYM_LOG',
    choices: LOG_FORMATS,
    default: 'pretty',
  },
  logLevel: {
    value: '<level>',
    help: 'least severe messages',
    env: 'SERVEGYM_LOG_LEVEL',
    choices: LOG_LEVELS,
    default: 'warn',
  },
} as const satisfies OptionTable;

export const serveCommand = () =>
  defineCommand({
    options: serveOptions,
    action: serve,
  });

async function serve(options: OptionValues<typeof serveOptions>): Promise<Verdict | undefined> {
  const { host, port, mode, store, sessionTimeout, maxSessions } = options;
  if (options.checkStore) return check(store);
  const token = options.token.flat();
  requireTokens(token);
  const limits = readLimits(options.limit);
  for (const file of options.task) console.log(`Task ${await loadTask(file)}: ${file}`);
  for (const file of options.traffic) {
    const { name, requests } = await loadTrace(file);
    console.log(`Trace ${name}: ${counted(requests, 'request')} of ${file}`);
  }
  const server = await startServer({
    ...{ environments: options.env, port, host, mode, maxSessions },
    sessionFile: store === IN_MEMORY ? undefined : store,
    sessionFileMaxBytes: limits['store-bytes'],
    tableFile: options.table,
    maxEpisodeSize: limits['episode-requests'],
    maxFleetRequests: limits['fleet-requests'],
    maxTotalSize: maxSessions * REQUESTS_OF_SESSION,
    maxMessageBytes: limits['message-bytes'],
    work: { threads: limits['work-threads'], seconds: limits['work-seconds'], heapMb: limits['work-memory'] },
    outside: { tokens: limits['call-tokens'], ...(limits.calls !== undefined && { calls: limits.calls }) },
    idleTimeoutMs: typeof sessionTimeout === 'number' ? sessionTimeout * 1000 : null,
    guard: {
      ...{ tokens: token, origins: options.cors.flat(), rateLimit: options.rateLimit },
      allowedHosts: withBoundName(options.allowedHosts.flat(), host),
    },
    trustedProxies: options.trustProxy,
    logger: serverLog({ format: options.log, level: options.logLevel }),
  });
  console.log(`ServeGym is ready: ${server.url}/web/ (Ctrl-C stops it)`);
  for (const id of server.below) console.log(`${id}: ${server.url}/${id}/web/`);
  tellOthers(server, token.length === 0 && 'the server asks for no token', 'SERVEGYM_TOKEN');
  if (server.keepsSessions) console.log(`Sessions are kept in ${store}`);
  if (server.realMode) {
    const { baseUrl, maxRequestsPerStep } = server.realMode;
    console.log(`Real mode: each step sends up to ${counted(maxRequestsPerStep, 'request')} to ${baseUrl}`);
    if (token.length === 0 && limits.calls === undefined)
      console.error(
        'warning: no request is sent, because the server asks for no token: set SERVEGYM_TOKEN, or --limit calls=10000 (requests an hour of each client)',
      );
  }
  if (server.hasConsole && !consoleIsBuilt())
    console.error('warning: the console is not built; build it with `npm run build -w packages/console`');
  await stopOnSignals(server, { graceMs: options.drainTimeout * 1000, say: console.log });
}

function check(store: string): Verdict {
  if (store === IN_MEMORY || isRedisAddress(store))
    throw new InputError(`Expected --check-store with a SQLite file as --store, got \`${store}\``);
  try {
    const { sessions, problems } = checkSqliteStore(store);
    for (const problem of problems) console.error(problem);
    const isSound = problems.length === 0;
    console.log(`${store}: ${counted(sessions, 'session')}, ${isSound ? 'all right' : 'not all right'}`);
    return isSound ? 'yes' : 'no';
  } catch (error) {
    throw storeFailure(error);
  }
}

/** All limits: of `--limit`, else of the environment's variables, else the defaults. @throws InputError */
function readLimits(given: readonly Partial<Record<LimitName, number>>[]): Limits {
  const values = Object.entries(LIMITS).map(([name, { env, parse, initial }]) => {
    const text = process.env[env];
    try {
      return [name, text === undefined ? initial : parse(text)];
    } catch (error) {
      throw new InputError(`${env}: ${(error as Error).message}`);
    }
  });
  return Object.assign(Object.fromEntries(values), ...given);
}

/** The messages of commander would tell the token, so that this is not left to it. */
function requireTokens(tokens: readonly string[]): void {
  if (tokens.every((token) => /^\S+$/.test(token))) return;
  throw new InputError(
    'Expected each token of --token or SERVEGYM_TOKEN to be a text without spaces, got one that is empty or has some. Leave the option and the variable out to let everybody in.',
  );
}

function origins(text: string): readonly string[] {
  const all = text.split(',');
  for (const origin of all) {
    if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) continue;
    throw new InvalidArgumentError(
      `Expected an origin such as https://example.com, without a path or a slash at the end, or \`*\`; got \`${origin}\`.`,
    );
  }
  return all;
}
