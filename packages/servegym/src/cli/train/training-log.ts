import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventFileHeader, type MetricsLine, scalarRecord, startRecord } from '@servegym/agents';
import { pngRenderer } from '../output/render-png.ts';
import { learningCurvePage, learningCurveSvg } from './learning-curve.ts';

/** Writes down how a training goes: JSON lines and a TensorBoard event file as it goes, the learning curve at the end. */
export class TrainingLog {
  readonly lines: MetricsLine[] = [];
  readonly #folder: string;
  readonly #metrics: string;
  readonly #events: string;

  /** @param keepUntil steps up to which what is told of an earlier part of the run in this folder is kept */
  constructor(folder: string, keepUntil = 0) {
    this.#folder = folder;
    this.#metrics = join(folder, 'metrics.jsonl');
    if (keepUntil > 0) this.lines.push(...readLines(this.#metrics, keepUntil));
    writeFileSync(this.#metrics, this.lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    // TensorBoard looks for this in the name of a file.
    this.#events = join(folder, `events.out.tfevents.${Date.now()}.servegym`);
    const wallTime = Date.now() / 1000;
    writeFileSync(this.#events, eventFileHeader(wallTime));
    appendFileSync(this.#events, startRecord({ wallTime, step: keepUntil + 1 }));
  }

  append(line: MetricsLine): void {
    this.lines.push(line);
    appendFileSync(this.#metrics, `${JSON.stringify(line)}\n`);
    this.#appendEvent(line);
  }

  /** Draws the curve. Answers where everything stands. There is no `picture` where PNG cannot be drawn. */
  finish(title: string): Record<'metrics' | 'events' | 'curve' | 'page', string> & { picture?: string } {
    const svg = learningCurveSvg(title, this.lines);
    const at = (name: string) => join(this.#folder, name);
    const [curve, picture, page] = [
      at('learning-curve.svg'),
      at('learning-curve.png'),
      at('learning-curve.html'),
    ];
    writeFileSync(curve, svg);
    writeFileSync(page, learningCurvePage(title, this.lines));
    const files = { metrics: this.#metrics, events: this.#events, curve, page };
    const renderPng = pngRenderer();
    if (!renderPng) return files;
    writeFileSync(picture, renderPng(svg));
    return { ...files, picture };
  }

  #appendEvent({ steps, ...metrics }: MetricsLine): void {
    const scalars = Object.fromEntries(
      Object.entries(metrics).flatMap(([name, value]) => (value === null ? [] : [[`train/${name}`, value]])),
    );
    appendFileSync(this.#events, scalarRecord({ wallTime: Date.now() / 1000, step: steps, scalars }));
  }
}

function readLines(path: string, until: number): MetricsLine[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    // The run goes on in another folder.
    return [];
  }
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as MetricsLine);
  return lines.filter((line) => line.steps <= until);
}
