import { RandomStream } from '@servegym/simulator';
import type { ServeTask } from '../tasks/serve-task.ts';
import { drawWorkload } from '../workload/draw-workload.ts';
import type { FittedWorkload } from '../workload/fitted-workload.ts';
import { classShares } from './class-shares.ts';
import { drawPrefixes } from './prompt-prefixes.ts';
import type { RequestList } from './request-list.ts';
import type { RequestSource, ServeTrace } from './request-source.ts';
import { traceStretch } from './trace-stretch.ts';

/** Requests of an episode that come from a fitted workload or a trace. Deterministic by seed. */
export function sourceRequests(task: ServeTask, seed: number, source: RequestSource): RequestList {
  const classes = new RandomStream(seed, 'classes');
  const shares = classShares(task.phases[0].traffic);
  const drawClass = () => classes.choose(shares);
  const { requests } = source;
  return requests.kind === 'workload'
    ? modelRequests(task, seed, source, requests.model, drawClass)
    : traceRequests(task, seed, source, requests.trace, drawClass);
}

function modelRequests(
  { windows, windowSeconds }: ServeTask,
  seed: number,
  source: RequestSource,
  model: FittedWorkload,
  drawClass: () => number,
): RequestList {
  const drawn = drawWorkload(model, seed, windows * windowSeconds, source);
  return {
    ...drawn,
    classes: drawn.inputTokens.map(drawClass),
    ...(model.prefixes && {
      prefixes: drawPrefixes(model.prefixes, seed, drawn.arrivalSeconds, drawn.inputTokens),
    }),
  };
}

function traceRequests(
  { windows, windowSeconds }: ServeTask,
  seed: number,
  { rateScale, promptScale }: RequestSource,
  trace: ServeTrace,
  drawClass: () => number,
): RequestList {
  const episodeSeconds = windows * windowSeconds;
  const { startMs, periodMs } = traceStretch(trace, seed, episodeSeconds * 1000 * rateScale);
  const arrivalSeconds: number[] = [];
  const inputTokens: number[] = [];
  const outputTokens: number[] = [];
  const classes: number[] = [];
  const ids: number[] = [];
  const offsets: number[] = [0];
  const { prefixBlocks } = trace;
  let round = 0;
  let i = firstFrom(trace.arrivalMs, startMs);
  for (;;) {
    if (i === trace.arrivalMs.length) {
      round++;
      i = 0;
    }
    const offset = round === 0 ? 0 : round * periodMs;
    const at = (offset + trace.arrivalMs[i] - startMs) / 1000 / rateScale;
    if (!(at < episodeSeconds)) break;
    arrivalSeconds.push(at);
    inputTokens.push(Math.max(1, Math.round(trace.inputTokens[i] * promptScale)));
    outputTokens.push(trace.outputTokens[i]);
    classes.push(trace.classes === undefined ? drawClass() : trace.classes[i]);
    if (prefixBlocks) {
      for (let at = prefixBlocks.offsets[i]; at < prefixBlocks.offsets[i + 1]; at++) {
        ids.push(prefixBlocks.ids[at]);
      }
      offsets.push(ids.length);
    }
    i++;
  }
  return {
    arrivalSeconds,
    inputTokens,
    outputTokens,
    classes,
    ...(prefixBlocks && {
      prefixes: {
        chunkTokens: prefixBlocks.blockTokens,
        ids: Float64Array.from(ids),
        offsets: Int32Array.from(offsets),
      },
    }),
  };
}

/** Index of the first arrival that is not before `startMs`. */
function firstFrom(arrivalMs: Float64Array, startMs: number): number {
  let low = 0;
  let high = arrivalMs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (arrivalMs[middle] < startMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
