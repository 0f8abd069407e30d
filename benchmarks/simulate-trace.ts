// Simulated requests per second of wall time on a trace repeated to many requests, in one process on one core: the
// Azure conversation trace of `--data FOLDER` (docs/reference-data.md), a `--trace FILE`, or an hour drawn from the
// traffic model of that trace. The scenarios take turns, so that a machine that slows down slows them all; quoted is
// the median of the runs. `--beside FOLDER` simulates the same with the simulator of another checkout, in turns, and adds
// the processor time of that one over ours: above 1, ours is faster.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { drawWorkload, publicWorkload } from '@servegym/environments';
import { findReferenceFiles, REFERENCE_DATA, readTrace } from '@servegym/operators/traces';
import { findProfile } from '@servegym/profiles';
import {
  repeatTrace,
  type SimulationOptions,
  scaleRate,
  simulateTrace,
  type Trace,
} from '@servegym/simulator';

const { values } = parseArgs({
  options: {
    trace: { type: 'string' },
    data: { type: 'string' },
    profile: { type: 'string', default: 'a100-40gb-llama-3-8b' },
    requests: { type: 'string', default: '200000' },
    runs: { type: 'string', default: '7' },
    beside: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

interface Scenario {
  readonly name: string;
  readonly rateScale: number;
  readonly options: Partial<SimulationOptions>;
}

const scenarios: readonly Scenario[] = [
  { name: 'as recorded', rateScale: 1, options: {} },
  { name: 'half the rate', rateScale: 0.5, options: {} },
  { name: 'overload: three times the rate', rateScale: 3, options: {} },
  { name: 'KV pressure: 2,000 blocks', rateScale: 1, options: { kvBlocks: 2000 } },
  { name: 'without prefix caching', rateScale: 1, options: { prefixCaching: false } },
  { name: 'speculation depth 3', rateScale: 1, options: { speculationDepth: 3 } },
];

const profile = findProfile(values.profile);
const other: Pick<typeof import('@servegym/simulator'), 'simulateTrace'> | undefined =
  values.beside && (await import(resolve(values.beside, 'packages/simulator/src/index.ts')));

/** Wall and processor time of a simulation, ms. */
function timed<Result>(simulate: () => Result): { result: Result; wallMs: number; cpuMs: number } {
  const started = performance.now();
  const before = process.cpuUsage();
  const result = simulate();
  const { user, system } = process.cpuUsage(before);
  return { result, wallMs: performance.now() - started, cpuMs: (user + system) / 1000 };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

const recorded = repeatTrace(await chosenTrace(), Number(values.requests));
const results = scenarios.map((scenario) => ({
  scenario,
  trace: scaleRate(recorded, scenario.rateScale),
  wallMs: [] as number[],
  cpuMs: [] as number[],
  otherCpuMs: [] as number[],
  preemptions: 0,
}));
for (let run = 0; run <= Number(values.runs); run++) {
  for (const result of results) {
    const { trace, scenario } = result;
    const ours = timed(() => simulateTrace(trace, { profile, ...scenario.options }));
    const theirs = other && timed(() => other.simulateTrace(trace, { profile, ...scenario.options }));
    result.preemptions = ours.result.counters.preemptions;
    // The first round warms up the compiler.
    if (run === 0) continue;
    result.wallMs.push(ours.wallMs);
    result.cpuMs.push(ours.cpuMs);
    if (theirs) result.otherCpuMs.push(theirs.cpuMs);
  }
}

const rows = results.map(({ scenario, wallMs, cpuMs, otherCpuMs, preemptions }) => {
  const perSecond = (ms: number) => Math.round((Number(values.requests) / ms) * 1000);
  return {
    scenario: scenario.name,
    requests_per_wall_s: perSecond(median(wallMs)),
    best_requests_per_wall_s: perSecond(Math.min(...wallMs)),
    preemptions,
    ...(other && { cpu_of_the_other_over_ours: Number((median(otherCpuMs) / median(cpuMs)).toFixed(2)) }),
  };
});
if (values.json) console.log(JSON.stringify(rows));
else console.table(rows);

async function chosenTrace(): Promise<Trace> {
  const [published] =
    values.data === undefined ? [] : findReferenceFiles(values.data, [REFERENCE_DATA.azureConversation]);
  const file = values.trace ?? published;
  if (file !== undefined) return (await readTrace(file)).trace;
  const model = publicWorkload('azure-conversation-2023');
  const { arrivalSeconds, inputTokens, outputTokens } = drawWorkload(model, 0, model.seconds);
  return {
    source: model.id,
    arrivalMs: Float64Array.from(arrivalSeconds, (at) => 1000 * (at - arrivalSeconds[0])),
    inputTokens: Int32Array.from(inputTokens),
    outputTokens: Int32Array.from(outputTokens),
  };
}
