// `npx node maintenance/docs-figures.ts`: draws the charts of the documentation again.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findPolicy } from '@servegym/agents';
import { type EnvironmentId, findEnvironment } from '@servegym/environments';
import { type Chart, chartSvg } from '@servegym/operators/report';
import { findProfile } from '@servegym/profiles';
import { IterationTimer, TICKS_PER_MS } from '@servegym/simulator';
import { regretScore } from '../packages/environments/src/grading.ts';
import episodesDrawn from './episodes.json' with { type: 'json' };

const root = dirname(import.meta.dirname);

/** Charts by the names of their files. */
export async function docsFigures(): Promise<Record<string, string>> {
  const episodes = Object.entries<DrawnEpisode>(episodesDrawn).map(async ([name, drawn]) => [
    name,
    await episode(drawn),
  ]);
  return {
    'how-law.svg': iterationTimes('h100-80gb-llama-3-8b', 1000),
    'how-score.svg': scores('bursty_workload', '0'),
    ...Object.fromEntries(await Promise.all(episodes)),
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
  const tokens = contextTokens.toLocaleString('en-US');
  const chart: Chart = {
    label: 'Time of an iteration over the number of decoding sequences',
    x: { title: `decoding sequences, each with ${tokens} tokens of context`, domain: [0, 64] },
    y: {
      title: 'iteration, ms',
      domain: [0, Math.max(...lines.flatMap(({ points }) => points.map(([, y]) => y)))],
    },
    lines,
    legend: precisions.map(([text, look]) => ({ text, look })),
  };
  return chartSvg(chart, profile);
}

/** An episode of `episodes.json`: lines of figures of the observation, or the reward, over their largest value. */
interface DrawnEpisode {
  readonly environment: string;
  readonly reset: { readonly task_id?: string | number; readonly seed: number };
  readonly policy?: string;
  /** `benchmark`: waits that grow by so much, and for how many steps. */
  readonly waits?: { readonly seconds: number; readonly steps: number };
  /** Minutes of a step; steps are counted without them. */
  readonly minutes?: number;
  readonly figures: readonly (readonly string[])[];
}

async function episode({ environment, reset, policy: name, waits, minutes, figures }: DrawnEpisode) {
  const entry = findEnvironment(environment)!;
  const played = entry.definition().create();
  const policy = name === undefined ? undefined : findPolicy(environment as EnvironmentId, name).policy;
  policy?.reset({ taskId: reset.task_id!, seed: reset.seed });
  let { observation, reward, done } = await played.reset(reset);
  let previousAction = entry.initialAction(reset) as object;
  const seen: object[] = [];
  for (let stepIndex = 0; !done && stepIndex !== waits?.steps; stepIndex++) {
    const step = { observation, reward, previousAction, stepIndex };
    const action = { wait_seconds: stepIndex * (waits?.seconds ?? 0) } as object;
    previousAction = (policy?.act(step as never) as object | undefined) ?? action;
    ({ observation, reward, done } = await played.step(previousAction as never));
    seen.push({ ...previousAction, ...observation, reward });
  }
  const looks = ['first', 'second', 'third'] as const;
  const lines = figures.map(([, path], i) => {
    const values = seen.map((each) =>
      Number(path!.split('.').reduce<unknown>((of, key) => (of as Record<string, unknown>)[key], each)),
    );
    const most = Math.max(...values);
    const points = values.map((value, at): [number, number] => [(at + 1) * (minutes ?? 1), value / most]);
    return { look: looks[i]!, points };
  });
  const title = [reset.task_id ?? environment, `seed ${reset.seed}`, name].filter(Boolean).join(', ');
  const chart: Chart = {
    label: `An episode of ${title}`,
    x: { title: minutes === undefined ? 'steps' : 'minutes', domain: [0, seen.length * (minutes ?? 1)] },
    y: { title: 'share', domain: [0, 1] },
    lines,
    legend: figures.map(([text], i) => ({ text: text!, look: looks[i]! })),
  };
  return chartSvg(chart, title);
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

if (import.meta.main)
  for (const [name, svg] of Object.entries(await docsFigures()))
    writeFileSync(join(root, 'docs', 'images', name), svg);
