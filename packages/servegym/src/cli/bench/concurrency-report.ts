import { alignedRows } from '@servegym/operators/report';
import type { BatchResult, Times } from './session-batch.ts';

/** A benchmark of servers: batches of more and more sessions. */
export interface ConcurrencyRun {
  readonly urls: readonly string[];
  readonly action: Readonly<Record<string, unknown>>;
  readonly steps: number;
  readonly rampS: number;
  readonly batches: readonly BatchResult[];
}

/** A deployment holds as many sessions as the largest batch of which so many succeed. */
const HOLDS_FROM = 0.95;
const BAR_WIDTH = 48;
/** Above this the load may have been what was measured. */
const BUSY_LOAD = 0.9;

/** The object that `bench server --json` prints. Times in ms; `null` when no session of a batch succeeded. */
export function concurrencyJson(run: ConcurrencyRun) {
  const { urls, action, steps, rampS, batches } = run;
  return {
    urls,
    action,
    steps,
    ramp_s: rampS,
    largest_with_95_percent_success: largestHeld(batches),
    batches: batches.map((batch) => ({
      sessions: batch.sessions,
      succeeded: batch.succeeded,
      success_rate: batch.succeeded / batch.sessions,
      wall_s: batch.wallS,
      launch_s: batch.launchS,
      requests_per_s: batch.requestsPerS,
      steps_per_s: batch.stepsPerS,
      total_ms: batch.total,
      connect_ms: batch.connect,
      reset_ms: batch.reset,
      step_ms: batch.step,
      failures: batch.failures,
      answered_by: batch.answeredBy,
      load_cpu: batch.loadCpu,
    })),
  };
}

/** Text of `bench server`. */
export function concurrencyTable(run: ConcurrencyRun): string {
  const { batches, steps } = run;
  const step = steps === 1 ? 'steps once' : `steps ${steps} times`;
  const rows = batches.map((batch) => [
    count(batch.sessions),
    percent(batch),
    ...[batch.total?.p50, batch.total?.p99, batch.connect?.p99, batch.reset?.p99, batch.step?.p99].map(
      seconds,
    ),
    rate(batch.requestsPerS),
    rate(batch.stepsPerS),
  ]);
  const header = ['sessions', 'success', 'p50', 'p99', 'connect', 'reset', 'step', 'requests/s', 'steps/s'];
  return [
    `${run.urls.join(', ')}: every session connects, resets and ${step} with ${JSON.stringify(run.action)}`,
    '',
    ...alignedRows([header, ...rows]),
    '',
    'p50, p99: s from connecting to the last answer; connect, reset, step: p99 of each, s.',
    `largest batch with at least 95 % success: ${largestHeld(batches) ?? 'none'}`,
    ...notes(batches),
    '',
    ...bars(batches),
  ].join('\n');
}

function notes(batches: readonly BatchResult[]): string[] {
  const lines: string[] = [];
  for (const { sessions, failures, answeredBy, loadCpu } of batches) {
    const failed = Object.entries(failures).map(([reason, times]) => `${count(times)} ${reason}`);
    if (failed.length > 0) lines.push(`note: ${count(sessions)} sessions: failed ${failed.join(', ')}`);
    if (loadCpu > BUSY_LOAD) {
      lines.push(
        `note: ${count(sessions)} sessions: the load took ${(100 * loadCpu).toFixed(0)} % of a core, which may be what was measured`,
      );
    }
    const processes = Object.keys(answeredBy).length;
    if (processes > 1)
      lines.push(`note: ${count(sessions)} sessions: answered by ${count(processes)} processes`);
  }
  return lines;
}

/** A bar for each batch: up to p50 full, up to p99 light. */
function bars(batches: readonly BatchResult[]): string[] {
  const longest = Math.max(...batches.map(({ total }) => total?.p99 ?? 0));
  if (longest === 0) return [];
  const cells = (ms: number) => Math.round((BAR_WIDTH * ms) / longest);
  const bar = ({ p50, p99 }: Times) =>
    `${'█'.repeat(cells(p50))}${'░'.repeat(cells(p99) - cells(p50))} ${seconds(p99)}`;
  const width = Math.max(...batches.map(({ sessions }) => count(sessions).length));
  return [
    'sessions: time of a request, s (█ p50, ░ p99)',
    ...batches.map(({ sessions, total }) => `${count(sessions).padStart(width)} ${total ? bar(total) : '-'}`),
  ];
}

function largestHeld(batches: readonly BatchResult[]): number | null {
  const held = batches.filter(({ succeeded, sessions }) => succeeded >= HOLDS_FROM * sessions);
  return held.length === 0 ? null : Math.max(...held.map(({ sessions }) => sessions));
}

/** Never rounded up to 100 %. */
function percent({ succeeded, sessions }: BatchResult): string {
  return `${(Math.floor((1000 * succeeded) / sessions) / 10).toFixed(1)} %`;
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? '-' : (ms / 1000).toFixed(3);
}

function rate(value: number): string {
  return value < 100 ? value.toFixed(1) : count(Math.round(value));
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
