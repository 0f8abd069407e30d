import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { findGpu, findModel, findProfile, parseStaticBatches, type StaticBatchRow } from '@servegym/profiles';
import { RandomStream } from '@servegym/simulator';
import { summarize } from '@servegym/simulator/statistics';
import { replayRun } from '../../packages/profiles/src/fits/served-load.ts';
import { simulateBatch } from '../../packages/profiles/src/fits/simulated-batch.ts';
import {
  errorPercent,
  type Fidelity,
  servedLoadFidelity,
  speculationFidelity,
  staticBatchFidelity,
  staticBatchProfiles,
} from './assess-fidelity.ts';
import { fidelityReport } from './fidelity-report.ts';
import { MEASURED_LOADS, OVERLOADED_RUN, staticBatchCsv, WHOLLY_TABLED } from './measured-figures.fixture.ts';

/** Loss by quantiles: the replay of the run itself, with its requests in their order, has a TPOT error of -1.2 %. */
const TPOT_ERROR_OF_QUANTILES = -4;
const DRAWS = 16;

describe('the simulator, beside measurements of real servers', () => {
  let fidelity: Fidelity;
  before(() => {
    const profiles = WHOLLY_TABLED.map((name) => staticBatchFidelity(name, staticBatchCsv()));
    fidelity = {
      staticBatches: profiles.map(({ own }) => own),
      quantized: profiles.flatMap(({ quantized }) => quantized),
      replay: replayedQuantiles(),
      servedLoads: servedLoadFidelity(MEASURED_LOADS),
      recordedLoads: [],
      speculation: speculationFidelity(),
    };
  });

  it('predicts static batches that its fits have not seen within 2.5 %', () => {
    const { staticBatches } = fidelity;
    assert.equal(sum(staticBatches.map(({ rows }) => rows)), 34);
    assert.ok(meanOf(staticBatches) < 2.5, `${meanOf(staticBatches)} %`);
    for (const { profile, rows, leftOutMean, leftOutWorst } of staticBatches) {
      assert.ok(leftOutWorst < 8, `${profile}: ${leftOutWorst} %`);
      const { fit } = findProfile(profile);
      assert.deepEqual(
        [fit!.rows, fit!.heldOutMeanErrorPercent, fit!.heldOutWorstErrorPercent],
        [rows, leftOutMean, leftOutWorst],
      );
    }
  });

  it('data: ships profiles with fits as near, which predict the batches measured', () => {
    const fits = staticBatchProfiles().map((name) => findProfile(name).fit!);
    assert.equal(fits.length, 12);
    const leftOut = fits.map((fit) => ({ rows: fit.rows, leftOutMean: fit.heldOutMeanErrorPercent }));
    assert.ok(meanOf(leftOut) < 2.5, `${meanOf(leftOut)} %`);
    for (const { heldOutWorstErrorPercent, command } of fits)
      assert.ok(heldOutWorstErrorPercent < 8, command);

    const rows = parseStaticBatches(staticBatchCsv(), 'figures');
    const errors = staticBatchProfiles().flatMap((name) => {
      const profile = findProfile(name);
      const own = rows.filter((row) => isPlain(row) && isOf(row, profile.gpu, profile.model.name));
      assert.ok(own.length >= 6, name);
      return own.map((row) => {
        const error = Math.abs(errorPercent(simulateBatch(profile, 'FP16', row), row.latencyS));
        assert.ok(error < 8, `${name}, ${row.batch} x ${row.inputTokens}: ${error} %`);
        return error;
      });
    });
    assert.equal(errors.length, 90);
    assert.ok(sum(errors) / errors.length < 1.5, `${sum(errors) / errors.length} %`);
  });

  it('predicts what a batch costs that overflows the KV memory', () => {
    const errors = fidelity.staticBatches.flatMap(({ overflowing }) => overflowing);
    assert.equal(errors.length, 2);
    for (const error of errors) assert.ok(Math.abs(error) < 4, `${error} %`);
  });

  it('predicts FP8 and INT8 weights that its fits have not seen within 4 %', () => {
    const { quantized } = fidelity;
    assert.deepEqual(quantized.map(({ weights }) => weights).sort(), ['FP8', 'INT8']);
    assert.ok(meanOf(quantized) < 4, `${meanOf(quantized)} %`);
  });

  it('replays requests like those of a run under overload from kernel times alone', () => {
    const { replay } = fidelity;
    assert.equal(replay.requests, OVERLOADED_RUN.requests);
    assert.ok(Math.abs(replay.tpotMean - TPOT_ERROR_OF_QUANTILES) < 1, `TPOT ${replay.tpotMean} %`);
    assert.ok(Math.abs(replay.ttftMean) < 2, `TTFT ${replay.ttftMean} %`);
    assert.ok(Math.abs(replay.e2eP99) < 3, `end to end p99 ${replay.e2eP99} %`);
    assert.ok(Math.abs(replay.makespan) < 3, `makespan ${replay.makespan} %`);
    assert.ok(replay.preemptions > 100);
  });

  it('serves the loads of real servers with one set of constants', () => {
    const { servedLoads } = fidelity;
    assert.equal(servedLoads.length, 21);
    const middle = (errors: readonly number[]) => errors.map(Math.abs).sort((a, b) => a - b)[10];
    const bounds = [
      ['e2eMean', 5, 8],
      ['itlMean', 5, 8],
      ['ttftMean', 8, 10],
      ['ttftP99', 16, 20],
    ] as const;
    for (const [what, bound, boundLeftOut] of bounds) {
      const errors = servedLoads.map((load) => load[what]);
      assert.ok(middle(errors) < bound, `${what}: ${errors}`);
      // Fits to twenty loads are further off than those to fifty, of which docs/fidelity.md tells.
      const errorsLeftOut = servedLoads.map(({ leftOut }) => leftOut[what]);
      assert.ok(middle(errorsLeftOut) < boundLeftOut, `${what}, left out: ${errorsLeftOut}`);
    }
  });

  it('speeds up by speculation as measured, the less the larger the batch', () => {
    const { speculation } = fidelity;
    assert.ok(speculation.filter(({ measured }) => measured !== null).length >= 2);
    for (const { batch, simulated, measured } of speculation) {
      if (measured !== null)
        assert.ok(Math.abs(simulated / measured - 1) < 0.08, `batch ${batch}: ${simulated}`);
    }
    for (const [i, { simulated }] of speculation.entries()) {
      if (i > 0) assert.ok(simulated < speculation[i - 1].simulated);
    }
  });

  it('data: is told in docs/fidelity.md as it is, row by row', async () => {
    const page = await readFile(join(import.meta.dirname, '../../packages/../docs/fidelity.md'), 'utf8');
    // Constants that have seen other loads leave other errors: the columns of loads left out need all fifty.
    const cells = (line: string) => line.split(' | ').slice(0, 7).join(' | ');
    const told = new Set(page.split('\n').map(cells));
    const overload = fidelityReport(fidelity)
      .split('\n## ')
      .find((part) => part.startsWith('A run'))!;
    const rows = fidelityReport(fidelity)
      .replace(overload, '')
      .split('\n')
      .filter((line) => /^\| [`\d]/.test(line));
    assert.equal(rows.length, 3 + 2 + 21 + 6);
    for (const row of rows) assert.ok(told.has(cells(row)), row);
  });
});

/** Mean errors of draws from the quantiles of the run's lengths. */
function replayedQuantiles(): Fidelity['replay'] {
  const { requests, arrivalMs, inputTokens, outputTokens, ...measured } = OVERLOADED_RUN;
  const profile = findProfile('rtx4090-24gb-llama-3-8b');
  assert.match(profile.fit!.command, /profile make rtx4090-llama-3.1-8b-bf16-tp1 /);
  const replays = Array.from({ length: DRAWS }, (_, seed) => {
    const draws = new RandomStream(seed, 'order of requests');
    const run = replayRun(profile, {
      ...measured,
      trace: {
        source: 'quantiles',
        arrivalMs: Float64Array.from({ length: requests }, (_, i) => (arrivalMs * i) / (requests - 1)),
        inputTokens: shuffledQuantiles(inputTokens, requests, draws),
        outputTokens: shuffledQuantiles(outputTokens, requests, draws),
      },
    });
    const e2e = summarize(run.e2eMs);
    return {
      requests: run.completed,
      ttftMean: errorPercent(summarize(run.ttftMs).mean, measured.ttftMeanMs),
      ttftP99: errorPercent(summarize(run.ttftMs).p99, measured.ttftP99Ms),
      tpotMean: errorPercent(summarize(run.tpotMs.filter(Number.isFinite)).mean, measured.tpotMeanMs),
      e2eMean: errorPercent(e2e.mean, measured.e2eMeanMs),
      e2eP99: errorPercent(e2e.p99, measured.e2eP99Ms),
      makespan: errorPercent(run.simulatedMs, measured.makespanMs),
      preemptions: run.counters.preemptions,
    };
  });
  const names = Object.keys(replays[0]) as (keyof Fidelity['replay'])[];
  return Object.fromEntries(
    names.map((name) => [name, sum(replays.map((replay) => replay[name])) / DRAWS]),
  ) as unknown as Fidelity['replay'];
}

/** `count` lengths of the distribution that the quantiles have, in random order. */
function shuffledQuantiles(quantiles: readonly number[], count: number, draws: RandomStream): Int32Array {
  const last = quantiles.length - 1;
  const drawn = Array.from({ length: count }, (_, i) => {
    const at = ((i + 0.5) / count) * last;
    const [low, high] = [quantiles[Math.floor(at)], quantiles[Math.floor(at) + 1]];
    return { order: draws.uniform(), tokens: Math.round(low + (high - low) * (at % 1)) };
  });
  drawn.sort((a, b) => a.order - b.order);
  return Int32Array.from(drawn, ({ tokens }) => tokens);
}

function isPlain({ engine, weights, kvCache }: StaticBatchRow): boolean {
  return engine === 'vLLM' && weights === 'fp16' && kvCache === 'fp16';
}

function isOf(row: StaticBatchRow, gpu: { name: string; count: number }, model: string): boolean {
  return findGpu(row.gpu).name === gpu.name && row.gpus === gpu.count && findModel(row.model).name === model;
}

/** Mean error over all rows, %. */
function meanOf(errors: readonly { readonly rows: number; readonly leftOutMean: number }[]): number {
  return sum(errors.map(({ rows, leftOutMean }) => rows * leftOutMean)) / sum(errors.map(({ rows }) => rows));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
