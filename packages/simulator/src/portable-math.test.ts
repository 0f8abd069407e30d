import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { portableMath } from './portable-math.ts';

const COUNT = 40_000;
const shares = Array.from({ length: COUNT }, (_, i) => (i + 0.5) / COUNT);
const extremes = [0, 1, -1, 2 ** -53, 0.5, 1e300, 5e-324, ...[-1, 1].map((sign) => sign / 0)];
/** Functions whose bits are those of Node, with values that take each of their branches. */
const VALUES = {
  exp: [
    ...shares.map((share) => 1500 * (share - 0.5)),
    ...shares.map((share) => 4 * (share - 0.5)),
    ...extremes,
  ],
  log: [...shares, ...shares.map((share) => 1 + (share - 0.5) * 2 ** -18), ...extremes],
  cos: [...shares.map((share) => 4 * Math.PI * (share - 0.5)), ...shares.map((share) => 1e5 * share)],
} as const;
const BITS = {
  exp: 'd79c7f8d642f7d072d237c846a0c2500f27bdc29fb93501b560c354eb65e9eab',
  log: '87cec91e04b5dd3ecd7310e86cfb8c253f1ecfd9a380bd64fc740f7426585d4f',
  cos: 'e810d1b850f642af0064a508cbe7427b10b75f6a9ddb10c3b6c7e03d699ba25a',
} as const;

describe('portable functions', () => {
  for (const name of ['exp', 'log', 'cos'] as const)
    it(`have the recorded bits, whatever the engine of JavaScript: ${name}`, () => {
      const hash = createHash('sha256');
      hash.update(new Uint8Array(Float64Array.from(VALUES[name], portableMath[name]).buffer));
      assert.equal(hash.digest('hex'), BITS[name]);
    });

  it('log2 is exact for powers of 2, and close for others', () => {
    for (let power = -1022; power < 1024; power++) assert.equal(portableMath.log2(2 ** power), power);
    for (const share of shares) assert.ok(Math.abs(portableMath.log2(share) - Math.log2(share)) <= 4e-15);
  });

  it('log1p is within some units in the last place', () => {
    for (const x of [
      ...shares,
      ...shares.map((share) => -share),
      ...shares.map((share) => 1e6 * share ** 20),
    ])
      assert.ok(Math.abs(portableMath.log1p(x) / Math.log1p(x) - 1) < 1e-15, String(x));
    for (const x of [0, -1, -2, 1e-300, Number.POSITIVE_INFINITY])
      assert.equal(portableMath.log1p(x), Math.log1p(x));
  });

  it('pow is within some units in the last place', () => {
    for (const share of shares) {
      const [base, power] = [20 * share, 8 * ((share * 7) % 1) - 4];
      assert.ok(Math.abs(portableMath.pow(base, power) / base ** power - 1) < 1e-14);
    }
  });
});
