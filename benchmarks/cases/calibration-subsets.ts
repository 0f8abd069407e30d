import { basename } from 'node:path';
import {
  calibrateBench,
  fittedLoad,
  type MeasuredLoad,
  parseBenchResult,
  parseEngineProfile,
} from '@servegym/profiles';
import type { EngineProfile, SimulationOptions } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { simulatedTimes } from '../../packages/profiles/src/fits/load-fit.ts';
import { readInputFile } from '../../packages/servegym/src/cli/files.ts';
import { benchmark, median, type Row, required, text } from '../harness.ts';

export default benchmark({
  what: `Fits a profile to every subset of two or three of several loads on one server, and predicts the loads of the same session that the subset leaves out. FILES are what \`servegym profile make\` reads, three at least. The name of a file up to its first \`-\` is its session: loads that were measured one after the other. A load is compared at the speed that the server had in it, an unseen one at the mean speed of its session; \`profile\` is the error at the speed of the profile. First comes, without any profile, the time of a token of requests that decode alone: the same work in every load, so that it shows how the machine's speed differs. Errors in percent.`,
  options: { start: required, 'max-num-seqs': 256, 'max-num-batched-tokens': 2048, 'kv-blocks': text },
  arguments: 'FILES',
  async *run({ start: startFile, ...values }, files) {
    if (files.length < 3) throw new Error(`expected three files with loads at least, got ${files.length}`);
    const start = parseEngineProfile(await readInputFile(startFile), startFile);
    const kvBlocks = values['kv-blocks'];
    const server = {
      maxNumSeqs: values['max-num-seqs'],
      maxNumBatchedTokens: values['max-num-batched-tokens'],
      kvBlocks: kvBlocks === undefined ? undefined : Number(kvBlocks),
    };
    const loads = (
      await Promise.all(
        files.map(async (file) => parseBenchResult(await readInputFile(file), basename(file, '.jsonl'))),
      )
    ).flat();
    const sessionOf = ({ source }: MeasuredLoad) => source.split('-')[0];
    for (const load of loads) yield { load: load.source, ...decodingAlone(load) };
    const rows = [2, 3]
      .flatMap((size) => subsets(loads, size))
      .map((fitted) => {
        const plan = { start, ...server, source: 'subset', command: 'subset' };
        const { profile, folds, warnings } = calibrateBench(fitted, plan);
        const speedOf = (session: string) =>
          mean(fitted.flatMap((load, l) => (sessionOf(load) === session ? [folds[l].slowness] : [])));
        const unseen = loads
          .filter(
            (load) => !fitted.includes(load) && fitted.some((seen) => sessionOf(seen) === sessionOf(load)),
          )
          .map((load) => errorsOf(load, profile, speedOf(sessionOf(load)), server));
        const own = fitted.map((load, l) => errorsOf(load, profile, folds[l].slowness, server));
        return {
          loads: fitted.map(({ source }) => source).join(' + '),
          'own E2E': mean(own.map(({ e2e }) => Math.abs(e2e))),
          'profile E2E': mean(folds.map(({ errors }) => Math.abs(errors.e2e))),
          'unseen E2E': farthest(unseen.map(({ e2e }) => e2e)),
          'unseen TTFT': farthest(unseen.map(({ ttft }) => ttft)),
          sessions: new Set(fitted.map(sessionOf)).size,
          warnings: warnings.length,
        };
      });
    yield* rows;
    for (const [name, of] of [
      ['all subsets', rows],
      ['subsets of one session', rows.filter(({ sessions }) => sessions === 1)],
    ] as const) {
      const worst = (what: 'own E2E' | 'unseen E2E' | 'unseen TTFT') =>
        Math.abs(farthest(of.map((row) => row[what]).filter(Number.isFinite)));
      yield {
        worst: name,
        subsets: of.length,
        'own E2E': worst('own E2E'),
        'unseen E2E': worst('unseen E2E'),
        'unseen TTFT': worst('unseen TTFT'),
      };
    }
  },
});

/**
 * Median TPOT of the requests of ten tokens or more beside whose decoding there are 0.3 other decoding and 0.15 prefilling or
 * waiting ones at most, time-weighted means.
 */
function decodingAlone({ requests }: MeasuredLoad): Row {
  const spans = requests.map(({ arrivalMs, ttftMs, e2eMs, outputTokens, inputTokens }) => {
    const span = { arrival: arrivalMs, first: arrivalMs + ttftMs, last: arrivalMs + e2eMs };
    return { ...span, inputTokens, tokens: outputTokens };
  });
  const shared = (own: (typeof spans)[number], from: number, to: number) =>
    Math.max(0, Math.min(own.last, to) - Math.max(own.first, from)) / (own.last - own.first);
  const alone = spans.filter((own) => {
    if (own.tokens < 10) return false;
    const others = spans.filter((other) => other !== own);
    const decoding = others.reduce((sum, other) => sum + shared(own, other.first, other.last), 0);
    const prefilling = others.reduce((sum, other) => sum + shared(own, other.arrival, other.first), 0);
    return decoding < 0.3 && prefilling < 0.15;
  });
  return {
    alone: alone.length,
    'TPOT, ms': median(alone.map(({ first, last, tokens }) => (last - first) / (tokens - 1))),
    'input tokens, mean': mean(alone.map(({ inputTokens }) => inputTokens)),
  };
}

/** Subsets of `size` items, in their order. */
function subsets<T>(items: readonly T[], size: number): T[][] {
  if (size === 0) return [[]];
  return items.flatMap((item, i) => subsets(items.slice(i + 1), size - 1).map((rest) => [item, ...rest]));
}

/** Errors of mean latency and mean TTFT on a server that takes `slowness` times as long as the profile, percent. */
function errorsOf(
  load: MeasuredLoad,
  profile: EngineProfile,
  slowness: number,
  server: Partial<SimulationOptions>,
) {
  const fitted = fittedLoad(load);
  const parameters = { ...profile, law: profile.weights.FP16!.law };
  const simulated = simulatedTimes(fitted, parameters, { start: profile, ...server }, { slowness });
  const error = (what: 'e2eMs' | 'ttftMs') => 100 * (mean(simulated[what]) / mean(fitted.measured[what]) - 1);
  return { e2e: error('e2eMs'), ttft: error('ttftMs') };
}

function farthest(errors: readonly number[]): number {
  return errors.reduce(
    (most, error) => (Math.abs(error) > Math.abs(most) || Number.isNaN(most) ? error : most),
    Number.NaN,
  );
}
