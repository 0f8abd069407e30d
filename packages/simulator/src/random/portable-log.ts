const words = new Uint32Array(2);
const double = new Float64Array(words.buffer);
/** Word with the exponent. */
const HIGH = new Uint8Array(Uint32Array.of(1).buffer)[0];

const [LN2_HIGH, LN2_LOW] = [0.6931471803691238, 1.9082149292705877e-10];
const [L1, L2, L3, L4] = [0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784];
const [L5, L6, L7] = [0.1818357216161805, 0.15313837699209373, 0.14798198605116586];

/**
 * Natural logarithm of a number above 2^-1022, the same bits everywhere. Engines of JavaScript differ in the last bit of
 * `Math.log`: that of Node 24 is this one, that of Chromium 156 is not. After FreeBSD's `e_log.c` (Copyright 1993 by Sun
 * Microsystems, freely usable).
 */
export function portableLog(x: number): number {
  double[0] = x;
  const top = words[HIGH] & 0xfffff;
  const half = (top + 0x95f64) & 0x100000;
  const k = (words[HIGH] >>> 20) - 1023 + (half >>> 20);
  words[HIGH] = top | (half ^ 0x3ff00000);
  const f = double[0] - 1;
  if ((0xfffff & (2 + top)) < 3) {
    if (f === 0) return k === 0 ? 0 : k * LN2_HIGH + k * LN2_LOW;
    const rest = f * f * (0.5 - 0.3333333333333333 * f);
    return k === 0 ? f - rest : k * LN2_HIGH - (rest - k * LN2_LOW - f);
  }
  const s = f / (2 + f);
  const z = s * s;
  const w = z * z;
  const even = w * (L2 + w * (L4 + w * L6));
  const odd = z * (L1 + w * (L3 + w * (L5 + w * L7)));
  const sum = odd + even;
  if (((top - 0x6147a) | (0x6b851 - top)) > 0) {
    const square = 0.5 * f * f;
    if (k === 0) return f - (square - s * (square + sum));
    return k * LN2_HIGH - (square - (s * (square + sum) + k * LN2_LOW) - f);
  }
  if (k === 0) return f - s * (f - sum);
  return k * LN2_HIGH - (s * (f - sum) - k * LN2_LOW - f);
}
