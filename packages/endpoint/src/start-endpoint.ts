import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdaptorServer } from '@hono/node-server';
import { knownCheckpoint } from '@servegym/profiles';
import { Cluster, type EngineProfile, kvPoolBlocks, kvTokens, type ServingConfig } from '@servegym/simulator';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import packageJson from '../package.json' with { type: 'json' };
import { type LateFinding, LatenessWatch, PreciseAlarm, SimulatedClock } from './live/clock.ts';
import { LiveServer } from './live/live-server.ts';
import { EndpointMetrics } from './metrics/endpoint-metrics.ts';
import { ApiError } from './openai/requests.ts';
import { type EndpointApp, mountKnobRoutes, mountOpenAiRoutes } from './openai/routes.ts';

/** A prompt of a million token ids has 8 MB. */
const MOST_BODY_BYTES = 16 * 1024 * 1024;
/** Longer than the pauses of load generators, which would otherwise write into connections that are being closed. */
const KEEP_ALIVE_MS = 75_000;
const DRAIN_POLL_MS = 20;

export interface EndpointOptions {
  readonly profile: EngineProfile;
  /** 1, as `simulate` has it, or 2, as `llmserve` has it: behind a round-robin router, with the prefill/decode split. */
  readonly engines: 1 | 2;
  readonly maxNumBatchedTokens: number;
  /** Acceptance table of the profile for this traffic. */
  readonly acceptance: string;
  /** Whether prompts find what is cached of their prefix; two engines cache nothing. */
  readonly prefixCaching: boolean;
  /** Seed of the acceptance draws, and of an endpoint's replies. */
  readonly seed: number;
  readonly config: ServingConfig;
  /** Names that requests may use. Default: the profile's model and the profile. */
  readonly modelNames?: readonly string[];
  /** LoRA adapters, which requests name as their model. Default none. */
  readonly adapters?: readonly string[];
  /** Most tokens of a prompt and its reply together. Default: the model's context, or less when the KV pool holds less. */
  readonly maxModelLen?: number;
  /** Simulated seconds in a second. */
  readonly timeScale: number;
  /** Called once when tokens are handed out so late that clients measure wrong latencies. */
  readonly onLate?: (finding: LateFinding) => void;
  /** When there are any, requests must carry one as `authorization: Bearer`; `/health` and `/metrics` need none. */
  readonly apiKeys: readonly string[];
  /** Why a request is not let in, before its key is looked at; `null` for one that may go on. Default: all may. */
  readonly refuse?: (
    request: IncomingMessage,
    path: string,
  ) => { readonly status: ApiError['status']; readonly code: string; readonly detail: string } | null;
  /** 0 takes any free port. */
  readonly port: number;
  readonly host: string;
}

export type RunningEndpoint = Awaited<ReturnType<typeof startEndpoint>>;

/**
 * Serves a simulated engine over the OpenAI API, in step with the wall clock.
 * @throws {SimulatorError} when the settings do not fit the profile
 * @throws InputError when the address is taken, forbidden or not of this machine
 */
export async function startEndpoint(options: EndpointOptions) {
  const { profile, config, port, host, adapters = [] } = options;
  const prefixCaching = options.prefixCaching && options.engines === 1;
  const { blockTokens } = profile.memory;
  const server = new Cluster(config, { ...options, size: options.engines, prefixCaching });
  const blocks = kvPoolBlocks(profile, config.weights, config.speculationDepth > 0, config.kvBudgetFraction);
  const contextTokens = knownCheckpoint(profile.model.name)?.model.contextTokens;
  const maxModelLen = options.maxModelLen ?? Math.min(contextTokens ?? Infinity, kvTokens(profile, blocks));
  const { name: modelName } = profile.model;
  const [first = modelName, ...others] = options.modelNames ?? [modelName, profile.name];
  const names = [first, ...others, ...adapters] as const;
  const model = { names, adapters, maxModelLen, blockTokens, prefixCaching, seed: options.seed };
  const watch = new LatenessWatch(options.timeScale, (finding) => options.onLate?.(finding));
  const metrics = new EndpointMetrics(server, model, watch);
  const clock = new SimulatedClock({ timeScale: options.timeScale });
  const live = new LiveServer(server, clock, (ring) => new PreciseAlarm(ring), metrics);

  let isDraining = false;
  const app: EndpointApp = new Hono();
  app.onError((error, context) => {
    const known = error instanceof ApiError ? error : internalError(error);
    return context.json(known.body, known.status);
  });
  app.notFound((context) => {
    const { method, path } = context.req;
    const error = new ApiError(404, 'unknown_url', `Unknown request URL: ${method} ${path.slice(0, 200)}.`);
    return context.json(error.body, error.status);
  });
  app.use(async (context, next) => {
    const refusal = options.refuse?.(context.env.incoming as IncomingMessage, context.req.path);
    if (refusal) throw new ApiError(refusal.status, refusal.code, refusal.detail);
    await next();
  });
  app.get('/health', (context) => context.body(null, isDraining ? 503 : 200));
  app.get('/ping', (context) => context.body(null, isDraining ? 503 : 200));
  app.get('/metrics', async (context) =>
    context.body(await metrics.render(), 200, { 'content-type': metrics.contentType }),
  );
  app.get('/version', (context) => context.json({ version: packageJson.version }));
  const keys = new Set(options.apiKeys.map(digest));
  app.use(async (context, next) => {
    const [scheme, key = ''] = (context.req.header('authorization') ?? '').split(' ');
    if (keys.size > 0 && (scheme?.toLowerCase() !== 'bearer' || !keys.has(digest(key)))) {
      const expected = 'Expected `authorization: Bearer` with a key of this endpoint.';
      throw new ApiError(401, 'invalid_api_key', expected);
    }
    if (isDraining) throw new ApiError(503, 'draining', 'The endpoint is being stopped.');
    await next();
  });
  app.use(
    bodyLimit({
      maxSize: MOST_BODY_BYTES,
      onError: () => {
        throw new ApiError(413, 'body_too_large', `Expected a body of at most ${MOST_BODY_BYTES} bytes.`);
      },
    }),
  );
  mountOpenAiRoutes(app, live, model);
  mountKnobRoutes(app, live, profile);

  const http = createAdaptorServer({ fetch: app.fetch }) as Server;
  http.keepAliveTimeout = KEEP_ALIVE_MS;
  http.listen(port, host);
  await once(http, 'listening');
  const address = http.address() as AddressInfo;

  const close = async (): Promise<void> => {
    live.close();
    const closed = http.listening ? once(http, 'close') : undefined;
    http.close();
    http.closeAllConnections();
    await closed;
  };
  return {
    /** Without a slash at the end; the API is below `/v1`. */
    url: `http://${hostInUrl(host)}:${address.port}`,
    /** Address at which it listens; `0.0.0.0` and `::` are all of this machine's. */
    address: address.address,
    port: address.port,
    modelNames: names,
    maxModelLen,
    /** Requests that wait or run. */
    get liveRequests(): number {
      return live.liveCount;
    },
    /** Takes no more requests, lets those that run go on for a while, then closes. */
    async drain({ graceMs }: { readonly graceMs: number }): Promise<void> {
      isDraining = true;
      const untilMs = performance.now() + graceMs;
      while (live.liveCount > 0 && performance.now() < untilMs) await sleep(DRAIN_POLL_MS);
      await close();
    },
    close,
  };
}

function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

/** Looking a key up takes no longer the more of it is right. */
function digest(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

function internalError(error: unknown): ApiError {
  const detail = error instanceof Error ? error.message : String(error);
  return new ApiError(500, 'internal_error', `The endpoint failed: ${detail}`);
}
