// `npx node maintenance/docs-figures.ts`: draws the charts of the documentation again.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findPolicy } from '@servegym/agents';
import { llmserve, type ServeAction, ServeEpisode, type ServeObservation } from '@servegym/environments';
import type { Chart } from '@servegym/operators/report';
import { findProfile } from '@servegym/profiles';
import { IterationTimer, TICKS_PER_MS } from '@servegym/simulator';
import { regretScore } from '../packages/environments/src/grading.ts';
import { chartSvg } from '../packages/servegym/src/cli/output/report-page.ts';

const root = dirname(import.meta.dirname);

/** Charts by the names of their files. */
export function docsFigures(): Record<string, string> {
  return {
    'how-law.svg': iterationTimes('h100-80gb-llama-3-8b', 1000),
    'how-score.svg': scores('bursty_workload', '0'),
    'episode-bursty.svg': episode('bursty_workload', 2_000_000, 'ppo'),
  };
}

/** Time of an iteration of nothing but decodes, by the law of each precision of a profile. */
function iterationTimes(profile: string, contextTokens: number): string {
  const precisions = [
    ['FP16', 'first'],
    ['FP8', 'second'],
    ['INT4', 'third'],
  ] as const;
  const lines = precisions.map(([precision, look]) => {
    const weights = findProfile(profile).weights[precision];
    if (weights === undefined) throw new Error(`Expected ${precision} weights in ${profile}, found none.`);
    const timer = new IterationTimer(weights.law);
    const points = Array.from({ length: 64 }, (_, i): [number, number] => {
      const ticks = timer.decodeTicks(i + 1) + timer.contextTicks(i + 1) * (i + 1) * contextTokens;
      return [i + 1, ticks / TICKS_PER_MS];
    });
    return { look, points };
  });
  const chart: Chart = {
    label: 'Time of an iteration over the number of decoding sequences',
    x: {
      title: `decoding sequences, each with ${contextTokens.toLocaleString('en-US')} tokens of context`,
      ...{ domain: [0, 64] },
    },
    y: { title: 'iteration, ms', domain: [0, largest(lines)] },
    lines,
    legend: precisions.map(([text, look]) => ({ text, look })),
  };
  return chartSvg(chart, profile);
}

/** Arrivals, compliance and memory of each window of an episode of llmserve, amounts over their largest. */
function episode(taskId: 'bursty_workload', seed: number, policyName: string): string {
  const played = new ServeEpisode(llmserve.tasks.shipped[taskId], seed);
  const { policy } = findPolicy('llmserve', policyName);
  policy.reset({ taskId, seed });
  const windows: ServeObservation[] = [];
  while (!played.done) {
    const { window: stepIndex, action: previousAction } = played;
    const step = { observation: played.observation(), reward: null, previousAction, stepIndex };
    played.step(policy.act(step) as ServeAction);
    windows.push(played.observation());
  }
  const minutes = played.task.windowSeconds / 60;
  const figures = [
    ['first', 'arrivals, over the most', 'request_arrival_rate'],
    ['second', 'requests inside their objectives', 'slo_compliance_rate'],
    ['third', 'memory held, over the most', 'gpu_memory_used_gb'],
  ] as const;
  const lines = figures.map(([look, _, figure]) => {
    const most = Math.max(...windows.map((seen) => seen[figure]));
    return {
      look,
      points: windows.map((seen, i): [number, number] => [(i + 1) * minutes, seen[figure] / most]),
    };
  });
  const chart: Chart = {
    label: `An episode of ${taskId} under ${policyName}`,
    x: { title: 'minutes', domain: [0, windows.length * minutes] },
    y: { title: 'share', domain: [0, 1] },
    lines,
    legend: figures.map(([look, text]) => ({ text, look })),
  };
  return chartSvg(chart, `${taskId}, seed ${seed}, ${policyName}`);
}

/** Score by return, between the recorded anchors of an episode of llmserve. */
function scores(task: string, seed: string): string {
  const file = 'packages/environments/src/llmserve/anchors/reference-returns.json';
  const anchors = JSON.parse(readFileSync(join(root, file), 'utf8'))[task].seeds[seed];
  const most = anchors.clairvoyant * 1.15;
  const returns = [
    ...Array.from({ length: 121 }, (_, i) => (i * most) / 120),
    ...Object.values<number>(anchors),
  ].sort((a, b) => a - b);
  const points = returns.map((x): [number, number] => [x, regretScore(x, anchors, 1)]);
  const marks = [
    ['default', anchors.default],
    ['best fixed setting', anchors.constant],
    ['clairvoyant', anchors.clairvoyant],
  ] as const;
  const chart: Chart = {
    label: 'Score over the return of an episode',
    x: { title: 'return of the episode', domain: [0, most] },
    y: { title: 'score', domain: [0, 1] },
    lines: [{ look: 'first', points }],
    dots: marks.map(([name, x]) => {
      const text = `${name} ${regretScore(x, anchors, 1).toFixed(2)}`;
      return { x, y: regretScore(x, anchors, 1), look: 'second', radius: 4.5, title: text, text };
    }),
  };
  return chartSvg(chart, `${task}, seed ${seed}`);
}

function largest(lines: readonly { readonly points: readonly (readonly [number, number])[] }[]): number {
  return Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y)));
}

if (import.meta.main)
  for (const [name, svg] of Object.entries(docsFigures()))
    writeFileSync(join(root, 'docs', 'images', name), svg);
