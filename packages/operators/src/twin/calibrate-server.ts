import {
  type BenchCalibration,
  type BenchParameter,
  calibrateBench,
  fitLoads,
  fittedLoad,
  type LoadFit,
  type MeasuredLoad,
} from '@servegym/profiles';
import { type EngineProfile, VLLM_FRONT_END } from '@servegym/simulator';
import { TuningError } from '../tune/slo.ts';
import { compareLoad, type LoadComparison } from './compare-load.ts';
import { openLoad, simulateProbe } from './open-load.ts';
import {
  allTokens,
  batchProbe,
  longProbe,
  type Probe,
  type ProbeKind,
  probeKindFor,
  seenIn,
  singleProbe,
} from './probe.ts';
import { recoveredSpread } from './recovered-spread.ts';
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
/** Relative spread of a coefficient that is known well enough. */
const NARROW = 0.05;
const MOST_OF_A_KIND = 2;
const DRAWN_SERVERS = 4;

export interface ServerCalibrationOptions {
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
  /** Sends a probe and measures. */
  readonly measure: (probe: Probe) => Promise<MeasuredLoad>;
  /** Simulated servers on which the spreads are found. Default 4. */
  readonly drawnServers?: number;
  /** Minutes since the start. */
  readonly elapsed: () => number;
  /** Called after each load. */
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
  /** Trust in the profile, in one or two sentences. */
  readonly trust: string;
}

/**
 * Makes a profile of a running server. Probes go where a coefficient is least known, then to open loads of rising rates;
 * the last load is held out of the fit.
 */
export async function calibrateServer(options: ServerCalibrationOptions): Promise<ServerCalibration> {
  const { facts, minutes, apiServerCount } = options;
  const earlier = [...(options.measured ?? [])];
  const loads: MeasuredLoad[] = [];
  let tokens = 0;
  const run = async (probe: Probe, spread: LoadFit['spread'] | null = null): Promise<MeasuredLoad> => {
    tokens += allTokens(probe);
    const known = earlier.findIndex(({ source }) => source === probe.name);
    const load = known >= 0 ? earlier.splice(known, 1)[0] : await options.measure(probe);
    if (known < 0) options.onLoad?.(load, spread);
    loads.push(load);
    return load;
  };
  const firstProbes = [singleProbe(facts, 0), batchProbe(facts, 'batch', Math.min(8, facts.maxNumSeqs))];
  const leastTokens = firstProbes.reduce((sum, probe) => sum + allTokens(probe), 0);
  if (leastTokens > options.mostTokens) {
    throw new TuningError(
      'TOO_FEW_TOKENS',
      `expected --most-tokens to be at least ${leastTokens.toLocaleString('en-US')} for the first two loads, got ${options.mostTokens.toLocaleString('en-US')}`,
    );
  }
  const single = await run(firstProbes[0]);
  const known = options.start ?? guessedProfile(single, facts);
  const start: EngineProfile = {
    ...known,
    ...(apiServerCount !== undefined && {
      frontEnd: { ...(known.frontEnd ?? VLLM_FRONT_END), processes: apiServerCount },
    }),
  };
  const { maxNumSeqs, maxNumBatchedTokens, kvBlocks } = facts;
  const fitOptions = {
    start,
    startSpread: options.start === undefined ? GUESS_SPREAD : 1,
    ...{ maxNumSeqs, maxNumBatchedTokens, kvBlocks },
  };
  const fit = (before?: LoadFit) =>
    fitLoads(
      loads.map(fittedLoad),
      loads.map(() => new Set()),
      fitOptions,
      before && { near: [{ ...before, slowness: loads.map(() => 1) }], isShort: true },
    );
  const profileAt = ({ law, requestOverheadMs }: LoadFit): EngineProfile => ({
    ...start,
    requestOverheadMs,
    weights: { FP16: { ...start.weights.FP16!, law } },
  });
  const minutesFor = (probe: Probe, at: LoadFit) => {
    const { e2eMs, simulatedMs } = simulateProbe(probe, profileAt(at), facts);
    return (probe.isSequential ? e2eMs.reduce((a, b) => a + b, 0) : simulatedMs) / 60_000;
  };
  const has = (probe: Probe, at: LoadFit, share: number) => {
    const isEarlier = earlier.some(({ source }) => source === probe.name);
    return (
      isEarlier ||
      (tokens + allTokens(probe) <= options.mostTokens &&
        options.elapsed() + minutesFor(probe, at) <= share * minutes)
    );
  };
  const open = (share: number, at: LoadFit, seed: number) =>
    openLoad(share, profileAt(at), facts, { seconds: 60 * minutes * OPEN_SHARE, seed });

  await run(firstProbes[1]);
  let current = fit();
  const asked = new Map<ProbeKind, number>([
    ['single', 1],
    ['batch', 1],
  ]);
  const ladder = [...RATE_SHARES];
  for (;;) {
    const kind = leastKnown(current, asked);
    const isOpenNext =
      ladder.length > 0 && (kind === null || (asked.get('open') ?? 0) * 2 <= loads.length - 2);
    if (!isOpenNext && kind === null) break;
    const next: ProbeKind = isOpenNext ? 'open' : kind!;
    const round = asked.get(next) ?? 0;
    asked.set(next, round + 1);
    const probe =
      next === 'open'
        ? open(ladder.shift()!, current, round + 1)
        : probeOf(next, round, facts, current, minutesFor);
    if (!has(probe, current, 1 - OPEN_SHARE)) {
      if (ladder.length === 0 && kind === null) break;
      if (asked.size >= 5 && [...asked.values()].every((count) => count > MOST_OF_A_KIND)) break;
      asked.set(next, MOST_OF_A_KIND + 1);
      if (isOpenNext) ladder.length = 0;
      continue;
    }
    await run(probe, current.spread);
    current = fit(current);
  }
  const held = open(HELD_OUT_SHARE, current, 99);
  const isHeld = has(held, current, 1 + OPEN_SHARE) && loads.length > 2;
  const fittedLoads = [...loads];
  const heldOut = isHeld ? await run(held, current.spread) : null;
  const answered = fittedLoads.reduce((sum, load) => sum + load.requests.length, 0);
  if (answered < LEAST_REQUESTS) {
    throw new TuningError(
      'TOO_FEW_REQUESTS',
      `expected ${LEAST_REQUESTS} answered requests at least, got ${answered} in ${minutes} minutes: give it more minutes, and go on with what was measured`,
    );
  }
  const untold = findUntoldSettings(fittedLoads, fitOptions, current, {
    isGuess: options.start === undefined,
    isBudgetAssumed: options.isBudgetAssumed ?? false,
    hasFrontEnd: apiServerCount !== undefined,
  });
  const fittedBench = calibrateBench(fittedLoads, {
    ...untold.options,
    source: options.source,
    command: options.command,
  });
  const recovered = recoveredSpread(
    fittedLoads,
    fittedBench.profile,
    untold.options,
    options.drawnServers ?? DRAWN_SERVERS,
  );
  const calibration: BenchCalibration = {
    ...fittedBench,
    spread: Object.fromEntries(
      (Object.entries(fittedBench.spread) as [BenchParameter, number][]).map(([name, spread]) => [
        name,
        Math.max(spread, recovered[name] ?? 0),
      ]),
    ),
  };
  const comparison =
    heldOut &&
    compareLoad(heldOut, calibration.profile, {
      ...facts,
      maxNumBatchedTokens: untold.options.maxNumBatchedTokens!,
    });
  return {
    calibration,
    profile: calibration.profile,
    loads,
    heldOut: comparison,
    findings: untold.findings,
    trust: trustIn(comparison, loads, facts),
  };
}

/** The kind of probe for the coefficient with the widest interval that has not been asked for often. */
function leastKnown(
  { spread }: LoadFit,
  asked: ReadonlyMap<ProbeKind, number>,
): Exclude<ProbeKind, 'open'> | null {
  const wide = (Object.entries(spread) as [BenchParameter, number][])
    .filter(([, width]) => width > NARROW)
    .sort(([, a], [, b]) => b - a)
    .map(([name]) => probeKindFor(name))
    .filter((kind): kind is Exclude<ProbeKind, 'open'> => kind !== 'open')
    .filter((kind) => (asked.get(kind) ?? 0) < MOST_OF_A_KIND);
  return wide[0] ?? null;
}

function probeOf(
  kind: Exclude<ProbeKind, 'open'>,
  round: number,
  facts: ServerFacts,
  fit: LoadFit,
  minutesFor: (probe: Probe, fit: LoadFit) => number,
): Probe {
  if (kind === 'single') return singleProbe(facts, round);
  if (kind === 'long') {
    const together = longProbe(facts, round, 0);
    return longProbe(facts, round, (60_000 * minutesFor(together, fit)) / (2 * together.requests.length));
  }
  return batchProbe(
    facts,
    kind,
    Math.min(facts.maxNumSeqs, kind === 'batch' ? 32 * (round + 1) : 16 * (round + 1)),
  );
}

/** Trust in a profile, by the load held out and the conditions seen. */
function trustIn(heldOut: LoadComparison | null, loads: readonly MeasuredLoad[], facts: ServerFacts): string {
  const { rate, batch, prompt, context } = seenIn(loads);
  const percent = (error: number) => `${Math.abs(error).toFixed(1)} %`;
  const seen = `Nothing was measured above ${Number(rate.toPrecision(2))} requests/s, ${batch} requests at once, prompts of ${prompt} and contexts of ${context} tokens${batch < facts.maxNumSeqs ? ` (the server allows ${facts.maxNumSeqs} at once)` : ''}: do not trust the profile there.`;
  if (heldOut === null) {
    return `No load was held out: there was no time for one, so that nobody knows how far the profile can be trusted. Give it more --minutes. ${seen}`;
  }
  const { e2e, ttft, tpot } = heldOut.errors;
  return `On a load that it had not seen (${heldOut.name}, ${heldOut.requests} requests), the profile's mean latency was off by ${percent(e2e.mean)}, mean TTFT by ${percent(ttft.mean)} and mean TPOT by ${percent(tpot.mean)}. ${seen}`;
}
