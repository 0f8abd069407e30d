import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VLLM_V1 } from './engine-constants.ts';
import { findGpu } from './gpu.ts';
import { calibrateKernels } from './kernel-profile.ts';
import {
  LAYER_KERNELS,
  MODEL_KERNELS,
  parseKernelTables,
  SEQUENCE_KERNELS,
  timeAt,
} from './kernel-tables.ts';
import { coefficientOf, type LawCoefficient } from './law-coefficients.ts';
import { findModel } from './model.ts';
import { rooflineLaw } from './roofline.ts';

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
