import {
  type BenchCalibration,
  type BenchParameter,
  calibrateBench,
  fitLoads,
  fittedLoad,
  type LoadFit,
  type LoadFitOptions,
  type MeasuredLoad,
  mapLaw,
  measuredLoad,
  parameterOf,
} from '@servegym/profiles';
import {
  counted,
  type EngineProfile,
  RandomStream,
  simulateTrace,
  VLLM_FRONT_END,
} from '@servegym/simulator';
import { TuningError } from '../search/slo.ts';
import {
  allTokens,
  batchProbe,
  compareLoad,
  type LoadComparison,
  longProbe,
  openLoad,
  type Probe,
  type ProbeKind,
  probeKindFor,
  seenIn,
  simulateProbe,
  singleProbe,
} from './probe.ts';
import { guessedProfile, type ServerFacts } from './start-profile.ts';
import { findUntoldSettings } from './untold-settings.ts';

/** Spread of a guess from single requests over that of data sheets. */
const GUESS_SPREAD = 3;
/** Rates of the open loads, of the rate that saturates the server; the held-out load lies between. */
const RATE_SHARES = [0.3, 0.6, 0.95];
const HELD_OUT_SHARE = 0.75;
/** Time of one open load, and of the held-out one, of all that there is. */
const OPEN_SHARE = 0.13;
/** Fewer requests make no profile. */
const LEAST_REQUESTS = 20;
/** Fewest tokens of the longest answer of a batch, a choice: what ends sooner shows more of prompts than of decodes. */
const LEAST_OUTPUT = 16;
/** Relative spread of a coefficient that is known well enough. */
const NARROW = 0.05;
const MOST_OF_A_KIND = 2;
const DRAWN_SERVERS = 4;

interface ServerCalibrationOptions {
  readonly facts: ServerFacts;
  /** Start of the fit, such as the data sheets of GPU and model. Default: a guess from single requests. */
  readonly start?: EngineProfile;
  /** Whether nobody said which token budget the server has, so that the loads are to tell. Default false. */
  readonly isBudgetAssumed?: boolean;
  /** Processes of the server's front end, whose queue the profile then has. Default: no queue. */
  readonly apiServerCount?: number;
  readonly minutes: number;
  /** Most tokens, prompts and outputs together. */
  readonly mostTokens: number;
  /** Loads of an earlier run, in their order. */
  readonly measured?: readonly MeasuredLoad[];
  readonly measure: (probe: Probe) => Promise<MeasuredLoad>;
  /** Simulated servers on which the spreads are found. Default 4. */
  readonly drawnServers?: number;
  /** Minutes since the start. */
  readonly elapsed: () => number;
  readonly onLoad?: (load: MeasuredLoad, spread: LoadFit['spread'] | null) => void;
  readonly source: string;
  readonly command: string;
}

export interface ServerCalibration {
  readonly calibration: BenchCalibration;
  readonly profile: EngineProfile;
  readonly loads: readonly MeasuredLoad[];
  /** The load that was not fitted, predicted; `null` when there was no time for it. */
  readonly heldOut: LoadComparison | null;
  /** Settings that the server does not tell, as the loads show them, in a sentence each. */
  readonly findings: readonly string[];
  readonly trust: string;
}

/**
 * Makes a profile of a running server. Probes go where a coefficient is least known, then to open loads of rising rates;
 * the last load is held out of the fit.
 */
export async function calibrateServer(options: ServerCalibrationOptions): Promise<ServerCalibration> {
  const { facts, minutes, apiServerCount } = options;
  const server = new ProbedServer(options);
  const firstProbes = [singleProbe(facts, 0), batchProbe(facts, 'batch', Math.min(8, facts.maxNumSeqs))];
  const leastTokens = firstProbes.reduce((sum, probe) => sum + allTokens(probe), 0);
  if (leastTokens > options.mostTokens) {
    const [least, most] = [leastTokens, options.mostTokens].map((tokens) => tokens.toLocaleString('en-US'));
    const message = `expected --most-tokens to be at least ${least} for the first two loads, got ${most}`;
    throw new TuningError('TOO_FEW_TOKENS', message);
  }
  const single = await server.send(firstProbes[0]);
  const known = options.start ?? guessedProfile(single, facts);
  const { maxNumSeqs, maxNumBatchedTokens, kvBlocks } = facts;
  server.fitOptions = {
    start:
      apiServerCount === undefined
        ? known
        : { ...known, frontEnd: { ...(known.frontEnd ?? VLLM_FRONT_END), processes: apiServerCount } },
    startSpread: options.start === undefined ? GUESS_SPREAD : 1,
    ...{ maxNumSeqs, maxNumBatchedTokens, kvBlocks },
  };
  await server.send(firstBatch(single, firstProbes[1], options));
  server.refit();
  await probeUntilKnown(server, facts);
  const held = server.openLoad(HELD_OUT_SHARE, 99);
  const isHeld = server.affords(held, 1 + OPEN_SHARE) && server.loads.length > 2;
  const fittedLoads = [...server.loads];
  const heldOut = isHeld ? await server.send(held, server.fit.spread) : null;
  const answered = fittedLoads.reduce((sum, load) => sum + load.requests.length, 0);
  if (answered < LEAST_REQUESTS) {
    throw new TuningError(
      'TOO_FEW_REQUESTS',
      `expected ${LEAST_REQUESTS} answered requests at least, got ${answered} in ${minutes} minutes: give it more minutes, and go on with what was measured`,
    );
  }
  const untold = findUntoldSettings(fittedLoads, server.fitOptions, server.fit, {
    isGuess: options.start === undefined,
    isBudgetAssumed: options.isBudgetAssumed ?? false,
    hasFrontEnd: apiServerCount !== undefined,
  });
  const { source, command, drawnServers = DRAWN_SERVERS } = options;
  const fitted = calibrateBench(fittedLoads, { ...untold.options, source, command });
  const recovered = recoveredSpread(fittedLoads, fitted.profile, untold.options, drawnServers);
  const spread = Object.fromEntries(
    spreads(fitted).map(([name, own]) => [name, Math.max(own, recovered[name] ?? 0)]),
  );
  const served = { ...facts, maxNumBatchedTokens: untold.options.maxNumBatchedTokens! };
  const comparison = heldOut && compareLoad(heldOut, fitted.profile, served);
  return {
    calibration: { ...fitted, spread },
    profile: fitted.profile,
    loads: server.loads,
    heldOut: comparison,
    findings: untold.findings,
    trust: trustIn(comparison, server.loads, facts),
  };
}

/**
 * The first batch, as the single requests show that there is time for: where the usual one would take more than half of what is left,
 * more requests with shorter answers, so that there are enough of both to fit.
 */
function firstBatch(
  { requests: sent }: MeasuredLoad,
  usual: Probe,
  { facts, minutes }: ServerCalibrationOptions,
): Probe {
  const spentMs = Math.max(...sent.map(({ arrivalMs, e2eMs }) => arrivalMs + e2eMs));
  const tokenMs = Math.min(...sent.map((each) => (each.e2eMs - each.ttftMs) / (each.outputTokens - 1)));
  const mostTokens = (60_000 * minutes * (1 - OPEN_SHARE) - spentMs) / 2 / tokenMs;
  const longest = Math.max(...usual.requests.map(({ outputTokens }) => outputTokens));
  if (mostTokens < LEAST_OUTPUT || longest <= mostTokens) return usual;
  const larger = batchProbe(facts, 'batch', Math.min(LEAST_REQUESTS - sent.length, facts.maxNumSeqs));
  const shorter = (tokens: number) => Math.max(2, Math.floor((tokens * mostTokens) / longest));
  const requests = larger.requests.map((each) => ({ ...each, outputTokens: shorter(each.outputTokens) }));
  return { ...larger, requests };
}

/** A server that probes are sent to within the time and the tokens that there are, as the loads so far show it. */
class ProbedServer {
  readonly loads: MeasuredLoad[] = [];
  fitOptions!: LoadFitOptions;
  fit!: LoadFit;
  readonly #options: ServerCalibrationOptions;
  readonly #earlier: MeasuredLoad[];
  #tokens = 0;

  constructor(options: ServerCalibrationOptions) {
    this.#options = options;
    this.#earlier = [...(options.measured ?? [])];
  }

  /** Loads of an earlier run are not sent again. */
  async send(probe: Probe, spread: LoadFit['spread'] | null = null): Promise<MeasuredLoad> {
    this.#tokens += allTokens(probe);
    const known = this.#earlier.findIndex(({ source }) => source === probe.name);
    const load = known >= 0 ? this.#earlier.splice(known, 1)[0] : await this.#options.measure(probe);
    if (known < 0) this.#options.onLoad?.(load, spread);
    this.loads.push(load);
    return load;
  }

  /** Whether a probe ends within a share of the time. */
  affords(probe: Probe, share: number): boolean {
    if (this.#earlier.some(({ source }) => source === probe.name)) return true;
    const { mostTokens, elapsed, minutes } = this.#options;
    if (this.#tokens + allTokens(probe) > mostTokens) return false;
    return elapsed() + this.minutesFor(probe) <= share * minutes;
  }

  /** Fits all loads, from the fit before where there is one. */
  refit(before?: LoadFit): void {
    const { loads, fitOptions } = this;
    const near = before && [{ ...before, slowness: loads.map(() => 1) }];
    this.fit = fitLoads(loads.map(fittedLoad), null, fitOptions, near && { near, isShort: true });
  }

  get profile(): EngineProfile {
    const { start } = this.fitOptions;
    const { law, requestOverheadMs } = this.fit;
    return { ...start, requestOverheadMs, weights: { FP16: { ...start.weights.FP16!, law } } };
  }

  readonly minutesFor = (probe: Probe): number => {
    const { e2eMs, simulatedMs } = simulateProbe(probe, this.profile, this.#options.facts);
    return (probe.isSequential ? e2eMs.reduce((a, b) => a + b, 0) : simulatedMs) / 60_000;
  };

  openLoad(share: number, seed: number): Probe {
    const { facts, minutes } = this.#options;
    return openLoad(share, this.profile, facts, { seconds: 60 * minutes * OPEN_SHARE, seed });
  }
}

/** Sends probes of the least known coefficient and open loads of rising rates in turns, while there is time. */
async function probeUntilKnown(server: ProbedServer, facts: ServerFacts): Promise<void> {
  const asked = new Map<ProbeKind | 'open', number>([
    ['single', 1],
    ['batch', 1],
  ]);
  const ladder = [...RATE_SHARES];
  for (;;) {
    const kind = leastKnown(server.fit, asked);
    const isOpenNext =
      ladder.length > 0 && (kind === null || (asked.get('open') ?? 0) * 2 <= server.loads.length - 2);
    if (!isOpenNext && kind === null) return;
    const next = isOpenNext ? 'open' : kind!;
    const round = asked.get(next) ?? 0;
    asked.set(next, round + 1);
    const probe =
      next === 'open'
        ? server.openLoad(ladder.shift()!, round + 1)
        : probeOf(next, round, facts, server.minutesFor);
    if (server.affords(probe, 1 - OPEN_SHARE)) {
      await server.send(probe, server.fit.spread);
      server.refit(server.fit);
      continue;
    }
    if (ladder.length === 0 && kind === null) return;
    if (asked.size >= 5 && [...asked.values()].every((count) => count > MOST_OF_A_KIND)) return;
    asked.set(next, MOST_OF_A_KIND + 1);
    if (isOpenNext) ladder.length = 0;
  }
}

function spreads({ spread }: Pick<LoadFit, 'spread'>): [BenchParameter, number][] {
  return Object.entries(spread) as [BenchParameter, number][];
}

/** The kind of probe for the coefficient with the widest interval that has not been asked for often. */
function leastKnown(fit: LoadFit, asked: ReadonlyMap<ProbeKind | 'open', number>): ProbeKind | null {
  const wide = spreads(fit)
    .filter(([, width]) => width > NARROW)
    .sort(([, a], [, b]) => b - a)
    .flatMap(([name]) => probeKindFor(name) ?? [])
    .filter((kind) => (asked.get(kind) ?? 0) < MOST_OF_A_KIND);
  return wide[0] ?? null;
}

function probeOf(
  kind: ProbeKind,
  round: number,
  facts: ServerFacts,
  minutesFor: (probe: Probe) => number,
): Probe {
  if (kind === 'single') return singleProbe(facts, round);
  if (kind === 'long') {
    const together = longProbe(facts, round, 0);
    return longProbe(facts, round, (60_000 * minutesFor(together)) / (2 * together.requests.length));
  }
  return batchProbe(
    facts,
    kind,
    Math.min(facts.maxNumSeqs, kind === 'batch' ? 32 * (round + 1) : 16 * (round + 1)),
  );
}

function trustIn(heldOut: LoadComparison | null, loads: readonly MeasuredLoad[], facts: ServerFacts): string {
  const { rate, batch, prompt, context } = seenIn(loads);
  const percent = (error: number) => `${Math.abs(error).toFixed(1)} %`;
  const seen = `Nothing was measured above ${rate > 0 ? `${Number(rate.toPrecision(2))} requests/s, ` : ''}${batch} requests at once, prompts of ${prompt} and contexts of ${context} tokens${batch < facts.maxNumSeqs ? ` (the server allows ${facts.maxNumSeqs} at once)` : ''}: do not trust the profile there.`;
  if (heldOut === null) {
    return `No load was held out: there was no time for one, so that nobody knows how far the profile can be trusted. Give it more --minutes. ${seen}`;
  }
  const { e2e, ttft, tpot } = heldOut.errors;
  return `On a load that it had not seen (${heldOut.name}, ${counted(heldOut.requests, 'request')}), the profile's mean latency was off by ${percent(e2e.mean)}, mean TTFT by ${percent(ttft.mean)} and mean TPOT by ${percent(tpot.mean)}. ${seen}`;
}

/** Spreads of the logarithms of what a drawn server has over what the fitted profile has. */
const DRAWN = { ratio: 0.8, other: 0.4 };
/** Most that a request of a drawn server is off the law, as a factor: outliers of the real one are not repeated. */
const MOST_OFF = 2;

/**
 * Relative spread of each parameter: the error with which the same loads and the same fit recover it from simulated
 * servers like the fitted one, whose coefficients are drawn and known. Their requests are off the law as the measured ones
 * are off the profile. Root mean square over the servers.
 */
function recoveredSpread(
  loads: readonly MeasuredLoad[],
  profile: EngineProfile,
  options: LoadFitOptions,
  servers: number,
): LoadFit['spread'] {
  const random = new RandomStream(0, 'recovered-spread');
  const squares = new Map<BenchParameter, number>();
  for (let server = 0; server < servers; server += 1) {
    const drawn = drawServer(profile, random);
    const fitted = loads.map((load) => fittedLoad(servedLoad(load, profile, drawn, options)));
    const found = fitLoads(fitted, null, options);
    const truth = { law: drawn.weights.FP16!.law, requestOverheadMs: drawn.requestOverheadMs };
    for (const [name] of spreads(found)) {
      const error = Math.log(parameterOf(found, name) / parameterOf(truth, name));
      squares.set(name, (squares.get(name) ?? 0) + error ** 2);
    }
  }
  return Object.fromEntries([...squares].map(([name, sum]) => [name, Math.sqrt(sum / servers)]));
}

/** A server with coefficients about those of a profile, and the same time of an idle iteration. */
function drawServer(profile: EngineProfile, random: RandomStream): EngineProfile {
  const variant = profile.weights.FP16!;
  const { baseUs, weightReadUs } = variant.law;
  const ratio = (weightReadUs / baseUs) * random.lognormal(0, DRAWN.ratio);
  const drawn = mapLaw(variant.law, (value) => value * random.lognormal(0, DRAWN.other));
  const idleUs = baseUs + weightReadUs;
  const law = { ...drawn, baseUs: idleUs / (1 + ratio), weightReadUs: (idleUs * ratio) / (1 + ratio) };
  return {
    ...profile,
    requestOverheadMs: profile.requestOverheadMs * random.lognormal(0, DRAWN.other),
    weights: { FP16: { ...variant, law } },
  };
}

/** A load as a drawn server would have served it. */
function servedLoad(
  load: MeasuredLoad,
  profile: EngineProfile,
  drawn: EngineProfile,
  { maxNumSeqs, maxNumBatchedTokens, kvBlocks }: LoadFitOptions,
): MeasuredLoad {
  const { trace } = fittedLoad(load);
  const [expected, served] = [profile, drawn].map((each) => {
    const run = simulateTrace(trace, { profile: each, maxNumSeqs, maxNumBatchedTokens, kvBlocks });
    const byId = new Map(Array.from(run.ids, (id, i) => [id, i]));
    return load.requests.map((_, id) => {
      const i = byId.get(id)!;
      return { ttftMs: run.ttftMs[i], decodeMs: run.e2eMs[i] - run.ttftMs[i] };
    });
  });
  const off = (measured: number, predicted: number) => {
    const factor = measured / predicted;
    return Number.isFinite(factor) ? Math.min(MOST_OFF, Math.max(1 / MOST_OFF, factor)) : 1;
  };
  const requests = load.requests.map((request, i) => {
    const ttftMs = served[i].ttftMs * off(request.ttftMs, expected[i].ttftMs);
    const decodeMs = served[i].decodeMs * off(request.e2eMs - request.ttftMs, expected[i].decodeMs);
    return { ...request, ttftMs, e2eMs: ttftMs + decodeMs };
  });
  return measuredLoad(load.source, requests, load.failed);
}
