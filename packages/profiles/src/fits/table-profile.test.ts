import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type EngineOverheads, statedOverheads } from '../data/engine-constants.ts';
import { findGpu } from '../data/gpu.ts';
import { type ModelDescription, type ServedModel, servedModel } from '../data/served-model.ts';
import type { LayerGroup, TransformerShape } from '../data/transformer-shape.ts';
import { parseEngineProfile } from '../schema/parse-engine-profile.ts';
import { KERNELS, operatorRows } from '../tables/operator-rows.fixture.ts';
import { type OperatorRow, OperatorTables } from '../tables/operator-tables.ts';
import { IterationComposition, type TablePrecisions } from './iteration-composition.ts';
import { type TableProfileOptions, tableProfile } from './table-profile.ts';

const NONE: EngineOverheads = {
  asyncScheduling: false,
  contextFactor: 1,
  iterationUs: 0,
  perLayerUs: 0,
  parallelPerLayerUs: 0,
  paddedExpertsUs: null,
  fusesSharedExpert: false,
  sharedExpertStreamTokens: 0,
  acrossNormKernels: 0,
  prefillPerLayerUs: 0,
  perLinearLayerUs: 0,
  perIndexerUs: 0,
  prefillPerLinearLayerUs: 0,
  perSequenceUs: 0,
  perContextTokenNs: 0,
  requestOverheadMs: 0,
  requestOverheadJitter: 0,
  requestOverheadPerTokenUs: 0,
};
const PRECISIONS = {
  attention: 'bfloat16',
  feedForward: 'bfloat16',
  experts: ['bfloat16'],
  latent: 'bfloat16',
  kv: 'bfloat16',
} as const;
const ALONE = { tensor: 1, pipeline: 1, data: 1, expert: 1 };
const H100 = findGpu('H100');

function shapeOf(layers: readonly LayerGroup[]): TransformerShape {
  return {
    ...{ hidden: 1024, vocabulary: 4096, queryHeads: 8, kvHeads: 8, headSize: 128, layers },
    ...{ qkNorm: false, tiedEmbeddings: false, mla: null },
  };
}
const DENSE = shapeOf([{ count: 4, window: null, feedForward: { inter: 2048 } }]);
const MIXTURE = shapeOf([
  { count: 4, window: null, feedForward: { experts: 8, perToken: 2, inter: 512, sharedInter: 0 } },
]);

const TOY: Omit<ModelDescription, 'shape'> = {
  ...{ id: 'toy', name: 'Toy', aliases: [], contextTokens: 8192 },
  ...{ checkpoint: 'FP16', checkpoints: {} },
};
const EXPERTS = { hidden: 1024, inter: 512, experts: 8, perToken: 2, tensorParallel: 1, expertParallel: 1 };

function compose(
  shape: TransformerShape,
  parallel = ALONE,
  tables = new OperatorTables(operatorRows()),
  overheads: Partial<EngineOverheads> = {},
  precisions: TablePrecisions = PRECISIONS,
  gpu = H100,
) {
  const all = { ...NONE, ...overheads };
  return new IterationComposition({ tables, shape, gpu, parallel, precisions, overheads: all });
}

/** Within the small kernels, 2 us each, and bytes that they move. */
function near(actual: number, expected: number, tolerance = 1e-6): void {
  assert.ok(Math.abs(actual / expected - 1) <= tolerance, `expected ${expected}, got ${actual}`);
}

describe('an iteration composed from kernel tables', () => {
  const layerWeights = 1024 * (3 * 1024) + 1024 * 1024 + 3 * 1024 * 2048;

  it('multiplies all weights of all layers, between the shapes that were measured', () => {
    const { perWeightUs } = KERNELS;
    const own =
      compose(DENSE).weightsUs(1) - compose(shapeOf([{ ...DENSE.layers[0], count: 0 }])).weightsUs(1);
    const small = 4 * (5 * 2 + (2 * (2 * 4 * 1024 + 2 * 2048 + 4 * 1024 + 3 * 2048)) / 3350e3);
    near(own - small, 4 * layerWeights * perWeightUs, 1e-3);
  });

  it('reads contexts and pairs by the slopes of the attention tables', () => {
    const composition = compose(DENSE);
    near(composition.contextUs(64), 4 * KERNELS.perContextTokenUs);
    near(composition.pairUs(), 4 * KERNELS.perPairUs, 1e-3);
    const step = (context: number) => composition.iterationUs({ chunk: 0, cached: 0, decodes: 64, context });
    near(step(2000) - step(1000), 64_000 * 4 * KERNELS.perContextTokenUs);
  });

  it('computes a chunk behind a cached prompt with the pairs of both', () => {
    const composition = compose(DENSE);
    const chunk = (cached: number) =>
      composition.iterationUs({ chunk: 1000, cached, decodes: 0, context: 0 });
    near(chunk(5000) - chunk(0), 5e6 * 4 * KERNELS.perPairUs, 1e-3);
  });

  it('routes few experts evenly', () => {
    const composition = compose(MIXTURE);
    const perToken = (composition.weightsUs(1001) - composition.weightsUs(1)) / 1000;
    const small = (2 * (2 * 4 * 1024 + 2 * 2048 + 4 * 1024)) / 3350e3;
    near(perToken, 4 * (KERNELS.perExpertTokenUs + small), 1e-2);
  });

  it('has few tokens read the experts that random choices hit', () => {
    const tables = new OperatorTables(operatorRows());
    const expertsUs = (tokens: number) => tables.expertsUs(['bfloat16'], EXPERTS, tokens);
    near(expertsUs(1), KERNELS.perExpertTokenUs);
    // Four tokens choose 2 of 8 experts each, and hit 8 x (1 - 0.75 ** 4) of them.
    near(expertsUs(4), KERNELS.perExpertTokenUs * 4 * (1 - 0.75 ** 4));
  });

  it('puts the routing of many experts between random choices and a power law, and no faster than the law', () => {
    const rows = operatorRows();
    const moe = rows.moe!.map(
      (row): OperatorRow => ({
        ...{ ...row, num_experts: 32n },
        // Reads all of few tokens' experts, and less of many than the law.
        ...(row.distribution === 'balanced' && row.num_tokens === 1n && { latency: 1 }),
      }),
    );
    const tables = new OperatorTables({ ...rows, moe });
    const times = (distribution: string) =>
      moe.filter((row) => row.distribution === distribution).map(({ latency }) => Number(latency) * 1e3);
    const [even, skewed] = [times('balanced'), times('power_law_1.2')];
    const expertsUs = (tokens: number) => tables.expertsUs(['bfloat16'], { ...EXPERTS, experts: 32 }, tokens);
    near(expertsUs(1), (even[0] + skewed[0]) / 2);
    near(expertsUs(16_384), skewed[1]);
  });

  it('takes of shapes that are not exact the fastest of the nearest of each precision', () => {
    const { moe } = operatorRows();
    const slow = moe!.map((row) => ({ ...row, moe_dtype: 'fp8', latency: 4 * Number(row.latency) }));
    const further = moe!.map((row) => ({ ...row, moe_dtype: 'fp8_block', topk: 4n }));
    const tables = new OperatorTables({ ...operatorRows(), moe: [...slow, ...further] });
    const expertsUs = (experts: number, precisions: string[]) =>
      tables.expertsUs(precisions, { ...EXPERTS, experts }, 64);
    const both = ['fp8', 'fp8_block'];
    near(expertsUs(9, both), expertsUs(9, ['fp8_block']));
    assert.ok(expertsUs(9, both) < expertsUs(9, ['fp8']));
    near(expertsUs(8, both), expertsUs(8, ['fp8']));
  });

  it('takes the nearest shape by what lies on a GPU', () => {
    const { moe } = operatorRows();
    const of = (factor: bigint, latency: number) => ({ factor, latency });
    // Experts twice as wide on twice as many GPUs are the same to a kernel.
    const rows = [of(2n, 1), of(8n, 3)].flatMap(({ factor, latency }) =>
      moe!.map((row) => ({
        ...{ ...row, inter_size: BigInt(Number(row.inter_size)) * factor, moe_tp_size: 2n },
        latency: latency * Number(row.latency),
      })),
    );
    const expertsUs = (all: readonly OperatorRow[]) =>
      new OperatorTables({ ...operatorRows(), moe: all }).expertsUs(['bfloat16'], EXPERTS, 64);
    near(expertsUs(rows), expertsUs(moe!));
  });

  it('has padded experts in 8 bits read them all', () => {
    const rows = operatorRows();
    const fp8 = new OperatorTables({
      ...rows,
      moe: rows.moe!.map((row) => ({ ...row, moe_dtype: 'fp8_block' })),
    });
    const layer = (paddedExpertsUs: number | null) =>
      compose(MIXTURE, ALONE, fp8, { paddedExpertsUs }, { ...PRECISIONS, experts: ['fp8_block'] }).weightsUs(
        1,
      );
    const all = fp8.expertsUs(['fp8_block'], EXPERTS, 16) - fp8.expertsUs(['fp8_block'], EXPERTS, 1);
    near(layer(100) - layer(null), 4 * (100 + all));
  });

  it('quantizes the input of multiplications in 8 bits', () => {
    const step = [1n, 4096n].map((m) => ({ m, k: 1024n, latency: 0.003 }));
    const tables = (more: object) => new OperatorTables({ ...operatorRows(), ...more });
    const fp8 = { ...PRECISIONS, attention: 'fp8', feedForward: 'fp8' };
    const weightsUs = (more: object, precisions: TablePrecisions) =>
      compose(DENSE, ALONE, tables(more), {}, precisions).weightsUs(1);
    const quantize = { computescale: step, scale_matrix: step };
    near(weightsUs(quantize, fp8) - weightsUs({}, fp8), 4 * 4 * 6);
    near(weightsUs(quantize, PRECISIONS), weightsUs({}, PRECISIONS));
  });

  it('exchanges the sums of a norm over the heads of several GPUs where no kernel does both', () => {
    const across = { ...DENSE, qkNorm: true, qkNormAcross: true };
    const pair = { ...ALONE, tensor: 2 };
    const added = (shape: TransformerShape, parallel: typeof ALONE) =>
      compose(shape, parallel, undefined, { acrossNormKernels: 5 }).weightsUs(1) -
      compose(shape, parallel).weightsUs(1);
    near(added(across, pair), 4 * (5 * 2 + 2 * KERNELS.allReduceUs));
    assert.equal(added(across, ALONE), 0);
    assert.equal(added({ ...across, qkNormAcross: false }, pair), 0);
  });

  it('divides layers over a tensor-parallel group, and adds two all-reduces a layer', () => {
    const pair = compose(DENSE, { ...ALONE, tensor: 2 });
    const small = 4 * (5 * 2 + (2 * (2 * 4 * 1024 + 2048 + 2 * 1024 + (3 / 2) * 2048)) / 3350e3);
    near(
      pair.weightsUs(1) - small,
      4 * ((layerWeights * KERNELS.perWeightUs) / 2 + 2 * KERNELS.allReduceUs),
      1e-3,
    );
  });

  it('has each replica of the attention compute its share of the tokens', () => {
    const replicas = compose(DENSE, { ...ALONE, data: 2 });
    near(replicas.contextUs(64), 2 * KERNELS.perContextTokenUs);
    near(replicas.weightsUs(128), compose(DENSE).weightsUs(64));
  });

  it('reads no more than a sliding window, but for windows that are longer than most contexts', () => {
    const windowed = (window: number) => compose({ ...DENSE, layers: [{ ...DENSE.layers[0], window }] });
    near(windowed(4096).contextUs(64), 4 * KERNELS.perContextTokenUs);
    assert.equal(windowed(512).contextUs(64), 0);
    const read = windowed(512).decodeRestUs(64) - compose(DENSE).decodeRestUs(64);
    near(read, 64 * 512 * 4 * KERNELS.perContextTokenUs);
  });

  it('has layers with a gated delta rule take the same time whatever the context', () => {
    const linear = { keyHeads: 4, valueHeads: 8, keySize: 128, valueSize: 128 };
    const hybrid = compose({ ...DENSE, layers: [{ ...DENSE.layers[0], linear }] });
    assert.equal(hybrid.contextUs(64), 0);
    assert.equal(hybrid.pairUs(), 0);
    near(hybrid.decodeRestUs(64) - hybrid.decodeRestUs(32), 4 * 32 * KERNELS.perLinearSequenceUs, 0.01);
    near(hybrid.prefillRestUs(1024) - hybrid.prefillRestUs(512), 4 * 512 * KERNELS.perLinearTokenUs);
    const pair = compose({ ...DENSE, layers: [{ ...DENSE.layers[0], linear }] }, { ...ALONE, tensor: 2 });
    near(pair.prefillRestUs(1024) - pair.prefillRestUs(512), 2 * 512 * KERNELS.perLinearTokenUs);
    assert.equal(
      servedModel({ ...TOY, shape: { ...DENSE, layers: [{ ...DENSE.layers[0], linear }] } }).kvBytesPerToken,
      0,
    );
  });

  it('reads a fused shared expert and launches nothing for it', () => {
    const latent = { queryRank: 512, kvRank: 512, nopeSize: 128, ropeSize: 64, valueSize: 128 };
    const experts = { experts: 256, perToken: 8, inter: 512, sharedInter: 512 };
    const deepSeek = { ...shapeOf([{ count: 4, window: null, feedForward: experts }]), mla: latent };
    const saved = (shape: TransformerShape, tokens = 1, parallel = ALONE, gpu = H100) => {
      const of = (fusesSharedExpert: boolean) =>
        compose(shape, parallel, undefined, { fusesSharedExpert }, PRECISIONS, gpu).weightsUs(tokens);
      return of(false) - of(true);
    };
    const readUs = (2 * 3 * 1024 * 512) / (H100.memoryGBps * 1e3);
    const aloneUs = 3 * 1024 * 512 * KERNELS.perWeightUs + 2 + (2 * 3 * 512) / (H100.memoryGBps * 1e3);
    near(saved(deepSeek), 4 * (aloneUs - readUs));
    near(saved(deepSeek, 4096), 4 * (aloneUs - readUs));
    assert.equal(saved(deepSeek, 1, { ...ALONE, tensor: 2, expert: 2 }), 0);
    assert.equal(saved(deepSeek, 1, ALONE, findGpu('B200')), 0);
    assert.equal(saved({ ...deepSeek, mla: null }), 0);
    assert.equal(saved({ ...deepSeek, mla: { ...latent, indexer: { heads: 8, size: 128 } } }), 0);
  });

  it('computes a shared expert beside the routed ones on a stream of its own', () => {
    const experts = { experts: 8, perToken: 2, inter: 512, sharedInter: 4096 };
    const shape = shapeOf([{ count: 4, window: null, feedForward: experts }]);
    const weightsUs = (sharedExpertStreamTokens: number, tokens: number, layer = shape) =>
      compose(layer, ALONE, undefined, { sharedExpertStreamTokens }).weightsUs(tokens);
    const none = shapeOf([{ count: 4, window: null, feedForward: { ...experts, sharedInter: 0 } }]);
    const sharedUs = weightsUs(0, 64) - weightsUs(0, 64, none);
    assert.ok(weightsUs(1024, 64) > weightsUs(0, 64, none));
    assert.ok(weightsUs(1024, 64) < weightsUs(0, 64) - 0.9 * sharedUs);
    assert.equal(weightsUs(1024, 2048), weightsUs(0, 2048));
  });

  it('sums the kernels of latent attention where the module is slower', () => {
    const mla = { queryRank: 512, kvRank: 512, nopeSize: 128, ropeSize: 64, valueSize: 128 };
    const latent = { kv_cache_dtype: 'bfloat16', num_heads: 8n };
    const steps = [1, 1024, 8192].map((step) => ({ ...latent, batch_size: 1n, step: BigInt(step) }));
    const module = (us: number) => steps.map((row) => ({ ...row, gemm_type: 'bfloat16', latency: us / 1e3 }));
    const product = { num_heads: 8n, num_tokens: 1n, latency: 0.004 };
    const restUs = (moduleUs: number) => {
      const tables = new OperatorTables({
        ...operatorRows(),
        mla_generation_module: module(moduleUs),
        generation_mla: steps.map((row) => ({ ...row, latency: 0.01 })),
        mla_bmm: ['mla_gen_pre', 'mla_gen_post'].map((op_name) => ({ ...product, op_name })),
      });
      return compose({ ...DENSE, mla }, ALONE, tables).decodeRestUs(1);
    };
    const projections = 1024 * (512 + 512 + 64) + 512 * 8 * 192 + 1024 * 8 * 128;
    const small = 3 * 2 + (2 * (2 * 1024 + 2 * 8 * 64 + 2 * 576)) / (H100.memoryGBps * 1e3);
    const sumUs = 10 + 2 * 4 + projections * KERNELS.perWeightUs + small;
    near(restUs(1000) - restUs(5), 4 * (sumUs - 5), 0.01);
  });

  it('adds what the tables lack of layers with a gated delta rule, in a prefill its launches too', () => {
    const linear = { keyHeads: 4, valueHeads: 8, keySize: 128, valueSize: 128 };
    const hybrid = { ...DENSE, layers: [{ ...DENSE.layers[0], linear }] };
    const of = (shape: TransformerShape, changes: Partial<EngineOverheads>) => {
      const composition = compose(shape, ALONE, undefined, changes);
      return [composition.decodeRestUs(1), composition.prefillRestUs(1)];
    };
    const added = (shape: TransformerShape, changes: Partial<EngineOverheads>) =>
      of(shape, changes).map((us, i) => us - of(shape, {})[i]);
    const times = { perLinearLayerUs: 30, prefillPerLinearLayerUs: 700 };
    for (const [i, us] of added(hybrid, times).entries()) near(us, 4 * [30, 730][i], 1e-6);
    for (const us of added(DENSE, { ...times, perIndexerUs: 50 })) near(us + 1, 1, 1e-6);
  });

  it('takes attention over chosen tokens by the tokens of a prompt, with its indexer', () => {
    const sparse = compose({
      ...DENSE,
      mla: {
        ...{ queryRank: 512, kvRank: 512, nopeSize: 128, ropeSize: 64, valueSize: 128 },
        indexer: { heads: 8, size: 128 },
      },
    });
    near(sparse.prefillRestUs(4096) - sparse.prefillRestUs(1), 4 * 4095 * KERNELS.perSparseTokenUs);
    assert.equal(sparse.pairUs(), 0);
    assert.equal(sparse.contextUs(64), 0);
  });

  it('has work for each context token that tensor parallelism does not divide', () => {
    const ofContext = (tensor: number) => {
      const parallel = { ...ALONE, tensor };
      const with17 = compose(DENSE, parallel, undefined, { perContextTokenNs: 17 });
      return with17.contextUs(64) - compose(DENSE, parallel).contextUs(64);
    };
    near(ofContext(1), 0.017, 1e-9);
    near(ofContext(2), 0.017, 1e-9);
  });

  it('notes what was taken from other shapes', () => {
    const tables = new OperatorTables(operatorRows());
    const wide = compose({ ...DENSE, kvHeads: 4 }, ALONE, tables);
    near(wide.contextUs(64), 2 * KERNELS.perContextTokenUs);
    assert.match([...tables.notes].join(), /generation attention of 8\/4 heads of 128: as of 8\/8 of 128/);
  });
});

describe('overheads of an engine', () => {
  it('are those of the version, and of the newest where none is known', () => {
    const of = (version: string | null) => statedOverheads('vllm', version).values;
    const [before06, before08] = [of('0.5.4'), of('0.7.3')];
    assert.ok(before06.iterationUs > before08.iterationUs && before08.iterationUs >= of(null).iterationUs);
    assert.ok(before06.perContextTokenNs > 0 && of('0.8.0').perContextTokenNs === 0);
    assert.deepEqual([of('0.12.0').asyncScheduling, of('0.14.0').asyncScheduling], [false, true]);
    assert.ok(of('0.17.1').acrossNormKernels > 0);
    for (const newest of ['0.18.0', '1.0', '', 'nightly-1', null]) assert.equal(of(newest), of('0.24.0'));
  });

  it('have the CPU work between iterations where vLLM V1 schedules none ahead', () => {
    const of = (version: string | null, ahead?: boolean) => statedOverheads('vllm', version, ahead).values;
    assert.ok(of('0.24.0', false).iterationUs > of('0.24.0').iterationUs);
    assert.equal(of('0.24.0', false).perSequenceUs, of('0.12.0').perSequenceUs);
    assert.equal(of('0.12.0', true).perSequenceUs, of('0.24.0').perSequenceUs);
    assert.deepEqual(of('0.12.0', true), {
      ...of('0.12.0', true),
      asyncScheduling: true,
      acrossNormKernels: 10,
    });
    assert.equal(of('0.6.1', true), of('0.6.1', false));
  });

  it('of SGLang are those before kernels were fused, up to 0.5.9', () => {
    const of = (version: string | null) => statedOverheads('sglang', version).values;
    assert.ok(of('0.5.9').perIndexerUs > 0 && of('0.5.10').perIndexerUs === 0);
    for (const newest of ['0.5.14', '', 'nightly-dev', null]) assert.equal(of(newest), of('0.5.10'));
  });
});

function modelOf(shape: TransformerShape): ServedModel {
  return servedModel({ ...TOY, shape });
}

function profileOf(
  shape: TransformerShape,
  changes: Partial<TableProfileOptions> = {},
  tables = new OperatorTables(operatorRows()),
) {
  return tableProfile(tables, {
    ...{ gpu: H100, model: modelOf(shape), parallel: ALONE, engine: { name: 'vLLM', version: '0.24.0' } },
    ...{ source: 'made up', command: 'servegym profile make' },
    ...changes,
  });
}

describe('a profile from kernel tables', () => {
  it('is near to the sums of kernel times between the sizes it was made from', () => {
    const eager = { ...statedOverheads('sglang', null).values, requestOverheadMs: 0 };
    for (const [shape, overheads] of [[DENSE], [MIXTURE], [DENSE, eager]] as const) {
      const { profile, errors } = profileOf(shape, { overheads });
      assert.equal(profile.weights.FP16!.law.launchBound, overheads === undefined ? undefined : 'prefill');
      for (const region of errors.FP16!) {
        assert.ok(region.meanPercent < 2, JSON.stringify(region));
        assert.ok(region.worstPercent < 5, JSON.stringify(region));
      }
    }
  });

  it('has the precisions that the tables have, and is a profile that can be read', () => {
    const { profile } = profileOf(DENSE);
    assert.deepEqual(Object.keys(profile.weights), ['FP16', 'FP8', 'INT8', 'INT4']);
    assert.deepEqual(parseEngineProfile(JSON.stringify(profile), 'it'), profile);
    assert.equal(profile.name, 'h100-80gb-toy');
    const half = profile.weights.FP8!.law.weightReadUs / profile.weights.FP16!.law.weightReadUs;
    assert.ok(half > 0.5 && half < 0.9, String(half));
  });

  it('names the parallelism, and has KV and weights for it', () => {
    const { profile } = profileOf(MIXTURE, {
      parallel: { tensor: 1, pipeline: 1, data: 2, expert: 2 },
      weights: 'FP16',
    });
    assert.equal(profile.name, 'h100-80gb-toy-ep2-dp2');
    assert.equal(profile.gpu.count, 2);
    const alone = profileOf(MIXTURE, { weights: 'FP16' }).profile;
    assert.equal(profile.model.kvBytesPerToken, alone.model.kvBytesPerToken);
    const [own, all] = [profile.weights.FP16!.weightGiB, alone.weights.FP16!.weightGiB];
    assert.ok(own > all / 2 && own < all, `${own} of ${all}`);
  });

  it('scales to another GPU of the architecture by bandwidth and arithmetic', () => {
    const gh200 = findGpu('GH200');
    const { law } = profileOf(DENSE, { gpu: gh200, measuredOn: H100 }).profile.weights.FP16!;
    const { law: measured } = profileOf(DENSE).profile.weights.FP16!;
    near(law.weightReadUs / measured.weightReadUs, 3350 / 4000, 1e-3);
    near(law.perContextTokenNs / measured.perContextTokenNs, 3350 / 4000, 1e-3);
    near(law.perTokenUs, measured.perTokenUs);
  });

  it('refuses precisions, GPUs and divisions without tables, and says what there is', () => {
    const refused: [Partial<TableProfileOptions>, RegExp][] = [
      [{ weights: 'NVFP4' }, /matrix multiplications in nvfp4.*they have bfloat16, fp8/],
      [{ kvCache: 'FP8' }, /KV cache in fp8.*they have bfloat16/],
      [{ parallel: { ...ALONE, tensor: 3 } }, /divides the 8 heads of Toy, got 3/],
      [{ parallel: { ...ALONE, pipeline: 5 } }, /at most 4 stages for Toy, got 5/],
      [{ parallel: { ...ALONE, expert: 3 } }, /experts on 1 or all 1 GPUs/],
    ];
    for (const [changes, message] of refused) {
      assert.throws(() => profileOf(DENSE, changes), message);
    }
    assert.throws(
      () => profileOf(MIXTURE, { weights: 'INT8' }),
      /expected weights that kernel tables have \(FP16, .*\), got INT8/,
    );
  });

  it('takes INT4 of experts from the tables, and estimates INT4 of a dense model from its 16-bit law', () => {
    const rows = operatorRows();
    const quarter = rows.moe!.map((row) => ({
      ...row,
      moe_dtype: 'int4_wo',
      latency: Number(row.latency) / 4,
    }));
    const tables = new OperatorTables({ ...rows, moe: [...rows.moe!, ...quarter] });
    const of = (shape: TransformerShape, weights: 'FP16' | 'INT4') =>
      profileOf(shape, { weights }, tables).profile;
    const { INT4, FP16 } = of(MIXTURE, 'INT4').weights;
    assert.deepEqual([INT4!.status, FP16], ['tables', undefined]);
    assert.ok(INT4!.law.perTokenUs < of(MIXTURE, 'FP16').weights.FP16!.law.perTokenUs);
    const dense = of(DENSE, 'INT4');
    assert.deepEqual([dense.weights.INT4!.status, Object.keys(dense.weights)], ['estimated', ['INT4']]);
    assert.ok(dense.fit!.rows > 0 && dense.fit!.meanErrorPercent < 2);
  });
});
