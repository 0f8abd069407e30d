import {
  fitLoads,
  fittedLoad,
  type LoadFit,
  type LoadFitOptions,
  type MeasuredLoad,
  requestError,
} from '@servegym/profiles';
import type { EngineProfile } from '@servegym/simulator';

/** A setting that is looked for, and its values. */
interface UntoldSetting {
  readonly name: string;
  /** Whether the nearest value is taken also where the loads do not tell; else the first. Default false. */
  readonly takesNearest?: boolean;
  readonly values: readonly { readonly name: string; apply(options: LoadFitOptions): LoadFitOptions }[];
}

/** A value is told by the loads when requests are off by this share less than with any other. */
const TOLD = 0.1;
/** Mixtures of experts by the share of a layer's experts that a token takes: 2 of 8, and 8 of 128 as 1 of 16. */
const MIXTURES = [
  { count: 8, perToken: 2 },
  { count: 128, perToken: 8 },
] as const;
/** Work of a front end on faster and slower CPUs than the one on which it was measured. */
const FRONT_END_WORK = [1, 0.25, 0.5, 2, 4];
/** Token budgets that vLLM and SGLang start with. */
const BUDGETS = [512, 1024, 2048, 4096, 8192, 16384];

/**
 * Fits the loads under each value of the settings that a server does not tell, one setting after the other, and keeps the
 * values under which single requests come out nearest to the measured ones.
 * @param isGuess Whether the start tells nothing of the model.
 * @param isBudgetAssumed Whether nobody said which token budget the server has.
 * @param hasFrontEnd Whether the start has a front end of which only the number of processes is known.
 */
export function findUntoldSettings(
  loads: readonly MeasuredLoad[],
  start: LoadFitOptions,
  fit: LoadFit,
  {
    isGuess,
    isBudgetAssumed,
    hasFrontEnd,
  }: Readonly<Record<'isGuess' | 'isBudgetAssumed' | 'hasFrontEnd', boolean>>,
) {
  const fitted = loads.map(fittedLoad);
  const settings = [
    // Under a wrong budget the loads look as if another scheduling had served them, and not the other way round.
    ...(isBudgetAssumed ? [budgetFrom(start.maxNumBatchedTokens!, start.maxNumSeqs ?? 0)] : []),
    schedulingOf(start.start),
    // Where iterations read more weights than was taken, scheduling has to be looked for again.
    ...(isGuess ? [EXPERTS, schedulingOf(start.start)] : []),
    ...(hasFrontEnd ? [FRONT_END] : []),
  ];
  let current = { options: start, fit };
  const findings = new Map<string, string>();
  for (const { name, takesNearest = false, values } of settings) {
    const tried = values.map((value) => {
      const options = value.apply(current.options);
      const law = withExperts(current.fit.law, options);
      const near = [{ ...current.fit, law, slowness: loads.map(() => 1) }];
      const found = fitLoads(fitted, null, options, { near, isShort: true });
      return { value, options, fit: found, error: requestError(fitted, found, options) };
    });
    const [best, second] = tried.toSorted((a, b) => a.error - b.error);
    const isTold = best.error < (1 - TOLD) * second.error;
    const chosen = isTold || takesNearest ? best : tried[0];
    current = { options: chosen.options, fit: chosen.fit };
    const percent = (error: number) => `${(100 * error).toFixed(1)} %`;
    findings.set(
      name,
      isTold
        ? `${name}: ${best.value.name}. Requests are off by ${percent(best.error)} with it, and by ${percent(second.error)} with ${second.value.name}.`
        : `${name}: the loads do not tell. Taken: ${chosen.value.name}.`,
    );
  }
  return { ...current, findings: [...findings.values()] };
}

/** Options with another start. */
const startingWith =
  (change: (start: EngineProfile) => Partial<EngineProfile>) =>
  (options: LoadFitOptions): LoadFitOptions => ({
    ...options,
    start: { ...options.start, ...change(options.start) },
  });

function schedulingOf({ engine }: EngineProfile): UntoldSetting {
  const values = [true, false].map((asyncScheduling) => ({
    name: asyncScheduling ? 'a step ahead (asynchronous)' : 'after each step (synchronous)',
    apply: startingWith((start) => ({ engine: { ...start.engine, asyncScheduling } })),
  }));
  return {
    name: 'Scheduling',
    takesNearest: true,
    values: engine.asyncScheduling === false ? values.reverse() : values,
  };
}

const EXPERTS: UntoldSetting = {
  name: 'Weights that an iteration reads',
  values: [
    { name: 'all, as with a dense model', apply: (options) => options },
    ...MIXTURES.map(({ count, perToken }) => ({
      name: `more with more tokens, as with ${perToken} of ${count} experts for each`,
      apply: startingWith(({ weights: { FP16: variant } }) => ({
        weights: { FP16: { ...variant!, law: dividedLaw(variant!.law, { count, perToken }) } },
      })),
    })),
  ],
};

const FRONT_END: UntoldSetting = {
  name: 'Work of the front end',
  values: FRONT_END_WORK.map((share) => ({
    name: share === 1 ? 'as measured on a server CPU' : `${share} times that`,
    apply: startingWith(({ frontEnd: work }) => ({
      frontEnd: {
        processes: work!.processes,
        perRequestMs: share * work!.perRequestMs,
        perPromptTokenUs: share * work!.perPromptTokenUs,
        perOutputTokenUs: share * work!.perOutputTokenUs,
      },
    })),
  })),
};

function budgetFrom(assumed: number, least: number): UntoldSetting {
  return {
    name: 'Token budget of an iteration',
    values: [assumed, ...BUDGETS.filter((budget) => budget !== assumed && budget >= least)].map(
      (maxNumBatchedTokens) => ({
        name: `${maxNumBatchedTokens} (--max-num-batched-tokens)`,
        apply: (options) => ({ ...options, maxNumBatchedTokens }),
      }),
    ),
  };
}

/** The law with the experts that the start has and it lacks. */
function withExperts(law: LoadFit['law'], { start }: LoadFitOptions): LoadFit['law'] {
  const { experts } = start.weights.FP16!.law;
  if (experts === undefined || law.experts !== undefined) return law;
  return dividedLaw(law, experts);
}

/** The law with half of its weight reads divided among experts. What a single token reads stays the same. */
function dividedLaw<Law extends LoadFit['law']>(
  law: Law,
  { count, perToken }: { readonly count: number; readonly perToken: number },
) {
  const weightReadUs = law.weightReadUs / 2;
  return { ...law, weightReadUs, experts: { count, perToken, readUs: weightReadUs * (count / perToken) } };
}
