import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { estimatedProfile } from '../fits/estimated-profile.ts';
import { boardWatts, findGpu, GPUS, listPrice, parseGpu, parsePrices, priceOf } from './gpu.ts';
import { findModel } from './model-config.ts';

const MINE = { name: 'My GPU 48GB', memoryGiB: 47, memoryGBps: 864, bf16Tflops: 362 };

function parse(gpu: object) {
  return parseGpu(JSON.stringify(gpu), 'my-gpu.json');
}

describe('a GPU of a file', () => {
  it('has what the file says, and is unable and free where it says nothing', () => {
    const { id, name, fp8Tflops, fp4Tflops, linkGBps, usdPerHour, efficientAs } = parse(MINE);
    assert.deepEqual(
      { id, name, fp8Tflops, fp4Tflops, linkGBps, usdPerHour, efficientAs },
      {
        id: 'my-gpu-48gb',
        name: 'My GPU 48GB',
        fp8Tflops: null,
        fp4Tflops: null,
        linkGBps: 25,
        usdPerHour: 0,
        efficientAs: 'h100',
      },
    );
  });

  it('is estimated as a known one with the same figures', () => {
    const {
      id: _,
      aliases: __,
      vendor: ___,
      source: ____,
      fp4Tflops: _____,
      ...figures
    } = findGpu('l40s-48gb');
    const own = estimatedProfile(parse(figures), findModel('llama-3-8b'), 1);
    const known = estimatedProfile(findGpu('l40s-48gb'), findModel('llama-3-8b'), 1);
    const laws = ({ weights }: typeof own) =>
      Object.values(weights).map(({ law, weightGiB }) => ({ law, weightGiB }));
    assert.deepEqual(laws(own), laws(known));
    assert.equal(own.name, known.name);
    assert.match(own.source, /which nothing was measured for/);
  });

  it('is refused with the field that is wrong', () => {
    const refused = (change: object, message: RegExp) =>
      assert.throws(() => parse({ ...MINE, ...change }), { code: 'PROFILE_FIELD', message });
    refused({ memoryGBps: 0 }, /my-gpu\.json: expected `memoryGBps` to be a number from 1/);
    refused({ bf16Tflops: undefined }, /`bf16Tflops`.*got nothing/);
    refused({ efficientAs: 'mi300x' }, /one of a100, h100, l40s/);
    refused({ hbm: 3 }, /`hbm` to be absent/);
    refused({ name: '--' }, /`name`/);
    assert.throws(() => parseGpu('{', 'my-gpu.json'), { code: 'CALIBRATION_HARDWARE' });
  });
});

describe('known GPUs', () => {
  it('are told apart by all their names', () => {
    const names = GPUS.flatMap(({ id, name, aliases }) => [
      id,
      ...aliases,
      ...(name.toLowerCase() === id ? [] : [name]),
    ]);
    assert.equal(new Set(names.map((name) => name.toLowerCase())).size, names.length);
  });

  it('have a power limit each, and no other GPU has one', () => {
    for (const { id, name } of GPUS) assert.ok(boardWatts(name)! >= 50 && boardWatts(name)! <= 1500, id);
    assert.equal(boardWatts('H100-80GB'), 700);
    assert.equal(boardWatts(MINE.name), null);
  });

  it('multiply faster in fewer bits', () => {
    for (const { id, bf16Tflops, fp8Tflops, fp4Tflops } of GPUS) {
      assert.ok((fp8Tflops ?? bf16Tflops) >= bf16Tflops, id);
      assert.ok(fp4Tflops === null || fp4Tflops > fp8Tflops!, id);
    }
  });

  it('serve on AMD and Intel as an estimate that says so', () => {
    for (const name of ['MI300X', 'Gaudi 3']) {
      const { status, source } = estimatedProfile(findGpu(name), findModel('llama-3-70b'), 2);
      assert.equal(status, 'estimated');
      assert.match(source, /on H100, which nothing was measured for/);
    }
  });
});

describe('the price of a GPU', () => {
  it('has a known GPU, a provider and a date', () => {
    for (const { id, usdPerHour: ofGpu } of GPUS) {
      const price = listPrice(id);
      assert.equal(ofGpu, price?.usdPerHour ?? 0, id);
      if (price === null) continue;
      const { provider, date, usdPerHour, spot } = price;
      assert.ok(provider.length > 0);
      assert.match(date, /^202\d(?:-\d\d-\d\d)?$/);
      assert.ok(spot === null || spot.usdPerHour < usdPerHour, id);
    }
    assert.equal(listPrice('h20-96gb'), null);
    assert.equal(findGpu('h20-96gb').usdPerHour, 0);
  });

  it('is one of the user before that of the table', () => {
    const own = parsePrices('{"H100-80GB": 2.5, "my gpu": 1}', 'prices.json');
    const table = { own, isSpot: false, useTable: true };
    assert.deepEqual(priceOf('H100-80GB', table), { usdPerHour: 2.5, source: '--prices' });
    assert.equal(priceOf('My-GPU', table)?.usdPerHour, 1);
    assert.match(priceOf('H200-141GB', table)!.source, /RunPod.*2026/);
    assert.equal(priceOf('H200-141GB', { ...table, useTable: false }), undefined);
  });

  it('is lower for spot capacity, where it is known', () => {
    const spot = { own: new Map(), isSpot: true, useTable: true };
    assert.ok(priceOf('H100-80GB', spot)!.usdPerHour < listPrice('h100-80gb')!.usdPerHour);
    assert.equal(priceOf('L4-24GB', spot), undefined);
  });

  it('is refused where it is none', () => {
    assert.throws(() => parsePrices('{"H100": "2"}', 'p.json'), {
      code: 'PROFILE_FIELD',
      message: /p\.json.*H100/,
    });
    assert.throws(() => parsePrices('H100: 2', 'p.json'), { code: 'CALIBRATION_HARDWARE' });
  });
});
