import {
  type EngineProfile,
  type SimulationRun,
  type Summary,
  summarize,
  type Trace,
} from '@servegym/simulator';
import { alignedRows } from './aligned-rows.ts';

/** A simulation and what it was made of. */
export interface Simulation {
  readonly profile: EngineProfile;
  readonly weights: string;
  readonly trace: Trace;
  readonly run: SimulationRun;
  /** Priority class of each request, if they have any. */
  readonly priorities?: Uint8Array;
  /** Time the simulation took, without reading the trace, s. */
  readonly wallS: number;
  /** Whether all requests were there at time zero. */
  readonly isClosedBatch: boolean;
}

/** The object that `simulate --json` prints. Latencies in ms; `null` where nothing was measured. */
export function simulationJson({
  profile,
  weights,
  trace,
  run,
  priorities,
  wallS,
  isClosedBatch,
}: Simulation) {
  const simulatedS = run.simulatedMs / 1000;
  return {
    profile: profile.name,
    weights,
    trace: trace.source,
    requests: run.requests,
    completed: run.completed,
    rejected: run.rejected,
    simulated_s: simulatedS,
    ...(isClosedBatch && { makespan_s: simulatedS }),
    wall_s: wallS,
    requests_per_wall_s: run.requests / wallS,
    ttft_ms: summarize(run.ttftMs),
    tpot_ms: summarize(withoutNaN(run.tpotMs)),
    e2e_ms: summarize(run.e2eMs),
    throughput_tps: throughput(run),
    preemptions: run.counters.preemptions,
    iterations: run.counters.iterations,
    output_tokens: run.counters.outputTokens,
    prefill_tokens: run.counters.prefillTokens,
    cached_prefill_tokens: run.counters.cachedTokens,
    spec_acceptance_rate: acceptance(run),
    kv_blocks: run.kvBlocks,
    requests_beyond_validity: beyondValidity(profile, trace),
    ...(priorities !== undefined && {
      classes: classes(run, priorities).map(({ priority, ttft, e2e }) => ({
        priority,
        completed: ttft.length,
        ttft_ms: summarize(ttft),
        e2e_ms: summarize(e2e),
      })),
    }),
    events: run.events.map(({ kind, atMs, replica }) => ({ kind, at_s: atMs / 1000, gpu: replica })),
  };
}

/** Latencies of each priority class that has completed requests. */
function classes(
  run: SimulationRun,
  priorities: Uint8Array,
): { priority: number; ttft: Float64Array; e2e: Float64Array }[] {
  const of = (priority: number, values: Float64Array) =>
    values.filter((_, i) => priorities[run.ids[i]!] === priority);
  return [...new Set(priorities)]
    .sort((a, b) => a - b)
    .map((priority) => ({ priority, ttft: of(priority, run.ttftMs), e2e: of(priority, run.e2eMs) }))
    .filter(({ ttft }) => ttft.length > 0);
}

/** What `simulate` prints without `--json`. */
export function simulationTable(simulation: Simulation): string {
  const { profile, weights, trace, run, priorities, wallS, isClosedBatch } = simulation;
  const { counters } = run;
  const simulatedS = run.simulatedMs / 1000;
  const poolTokens = run.kvBlocks * profile.memory.blockTokens;
  const accepted = acceptance(run);
  const facts: [string, string][] = [
    ['requests', `${count(run.completed)} completed, ${count(run.rejected)} rejected`],
    ['simulated', `${seconds(simulatedS)}${isClosedBatch ? ' (makespan)' : ''}`],
    ['wall', `${seconds(wallS)} (${count(Math.round(run.requests / wallS))} requests/s)`],
    ['throughput', `${throughput(run).toFixed(1)} output tokens/s`],
    ['preemptions', count(counters.preemptions)],
    ['KV pool', `${count(run.kvBlocks)} blocks, ${count(poolTokens)} tokens`],
  ];
  if (counters.cachedTokens > 0) {
    const share = counters.cachedTokens / (counters.cachedTokens + counters.prefillTokens);
    facts.push(['prefix cache', `${(100 * share).toFixed(1)} % of the prompt tokens found`]);
  }
  if (accepted !== null)
    facts.push(['speculation', `${(100 * accepted).toFixed(1)} % of the draft tokens accepted`]);
  return [
    `${profile.name}, ${weights} weights, ${trace.source}`,
    '',
    ...facts.map(([name, value]) => `${name.padEnd(13)} ${value}`),
    '',
    ...alignedRows([
      ['', 'mean', 'p50', 'p90', 'p99'],
      latencyRow('TTFT, ms', summarize(run.ttftMs)),
      latencyRow('TPOT, ms', summarize(withoutNaN(run.tpotMs))),
      latencyRow('end to end, ms', summarize(run.e2eMs)),
      ...(priorities === undefined ? [] : classes(run, priorities)).map(({ priority, ttft }) =>
        latencyRow(`TTFT of class ${priority}, ms`, summarize(ttft)),
      ),
    ]),
    ...(run.events.length === 0 ? [] : ['']),
    ...run.events.map(
      ({ kind, atMs, replica }) =>
        `${seconds(atMs / 1000).padEnd(13)} GPU ${replica}: ${kind.replace('oom', 'out of memory, restarted').replaceAll('_', ' ')}`,
    ),
    ...notes(simulation),
  ].join('\n');
}

function notes({ profile, weights, trace, run }: Simulation): string[] {
  const lines: string[] = [];
  const variant = Object.entries(profile.weights).find(([precision]) => precision === weights)?.[1];
  if (variant?.status === 'estimated')
    lines.push(`note: ${weights} of this profile is estimated from ${variant.source}`);
  if (run.rejected > 0) lines.push(`note: ${count(run.rejected)} requests can never fit the KV pool`);
  const beyond = beyondValidity(profile, trace);
  if (beyond > 0) {
    const [, longest] = profile.validity.contextTokens;
    lines.push(
      `note: ${count(beyond)} requests are longer than the ${count(longest)} tokens the profile was measured with`,
    );
  }
  return lines.length === 0 ? [] : ['', ...lines];
}

function beyondValidity({ validity }: EngineProfile, { inputTokens, outputTokens }: Trace): number {
  const longest = validity.contextTokens[1];
  return inputTokens.reduce((beyond, input, i) => beyond + (input + outputTokens[i]! > longest ? 1 : 0), 0);
}

function throughput(run: SimulationRun): number {
  return run.simulatedMs === 0 ? 0 : (1000 * run.counters.outputTokens) / run.simulatedMs;
}

function acceptance({ counters }: SimulationRun): number | null {
  return counters.draftTokens === 0 ? null : counters.acceptedTokens / counters.draftTokens;
}

function withoutNaN(values: Float64Array): Float64Array {
  return values.filter((value) => !Number.isNaN(value));
}

function latencyRow(name: string, { mean, p50, p90, p99 }: Summary): string[] {
  return [name, ...[mean, p50, p90, p99].map((ms) => (Number.isNaN(ms) ? '-' : milliseconds(ms)))];
}

function milliseconds(ms: number): string {
  return ms < 100 ? ms.toFixed(2) : count(Math.round(ms));
}

function seconds(s: number): string {
  return s < 1 ? `${(1000 * s).toFixed(1)} ms` : `${s.toFixed(s < 100 ? 2 : 1)} s`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
