import type { JobEngine } from '@servegym/jobs';
import {
  evaluate,
  type FleetPlan,
  longestRequest,
  parsePieces,
  parseSlo,
  planFleet,
  readParquetTrace,
  splitTrace,
  traceWithin,
} from '@servegym/operators/browser';
import type { EngineProfile, Trace } from '@servegym/simulator';

/** Most requests of a log. A choice: their trace takes 32 MB, and is read in seconds. */
const MOST_REQUESTS = 2_000_000;
/** Requests that are simulated at each load, as by the server's page for plans. */
const SIMULATED_REQUESTS = 2000;
const [MOST_ENGINES, MIN_QUALITY, SEED] = [64, 0.98, 0];

/** Told what is done, and which share of it. What it throws stops the work. */
type OnProgress = (stage: string, share: number) => void;

/** The pieces of a stream, which not every browser iterates over. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

/** Reads CSV, JSON lines or a benchmark's result, as they are or with gzip, or Parquet. @throws SimulatorError with the line that is wrong */
export async function readLog(log: File, onProgress: OnProgress): Promise<Trace> {
  const { name, size } = log;
  const [a, b, c, d] = new Uint8Array(await log.slice(0, 4).arrayBuffer());
  const told = (share: number) => onProgress('reading the log', share);
  const isGzip = a === 0x1f && b === 0x8b;
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd)
    throw new RangeError(`${name}: expected text, gzip or Parquet, got Zstandard. Unpack it first.`);
  const read =
    String.fromCharCode(a ?? 0, b ?? 0, c ?? 0, d ?? 0) === 'PAR1'
      ? await readParquet(log, told)
      : await readText(log, isGzip, (bytes) => told(bytes / size));
  const requests = read.trace.arrivalMs.length;
  if (requests > MOST_REQUESTS)
    throw new RangeError(
      `${name}: expected at most ${MOST_REQUESTS} requests, got ${requests}. Plan for it with servegym plan.`,
    );
  return read.trace;
}

function readText(log: File, isGzip: boolean, onBytes: (bytes: number) => void) {
  let bytes = 0;
  const counted = log.stream().pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(piece, out) {
        bytes += piece.length;
        onBytes(bytes);
        out.enqueue(piece);
      },
    }),
  );
  const plain = isGzip ? counted.pipeThrough(new DecompressionStream('gzip')) : counted;
  return parsePieces(piecesOf(plain), log.name, isGzip ? log.name.replace(/\.gz(ip)?$/i, '') : log.name);
}

function readParquet(log: File, told: (share: number) => void) {
  const file = {
    byteLength: log.size,
    slice: (start: number, end?: number) => log.slice(start, end).arrayBuffer(),
  };
  return readParquetTrace({ file, source: log.name }, {}, (rows, of) => told(rows / of));
}

/** A way to serve the log. */
export type LogPlan = ReturnType<typeof shownPlan>;

function shownPlan(plan: FleetPlan) {
  const { pools, engines, gpus, usdPerHour, confidence, usdPerMillionOutputTokens, ttftP99Ms, tpotP99Ms } =
    plan;
  const { headroom, breaksFirst, restsOn, assumes, commands } = plan;
  return {
    pools: pools.map(({ profile, settings, engines: count, role }) => ({
      ...{ profile: profile.name, weights: settings.weights, engines: count, role },
    })),
    ...{ engines, gpus, usdPerHour, usdInterval: confidence.usdPerHour, usdPerMillionOutputTokens },
    ...{ ttftP99Ms, tpotP99Ms, headroom, breaksFirst, restsOn, assumes },
    lines: commands.map(({ line }) => line),
  };
}

/**
 * Runs jobs one after another on this thread. Their results have the bits that threads and queues give.
 * @param turn lets others have their turn before each job
 */
export function jobsHere(turn: () => Promise<unknown>): JobEngine {
  const shared: Uint8Array[] = [];
  const context = { shared: (name: string) => shared[Number(name)]!, report() {} };
  return {
    width: 1,
    async share(bytes) {
      return String(shared.push(bytes) - 1);
    },
    async run(jobs, { onProgress, onResult } = {}) {
      const results = [];
      for (const [index, { input }] of jobs.entries()) {
        await turn();
        // A result goes through JSON everywhere, where NaN is null.
        const result = JSON.parse(JSON.stringify(evaluate(input, context)));
        results.push(result);
        onResult?.(result, index);
        onProgress?.({
          ...{ finished: index + 1, planned: jobs.length, share: (index + 1) / jobs.length },
        });
      }
      return results;
    },
    async close() {},
  };
}

/** The cheapest fleets of some profiles for a trace under an SLO, as `servegym plan` finds them. */
export async function planLog(
  log: Trace,
  profiles: readonly EngineProfile[],
  bounds: { readonly ttft: number; readonly tpot: number },
  jobs: JobEngine,
  onProgress: OnProgress = () => {},
) {
  const { trace, refused } = traceWithin(log, longestRequest({ profile: profiles[0]! }));
  const traffic = { trace, refused, split: splitTrace(trace, SIMULATED_REQUESTS) };
  const result = await planFleet(jobs, profiles, traffic, {
    slo: parseSlo(`ttft_p99=${bounds.ttft}ms,tpot_p99=${bounds.tpot}ms`),
    ...{ minQuality: MIN_QUALITY, mostEngines: MOST_ENGINES, seed: SEED, allow: [] },
    // The search takes about half of the time.
    onSearch: ({ stage, share }) => onProgress(stage, share / 2),
    onProgress: (done, of) => onProgress('sizing fleets', 0.5 + done / of / 2),
  });
  const { requests, requestsSimulated, requestsPerS, hours, plans, riskier, notPlanned } = result;
  return {
    ...{ requests, requestsSimulated, requestsPerS, hours, notPlanned: notPlanned.length },
    // Without assumptions, and with them; the cheapest first.
    ...{ plans: plans.map(shownPlan), riskier: riskier.map(shownPlan) },
  };
}

/** What `plan` answers for a trace; `requestsSimulated` at each load. */
export type LogAnswer = Awaited<ReturnType<typeof planLog>>;
