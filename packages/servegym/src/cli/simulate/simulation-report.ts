import { alignedRows } from '@servegym/operators/report';
import type { EngineProfile, SimulationSummary, Summary } from '@servegym/simulator';

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
export function simulationJson({
  profile,
  weights,
  source,
  summary: run,
  classes,
  beyondValidity,
  wallS,
  isClosedBatch,
}: Simulation) {
  const simulatedS = run.simulatedMs / 1000;
  return {
    profile: profile.name,
    weights,
    trace: source,
    requests: run.requests,
    completed: run.completed,
    rejected: run.rejected,
    simulated_s: simulatedS,
    ...(isClosedBatch && { makespan_s: simulatedS }),
    wall_s: wallS,
    requests_per_wall_s: run.requests / wallS,
    ttft_ms: run.ttft,
    tpot_ms: run.tpot,
    e2e_ms: run.e2e,
    throughput_tps: throughput(run),
    preemptions: run.counters.preemptions,
    iterations: run.counters.iterations,
    output_tokens: run.counters.outputTokens,
    prefill_tokens: run.counters.prefillTokens,
    cached_prefill_tokens: run.counters.cachedTokens,
    ...(profile.hostKv !== undefined && { loaded_prefill_tokens: run.counters.loadedTokens }),
    spec_acceptance_rate: acceptance(run),
    kv_blocks: run.kvBlocks,
    requests_beyond_validity: beyondValidity,
    ...(classes !== undefined && {
      classes: classes.map(({ priority, completed, ttft, e2e }) => ({
        ...{ priority, completed },
        ...{ ttft_ms: ttft, e2e_ms: e2e },
      })),
    }),
    events: run.events.map(({ kind, atMs, replica }) => ({ kind, at_s: atMs / 1000, gpu: replica })),
  };
}

/** Output of `simulate` without `--json`. */
export function simulationTable(simulation: Simulation): string {
  const { profile, weights, source, summary: run, classes = [], wallS, isClosedBatch } = simulation;
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
  const promptTokens = counters.cachedTokens + counters.loadedTokens + counters.prefillTokens;
  const ofPrompts = (tokens: number) =>
    `${((100 * tokens) / promptTokens).toFixed(1)} % of the prompt tokens`;
  if (counters.cachedTokens > 0) facts.push(['prefix cache', `${ofPrompts(counters.cachedTokens)} found`]);
  if (counters.loadedTokens > 0)
    facts.push(['host memory', `${ofPrompts(counters.loadedTokens)} loaded from it`]);
  if (accepted !== null)
    facts.push(['speculation', `${(100 * accepted).toFixed(1)} % of the draft tokens accepted`]);
  return [
    `${profile.name}, ${weights} weights, ${source}`,
    '',
    ...facts.map(([name, value]) => `${name.padEnd(13)} ${value}`),
    '',
    ...alignedRows([
      ['', 'mean', 'p50', 'p90', 'p99'],
      latencyRow('TTFT, ms', run.ttft),
      latencyRow('TPOT, ms', run.tpot),
      latencyRow('end to end, ms', run.e2e),
      ...classes.map(({ priority, ttft }) => latencyRow(`TTFT of class ${priority}, ms`, ttft)),
    ]),
    ...(run.events.length === 0 ? [] : ['']),
    ...run.events.map(
      ({ kind, atMs, replica }) =>
        `${seconds(atMs / 1000).padEnd(13)} GPU ${replica}: ${kind.replace('oom', 'out of memory, restarted').replaceAll('_', ' ')}`,
    ),
    ...notes(simulation),
  ].join('\n');
}

function notes({ profile, weights, summary: run, beyondValidity: beyond }: Simulation): string[] {
  const lines: string[] = [];
  const variant = Object.entries(profile.weights).find(([precision]) => precision === weights)?.[1];
  if (variant?.status === 'estimated')
    lines.push(`note: ${weights} of this profile is estimated from ${variant.source}`);
  if (run.rejected > 0) lines.push(`note: ${count(run.rejected)} requests can never fit the KV pool`);
  if (beyond > 0) {
    const [, longest] = profile.validity.contextTokens;
    lines.push(
      `note: ${count(beyond)} requests are longer than the ${count(longest)} tokens the profile was measured with`,
    );
  }
  return lines.length === 0 ? [] : ['', ...lines];
}

function throughput(run: SimulationSummary): number {
  return run.simulatedMs === 0 ? 0 : (1000 * run.counters.outputTokens) / run.simulatedMs;
}

function acceptance({ counters }: SimulationSummary): number | null {
  return counters.draftTokens === 0 ? null : counters.acceptedTokens / counters.draftTokens;
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
