// `npx node maintenance/docs-figures.ts`: draws the figures of docs/how-it-works.md again.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  escapeText,
  horizontalGrid,
  px,
  scaleFromZero,
  svgDocument,
  tickLabels,
} from '@servegym/operators/report';
import { findProfile } from '@servegym/profiles';
import { IterationTimer, TICKS_PER_MS } from '@servegym/simulator';
import { regretScore } from '../packages/environments/src/regret-score.ts';

const root = dirname(import.meta.dirname);
const WIDTH = 720;
const GREY = { grid: '#ddd', faint: '#444' };
const COLOURS = ['#1a5fd0', '#c2410c', '#15803d'] as const;

/** A layer of the picture of the packages: each may import those below it. */
const LAYERS: readonly (readonly [name: string, purpose: string][])[] = [
  [
    ['Python package', 'Gymnasium, OpenEnv, TRL'],
    ['console', 'web page'],
    ['servegym', 'command line and server'],
  ],
  [
    ['agents', 'policies, planners, learning'],
    ['operators', 'tune, plan, diff, deployments'],
    ['endpoint', 'simulated vLLM, OpenAI API'],
  ],
  [['environments', 'llmserve, fleet, inferencegym, benchmark: tasks, rewards, graders']],
  [
    ['openenv', 'protocol, server, client, sessions'],
    ['simulator', 'engines, clusters, fleets'],
    ['jobs', 'worker threads, or Redis'],
  ],
];

/** Figures by the names of their files. */
export function docsFigures(): Record<string, string> {
  return {
    'how-packages.svg': packages(),
    'how-law.svg': iterationTimes('h100-80gb-llama-3-8b', 1000),
    'how-score.svg': scores('bursty_workload', '0'),
  };
}

function packages(): string {
  const [height, gap] = [64, 12];
  const parts = LAYERS.flatMap((layer, row) => {
    const width = (WIDTH - 24 - gap * (layer.length - 1)) / layer.length;
    return layer.map(([name, purpose], column) => {
      const [x, y] = [12 + column * (width + gap), 12 + row * (height + gap)];
      const [middle, outside] = [x + width / 2, name === 'console' || name === 'Python package'];
      return [
        `<rect x="${px(x)}" y="${y}" width="${px(width)}" height="${height}" rx="6" fill="#f4f7fd" stroke="${COLOURS[0]}"${outside ? ' stroke-dasharray="5 4"' : ''}/>`,
        `<text x="${px(middle)}" y="${y + 27}" text-anchor="middle" font-size="15" font-weight="600" fill="#111">${name}</text>`,
        `<text x="${px(middle)}" y="${y + 47}" text-anchor="middle" fill="#444">${escapeText(purpose)}</text>`,
      ].join('');
    });
  });
  return svgDocument(WIDTH, 24 + LAYERS.length * (height + gap) - gap, '#fff', parts);
}

/** Time of an iteration of nothing but decodes, by the law of each precision of a profile. */
function iterationTimes(profile: string, contextTokens: number): string {
  const sequences = Array.from({ length: 64 }, (_, i) => i + 1);
  const lines = (['FP16', 'FP8', 'INT4'] as const).map((precision) => {
    const weights = findProfile(profile).weights[precision];
    if (weights === undefined) throw new Error(`Expected ${precision} weights in ${profile}, found none.`);
    const timer = new IterationTimer(weights.law);
    return {
      name: precision,
      points: sequences.map((x) => {
        const ticks = timer.decodeTicks(x) + timer.contextTicks(x) * x * contextTokens;
        return { x, y: ticks / TICKS_PER_MS };
      }),
    };
  });
  return chart(
    lines,
    `decoding sequences, each with ${contextTokens.toLocaleString('en-US')} tokens of context (${profile})`,
    'iteration, ms',
  );
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
  const points = returns.map((x) => ({ x, y: regretScore(x, anchors, 1) }));
  const marks = [
    { name: 'default', x: anchors.default },
    { name: 'best fixed setting', x: anchors.constant },
    { name: 'clairvoyant', x: anchors.clairvoyant },
  ].map(({ name, x }) => ({ name, x, y: regretScore(x, anchors, 1) }));
  return chart([{ name: '', points }], `return of the episode (${task}, seed ${seed})`, 'score', marks);
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Lines with their names at their ends, and marked points. */
function chart(
  lines: readonly { readonly name: string; readonly points: readonly Point[] }[],
  xLabel: string,
  yLabel: string,
  marks: readonly (Point & { readonly name: string })[] = [],
): string {
  const [left, right, top, bottom, height] = [60, WIDTH - 60, 16, 292, 340];
  const all = lines.flatMap(({ points }) => points);
  const x = scaleFromZero(Math.max(...all.map((point) => point.x)), 8, [left, right]);
  const y = scaleFromZero(Math.max(...all.map((point) => point.y)), 5, [bottom, top]);
  return svgDocument(WIDTH, height, '#fff', [
    ...horizontalGrid(y, [left, right], GREY),
    ...tickLabels(x, bottom, GREY),
    `<text x="${(left + right) / 2}" y="${height - 10}" text-anchor="middle" fill="#444">${escapeText(xLabel)}</text>`,
    `<text transform="translate(16 ${(top + bottom) / 2}) rotate(-90)" text-anchor="middle" fill="#444">${escapeText(yLabel)}</text>`,
    ...lines.map(({ name, points }, i) => {
      const path = points.map((point) => `${px(x.at(point.x))} ${px(y.at(point.y))}`).join('L');
      const end = points.at(-1)!;
      return `<path d="M${path}" fill="none" stroke="${COLOURS[i]}" stroke-width="2"/><text x="${px(x.at(end.x) + 6)}" y="${px(y.at(end.y) + 4)}" fill="${COLOURS[i]}" font-weight="600">${name}</text>`;
    }),
    ...marks.map(
      ({ name, ...point }) =>
        `<circle cx="${px(x.at(point.x))}" cy="${px(y.at(point.y))}" r="4.5" fill="${COLOURS[1]}"/><text x="${px(x.at(point.x) - 10)}" y="${px(y.at(point.y) - 6)}" text-anchor="end" fill="${COLOURS[1]}" font-weight="600">${escapeText(name)} ${point.y.toFixed(2)}</text>`,
    ),
  ]);
}

if (process.argv[1] === import.meta.filename)
  for (const [name, svg] of Object.entries(docsFigures()))
    writeFileSync(join(root, 'docs', 'images', name), svg);
