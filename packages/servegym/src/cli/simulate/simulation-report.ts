import { type RefusedRequests, refusedText } from '@servegym/operators';
import { snakeCase } from '@servegym/operators/report';
import {
  type EngineProfile,
  kvTokens,
  REQUEST_COLUMNS,
  type RequestRow,
  type SimulationSummary,
  type Summary,
} from '@servegym/simulator';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { facts, table } from '../output/print-result.ts';

/** A simulation and what it was made of. */
export interface Simulation {
  readonly profile: EngineProfile;
  readonly weights: string;
  /** Source of the requests. */
  readonly source: string;
  readonly summary: SimulationSummary;
  /** Of each priority class that has completed requests, when they have any. */
  readonly classes?: readonly ClassSummary[];
  /** Requests longer than what the profile was measured with. */
  readonly beyondValidity: number;
  /** Requests longer than what the engines take. */
  readonly refused: RefusedRequests;
  /** Time the simulation took, without reading the trace, s. */
  readonly wallS: number;
  /** Whether all requests were there at time zero. */
  readonly isClosedBatch: boolean;
}

/** Latencies of a priority class, ms. */
export interface ClassSummary {
  readonly priority: number;
  readonly completed: number;
  readonly ttft: Summary;
  readonly e2e: Summary;
}

/** The object that `simulate --json` prints. Latencies in ms; `null` where nothing was measured. */
export function simulationJson(simulation: Simulation) {
  const { profile, weights, source, summary: run, classes, beyondValidity, refused, wallS } = simulation;
  const { simulatedMs, ttft, tpot, e2e, counters, kvBlocks, requests, completed, rejected } = run;
  const simulatedS = simulatedMs / 1000;
  return snakeCase({
    ...{ profile: profile.name, weights, trace: source, requests, completed, rejected },
    ...{ aborted: run.aborted, simulatedS },
    makespanS: simulation.isClosedBatch ? simulatedS : undefined,
    ...{ wallS, requestsPerWallS: requests / wallS, ttftMs: ttft, tpotMs: tpot, e2eMs: e2e },
    ...{ throughputTps: throughput(run), preemptions: counters.preemptions, iterations: counters.iterations },
    ...{ outputTokens: counters.outputTokens, prefillTokens: counters.prefillTokens },
    cachedPrefillTokens: counters.cachedTokens,
    loadedPrefillTokens: profile.hostKv === undefined ? undefined : counters.loadedTokens,
    ...{ specAcceptanceRate: acceptance(run), kvBlocks, requestsBeyondValidity: beyondValidity, refused },
    classes: classes?.map((each) => ({
      ...{ priority: each.priority, completed: each.completed, ttftMs: each.ttft, e2eMs: each.e2e },
    })),
    policy: run.policy,
  });
}

/** Output of `simulate` without `--json`. */
export function simulationText(simulation: Simulation): string {
  const { profile, weights, source, summary: run, classes = [], wallS, isClosedBatch } = simulation;
  const { preemptions, cachedTokens, loadedTokens, prefillTokens } = run.counters;
  const simulatedS = run.simulatedMs / 1000;
  const poolTokens = kvTokens(profile, run.kvBlocks);
  const accepted = acceptance(run);
  const ofPrompts = (tokens: number, what: string) =>
    tokens > 0
      ? `${((100 * tokens) / (cachedTokens + loadedTokens + prefillTokens)).toFixed(1)} % of the prompt tokens ${what}`
      : undefined;
  return [
    `${profile.name}, ${weights} weights, ${source}`,
    '',
    ...facts([
      ['requests', `${count(run.completed)} completed, ${count(run.rejected)} rejected`],
      ['by clients', run.aborted === undefined ? undefined : `${count(run.aborted)} given up`],
      ['by the policy', run.policy && `${count(run.policy.refused)} refused`],
      ['simulated', `${seconds(simulatedS)}${isClosedBatch ? ' (makespan)' : ''}`],
      ['wall', `${seconds(wallS)} (${count(Math.round(run.requests / wallS))} requests/s)`],
      ['throughput', `${throughput(run).toFixed(1)} output tokens/s`],
      ['preemptions', count(preemptions)],
      ['KV pool', `${count(run.kvBlocks)} blocks, ${count(poolTokens)} tokens`],
      ['prefix cache', ofPrompts(cachedTokens, 'found')],
      ['host memory', ofPrompts(loadedTokens, 'loaded from it')],
      [
        'speculation',
        accepted === null ? undefined : `${(100 * accepted).toFixed(1)} % of the draft tokens accepted`,
      ],
    ]),
    '',
    ...table<readonly [name: string, summary: Summary]>(
      [
        ['TTFT, ms', run.ttft],
        ['TPOT, ms', run.tpot],
        ['end to end, ms', run.e2e],
        ...classes.map(({ priority, ttft }) => [`TTFT of class ${priority}, ms`, ttft] as const),
      ],
      [
        ['', ([name]) => name],
        ['mean', ([, { mean }]) => milliseconds(mean)],
        ['p50', ([, { p50 }]) => milliseconds(p50)],
        ['p90', ([, { p90 }]) => milliseconds(p90)],
        ['p99', ([, { p99 }]) => milliseconds(p99)],
      ],
    ),
    ...notes(simulation),
  ].join('\n');
}

function notes({ profile, weights, summary: run, refused, beyondValidity: beyond }: Simulation): string[] {
  const variant = Object.entries(profile.weights).find(([precision]) => precision === weights)?.[1];
  const [, longest] = profile.validity.contextTokens;
  const lines = [
    refused.requests > 0 && refusedText(refused),
    variant?.status === 'estimated' && `${weights} of this profile is estimated from ${variant.source}`,
    ...(run.policy?.faults ?? []).map(
      ({ message, count: times }) => `${message}; the default decided, ${count(times)} times`,
    ),
    run.rejected > 0 && `${count(run.rejected)} requests can never fit the KV pool`,
    beyond > 0 &&
      `${count(beyond)} requests are longer than the ${count(longest)} tokens the profile was measured with`,
  ].filter((line) => line !== false);
  return lines.length === 0 ? [] : ['', ...lines.map((line) => `note: ${line}`)];
}

function throughput(run: SimulationSummary): number {
  return run.simulatedMs === 0 ? 0 : (1000 * run.counters.outputTokens) / run.simulatedMs;
}

function acceptance({ counters }: SimulationSummary): number | null {
  return counters.draftTokens === 0 ? null : counters.acceptedTokens / counters.draftTokens;
}

function milliseconds(ms: number): string {
  if (Number.isNaN(ms)) return '-';
  return ms < 100 ? ms.toFixed(2) : count(Math.round(ms));
}

function seconds(s: number): string {
  return s < 1 ? `${(1000 * s).toFixed(1)} ms` : `${s.toFixed(s < 100 ? 2 : 1)} s`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

const WHOLE: readonly string[] = ['request', 'input_tokens', 'output_tokens', 'priority'];

/** Requests as a file of the kind that its name ends in: `.jsonl`, `.parquet`, or CSV with a header otherwise. */
export function requestFile(file: string, rows: Iterable<RequestRow>): Iterable<string | Uint8Array> {
  if (file.endsWith('.parquet')) return [parquet([...rows])];
  return file.endsWith('.jsonl') ? jsonLines(rows) : csvLines(rows);
}

function* jsonLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  for (const row of rows) yield `${JSON.stringify(row)}\n`;
}

function* csvLines(rows: Iterable<RequestRow>): Generator<string, void, void> {
  yield `${REQUEST_COLUMNS.join(',')}\n`;
  for (const row of rows) yield `${REQUEST_COLUMNS.map((column) => row[column] ?? '').join(',')}\n`;
}

function parquet(rows: readonly RequestRow[]): Uint8Array {
  const columnData = REQUEST_COLUMNS.map((name) => ({
    name,
    data: rows.map((row) => row[name]),
    type: WHOLE.includes(name) ? ('INT32' as const) : ('DOUBLE' as const),
    nullable: name === 'tpot_ms',
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData, createdBy: 'servegym' }));
}
