import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type TrainingReport, trainOne, trainSeeds } from './train-one.ts';
import { useTrainingEngines } from './training-engines.fixture.ts';

const task = 'static_workload';
const lessons = { teacher: 'heuristic', episodes: 3, minibatches: 8 };

describe('trainings with several seeds', () => {
  const { engines, newFolder } = useTrainingEngines({ 'two threads': 2 });

  for (const [algorithm, steps, written] of [
    ['cem', 1, ['policy.json']],
    ['distill', 2048, ['policy.safetensors', 'policy.onnx', 'checkpoint.safetensors']],
  ] as const) {
    it(`write what ${algorithm} with a seed alone writes, wherever they are done`, async () => {
      const alone = newFolder(`${algorithm} alone`);
      const { signal } = new AbortController();
      const run = { environment: 'llmserve', task, algorithm, steps, lessons } as const;
      const expected = await trainOne({ ...run, seed: 4 }, alone, { threads: 1, signal });

      for (const [name, jobs] of Object.entries(engines)) {
        const together = newFolder(`${algorithm} on ${name}`);
        const seeds = name === 'two threads' ? [3, 4] : [4];
        const reports = await trainSeeds(jobs, run, seeds, together);
        const { files, ...learned } = reports.at(-1)!;
        assert.deepEqual(learned, { seed: 4, ...figuresOf(expected) }, name);
        assert.deepEqual(Object.keys(files).sort(), Object.keys(expected.files).sort(), name);
        for (const file of [...written, 'learning-curve.svg']) {
          const [one, other] = [join(alone, file), join(together, 'seed-4', file)].map((at) =>
            readFileSync(at),
          );
          assert.ok(one!.equals(other!), `${file} on ${name}`);
        }
        assert.deepEqual(metricsOf(join(together, 'seed-4')), metricsOf(alone), name);
        if (seeds.length > 1) {
          const [three, four] = seeds.map((seed) => readFileSync(join(together, `seed-${seed}`, written[0])));
          assert.ok(!three!.equals(four!), 'another seed learns something else');
        }
      }
    });
  }
});

function figuresOf({ files: _, ...figures }: TrainingReport) {
  return figures;
}

/** Metrics that do not depend on the machine. */
function metricsOf(folder: string): object[] {
  const lines = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line) => {
    const { wall_s: _, steps_per_s: __, ...figures } = JSON.parse(line);
    return figures;
  });
}
