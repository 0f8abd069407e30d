import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IterationTimer, TICKS_PER_US } from '@servegym/simulator';
import { findProfile } from '../data/catalog.ts';
import { VLLM_V1 } from '../data/engine-constants.ts';
import { findGpu } from '../data/gpu.ts';
import { findModel } from '../data/model-config.ts';
import {
  LAYER_KERNELS,
  MODEL_KERNELS,
  parseKernelTables,
  SEQUENCE_KERNELS,
  timeAt,
} from '../tables/kernel-tables.ts';
import { rooflineLaw } from './estimated-profile.ts';
import { coefficientOf, type LawCoefficient } from './fit-law.ts';
import { calibrateKernels } from './kernel-profile.ts';

const SIZES = [1, ...Array.from({ length: 70 }, (_, i) => 32 * (i + 1))];
const options = {
  gpu: findGpu('rtx4090-24gb'),
  model: findModel('llama-3-8b'),
  source: 'test',
  command: '-',
};
const WEIGHT_READ_US = rooflineLaw(options.gpu, options.model, 1, VLLM_V1).weightReadUs;
const PER_TOKEN_US = 80;
const BASE_US = 3000;
const PER_SEQUENCE_US = 30;
const PER_CONTEXT_NS = 130;
const BESIDE_PREFILL_NS = 260;
const ATTENTION_NS = 5;
const LAYERS = 32;

/**
 * Iterations of Llama-3.1-8B on an RTX 4090, summed from kernel times of LLMServingSim (casys-kaist, MIT): prompt
 * tokens, of which cached before, decoding sequences, context of each, ms.
 */
const MEASURED_ITERATIONS: readonly (readonly [number, number, number, number, number])[] = [
  [0, 0, 1, 512, 16.78],
  [0, 0, 1, 8192, 17.55],
  [0, 0, 4, 2048, 18.43],
  [0, 0, 8, 1024, 18.56],
  [0, 0, 16, 512, 18.87],
  [0, 0, 16, 2048, 22.4],
  [0, 0, 32, 512, 21.54],
  [0, 0, 32, 1024, 23.92],
  [0, 0, 64, 512, 24.77],
  [0, 0, 128, 256, 26.74],
  [256, 0, 0, 0, 25.53],
  [512, 0, 0, 0, 48.31],
  [1024, 0, 0, 0, 95.47],
  [2048, 0, 0, 0, 193],
  [512, 2048, 0, 0, 52.3],
  [1024, 4096, 0, 0, 111.9],
  [256, 0, 16, 1024, 41.46],
  [512, 0, 32, 512, 65.39],
  [1024, 0, 16, 512, 110.3],
  [1024, 1024, 8, 1024, 108.3],
  [2048, 0, 32, 512, 201.4],
  [512, 1024, 64, 512, 74.44],
];
/** CPU work between two iterations, ms. */
const ENGINE_OVERHEAD_MS = 0.8;

/** Tables of a GPU whose iterations follow a law exactly, CPU work aside. */
function tables() {
  const modelUs = (tokens: number) =>
    BASE_US +
    (WEIGHT_READ_US ** 4 + (PER_TOKEN_US * tokens) ** 4) ** 0.25 -
    MODEL_KERNELS.length -
    SEQUENCE_KERNELS.length;
  const dense = [
    'layer,tokens,time_us',
    ...[...new Set(LAYER_KERNELS)].flatMap((layer) =>
      SIZES.map((tokens) => `${layer},${tokens},${modelUs(tokens) / LAYERS / LAYER_KERNELS.length}`),
    ),
    ...MODEL_KERNELS.flatMap((layer) => SIZES.map((tokens) => `${layer},${tokens},1`)),
  ];
  const sequences = [
    'layer,sequences,time_us',
    ...SEQUENCE_KERNELS.flatMap((layer) => SIZES.map((size) => `${layer},${size},1`)),
  ];
  const attention = ['prefill_chunk,kv_prefill,n_decode,kv_decode,time_us'];
  for (const chunk of [0, 64, 1024, 2048]) {
    for (const cached of chunk === 0 ? [0] : [0, 1024]) {
      for (const decodes of [0, 1, 16, 64]) {
        for (const context of decodes === 0 ? [0] : [256, 512]) {
          const perContext = chunk > 0 ? BESIDE_PREFILL_NS : PER_CONTEXT_NS;
          const us =
            (PER_SEQUENCE_US * decodes +
              (perContext * decodes * context + ATTENTION_NS * chunk * (cached + chunk / 2)) / 1000) /
            LAYERS;
          if (chunk + decodes > 0) attention.push([chunk, cached, decodes, context, us + 1e-6].join(','));
        }
      }
    }
  }
  return {
    'dense.csv': dense.join('\n'),
    'per_sequence.csv': sequences.join('\n'),
    'attention.csv': attention.join('\n'),
  };
}

describe('calibrating from kernel times', () => {
  it('finds the law that the kernels follow', () => {
    const { profile, kinds } = calibrateKernels(parseKernelTables(tables(), 'tables'), options);
    const law = profile.weights.FP16!.law;
    const expected: Partial<Record<LawCoefficient, number>> = {
      perDecodeSequenceUs: PER_SEQUENCE_US,
      perContextTokenNs: PER_CONTEXT_NS,
      perContextTokenBesidePrefillNs: BESIDE_PREFILL_NS,
      perPrefillAttentionNs: ATTENTION_NS,
      perTokenUs: PER_TOKEN_US,
    };
    for (const [name, value] of Object.entries(expected)) {
      const found = coefficientOf(law, name as LawCoefficient)!;
      assert.ok(Math.abs(found / value - 1) < 0.1, `${name}: ${found} for ${value}`);
    }
    const smallest = BASE_US + WEIGHT_READ_US + 800;
    assert.ok(Math.abs((law.baseUs + law.weightReadUs) / smallest - 1) < 0.03);
    assert.ok(kinds.decode.heldOutMeanErrorPercent < 2);
    assert.equal(profile.status, 'measured');
    assert.equal(profile.name, 'rtx4090-24gb-llama-3-8b');
  });

  it('made a profile that predicts iterations of an RTX 4090', () => {
    const timer = new IterationTimer(findProfile('rtx4090-24gb-llama-3-8b').weights.FP16!.law);
    const errors = MEASURED_ITERATIONS.map(([prompt, cached, decodes, context, ms]) => {
      const attention = prompt * (cached + prompt / 2);
      const ticks =
        timer.fixedTicks(prompt + decodes, decodes, attention) +
        timer.contextTicks(decodes, prompt) * decodes * context;
      return 100 * (ticks / TICKS_PER_US / 1000 / (ms + ENGINE_OVERHEAD_MS) - 1);
    });
    const size = errors.reduce((sum, error) => sum + Math.abs(error), 0) / errors.length;
    const bias = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    assert.ok(size < 4, `${size} %`);
    assert.ok(Math.abs(bias) < 1, `${bias} %`);
    for (const error of errors) assert.ok(Math.abs(error) < 14, `${errors}`);
  });

  it('interpolates between the sizes measured, and goes on beyond them', () => {
    const times = [
      { size: 1, us: 10 },
      { size: 3, us: 20 },
      { size: 5, us: 60 },
    ];
    assert.equal(timeAt(times, 1), 10);
    assert.equal(timeAt(times, 2), 15);
    assert.equal(timeAt(times, 3), 20);
    assert.equal(timeAt(times, 6), 80);
  });

  const refused: readonly [
    what: string,
    change: (text: string) => string,
    file: keyof ReturnType<typeof tables>,
    message: RegExp,
  ][] = [
    ['an empty table', () => '', 'dense.csv', /tables\/dense\.csv: expected times of `layernorm`/],
    [
      'other columns',
      () => 'a,b\n1,2',
      'attention.csv',
      /tables\/attention\.csv:1: expected the columns prefill_chunk/,
    ],
    [
      'a kernel that is missing',
      (text) => text.replaceAll('sampler', 'other'),
      'per_sequence.csv',
      /times of `sampler`/,
    ],
    [
      'a negative time',
      (text) => `${text}\nlm_head,8,-1`,
      'per_sequence.csv',
      /per_sequence\.csv:\d+: .*got "-1"/,
    ],
    ['a short line', (text) => `${text}\n1,2`, 'attention.csv', /attention\.csv:\d+: expected 5 fields/],
  ];
  for (const [what, change, file, message] of refused) {
    it(`refuses ${what}`, () => {
      const files = tables();
      assert.throws(() => parseKernelTables({ ...files, [file]: change(files[file]) }, 'tables'), {
        code: 'CALIBRATION_FILE',
        message,
      });
    });
  }

  it('refuses tables without iterations that the GPU could run', () => {
    const files = {
      ...tables(),
      'attention.csv': 'prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,16,9\n',
    };
    assert.throws(() => calibrateKernels(parseKernelTables(files, 'tables'), options), {
      code: 'CALIBRATION_ROWS',
    });
  });
});
