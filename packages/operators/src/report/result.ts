import { knownCheckpoint } from '@servegym/profiles';
import { counted, type EngineProfile } from '@servegym/simulator';
import type { IntervalEnds } from '@servegym/simulator/statistics';
import { z } from 'zod';
import { type Candidate, KNOB_NAMES } from '../search/candidate.ts';
import type { EngineChoice } from '../search/evaluator.ts';
import { autoscaler, type SearchSpace } from '../search/search-space.ts';
import { type SloTerm, sloTermName } from '../search/slo.ts';
import { figure, type SnakeCase, snakeCase } from './format.ts';

// The schema of a result: its input is the object that the code has, its output what `--json` prints, in camelCase.
// What is not in the schema is for the text and the page alone.

/** NaN where nothing was served, for which JSON has null. */
export const number = z.custom<number>((value) => typeof value === 'number');
export const list = <Item extends z.ZodType>(item: Item) => z.array(item).readonly();
export const interval = z.object({ low: number, high: number });
/** A figure with its 95 % interval over blocks of the traffic. */
export const estimate = z.object({ value: number, interval });
export type Estimate = z.input<typeof estimate>;
/** A profile, in JSON by its name. */
export const profile = z.custom<EngineProfile>().transform(({ name }) => name);
/** Settings, in JSON by the names of `--search`. */
export const settings = z
  .custom<Candidate>()
  .transform((candidate) =>
    Object.fromEntries(Object.entries(KNOB_NAMES).map(([name, knob]) => [name, candidate[knob]])),
  );
/** Terms of an SLO, in JSON limits by their names. */
export const slo = z
  .custom<readonly SloTerm[]>()
  .transform((terms) => Object.fromEntries(terms.map((term) => [`${sloTermName(term)}_ms`, term.limitMs])));
/** Command that starts a server with a candidate's settings, and notes on what the line cannot say. */
const command = z.object({
  engine: z.enum(['vLLM', 'SGLang']),
  line: z.string(),
  notExpressed: list(z.string()),
});
export type ServingCommand = z.input<typeof command>;
/** Requests that are longer than what the engines take, the longest of them and the limit, tokens. */
export const refused = z.object({ requests: number, longest: number, limit: number });
export const commands = list(command);
/** What the figures of engines rest on. */
export const basis = {
  /** Worst evidence of their times; `assumed` where drafts are accepted as often as on other models' traffic. */
  restsOn: z.enum(['measured', 'tables', 'estimated', 'assumed']),
  /** What they take for granted beside measurements, by the names of `plan --allow`. */
  assumes: list(z.string()),
};
export type Basis = { readonly [Name in keyof typeof basis]: z.input<(typeof basis)[Name]> };
/** What an autoscaler makes of engines, on average over the trace. */
export const autoscaled = z.object({
  autoscaler,
  ...{ engines: number, usdPerHour: number, ttftP99Ms: number, tpotP99Ms: number },
});
/** What was searched, and how. */
export const search = {
  /** Values of each dimension. */
  space: z.custom<SearchSpace>(),
  /** Dimensions that are not in it, with the reason. */
  notSearched: z.record(z.string(), z.string()),
  /** Settings that a bound ruled out before they were simulated. */
  ruledOut: number,
  /** Whether parts of the traffic rank as larger parts do. */
  agreements: list(
    z.object({
      stage: z.string(),
      blocks: number,
      /** Blocks of the larger part; `null` for all. */
      beside: number.nullable(),
      points: number,
      /** Spearman's rank correlation. */
      correlation: number,
    }),
  ),
};
export type SearchReport = { readonly [Name in keyof typeof search]: z.input<(typeof search)[Name]> };

export function jsonOf<Schema extends z.ZodType>(schema: Schema) {
  return (result: z.input<Schema>): SnakeCase<z.output<Schema>> => snakeCase(schema.parse(result));
}

/** How sure figures are, by what they rest on. */
const CONFIDENCE: Readonly<Record<Basis['restsOn'], string>> = {
  measured: 'Confidence: high. The profile was measured on an engine.',
  tables: 'Confidence: medium. The profile was made from kernel tables, not measured on an engine.',
  estimated: 'Confidence: low. The profile was made from data sheets: measure before you buy.',
  assumed: 'Confidence: low. Drafts are taken to be accepted as on other traffic: measure before you buy.',
};
export function confidenceText({ restsOn }: Basis): string {
  return CONFIDENCE[restsOn];
}

/** What to measure before an assumption is relied on. */
const CHECKS: Readonly<Record<string, string>> = {
  drafts: 'measure how many draft tokens your engine accepts on your traffic',
  estimated: 'measure the GPU with `servegym profile make`',
};
export function checksText({ assumes }: Basis): string {
  return assumes
    .map((each) => CHECKS[each] ?? `measure the accuracy of ${each.toUpperCase()} weights on your task`)
    .join('; ');
}

/** Commands for a terminal, each below an empty line. */
export function commandLines(started: readonly ServingCommand[]): string[] {
  return started.flatMap(({ engine, line, notExpressed }) => [
    '',
    `${engine}:`,
    `  ${line}`,
    ...notExpressed.map((note) => `  not in the line: ${note}`),
  ]);
}

export function estimateText({ value, interval: ends }: Estimate): string {
  return `${figure(value)} (${intervalText(ends)})`;
}

export function intervalText({ low, high }: IntervalEnds): string {
  return `${figure(low)} to ${figure(high)}`;
}

/** What the autoscalers that were tried make of engines. @param best `null` where none keeps the SLO */
export function autoscalerLines(
  best: z.input<typeof autoscaled> | null | undefined,
  engines: number,
): string[] {
  if (best === undefined) return [];
  if (best === null) return [`No autoscaler that was tried keeps the SLO with at most ${engines} engines.`];
  const { requests_in_flight: target } = best.autoscaler;
  return [
    `With Kubernetes’ autoscaler at ${counted(target, 'request')} in flight on each: ${figure(best.engines)} engines on average, ${figure(best.usdPerHour)} USD an hour, within the SLO on the whole trace.`,
  ];
}

/** What was searched, what was not, and how far parts of the traffic can be trusted. */
export function searchLines({ space, notSearched, agreements, ruledOut }: SearchReport): string[] {
  const searched = Object.entries(space).map(([name, values]) =>
    values.length === 1 ? `${name} ${JSON.stringify(values[0])}` : `${name} (${values.length})`,
  );
  const byReason = Object.entries(Object.groupBy(Object.entries(notSearched), ([, reason]) => reason));
  const told = agreements.map(
    ({ blocks, beside, points, correlation }) =>
      `${figure(correlation)} between ${blocks} and ${beside ?? 'all'} stretches (${points} settings)`,
  );
  return [
    `Searched: ${searched.join(', ')}.`,
    `Not searched: ${byReason.map(([reason, each]) => `${each!.map(([name]) => name).join(', ')} (${reason})`).join('; ')}.`,
    `Rank correlation: ${told.join(', ')}. ${ruledOut.toLocaleString('en-US')} settings were ruled out unseen.`,
  ];
}

/** Whether nothing beside measurements and kernel tables is taken for granted. */
export function assumesNothing({ profile, candidate }: EngineChoice): boolean {
  return basisOf(profile, candidate).assumes.length === 0;
}

/** What the figures of an engine with a candidate's settings rest on. */
export function basisOf(
  profile: EngineProfile,
  { weights, speculationDepth }: Pick<Candidate, 'weights' | 'speculationDepth'>,
): Basis {
  const { status } = profile.weights[weights]!;
  const native = knownCheckpoint(profile.model.name)?.model.checkpoint ?? 'FP16';
  return {
    restsOn: speculationDepth > 0 ? 'assumed' : status,
    assumes: [
      ...(speculationDepth > 0 ? ['drafts'] : []),
      ...(status === 'estimated' ? ['estimated'] : []),
      // No other precision stands beside it: nothing was quantized that need not be.
      ...(weights === native || Object.keys(profile.weights).length === 1 ? [] : [weights.toLowerCase()]),
    ],
  };
}
