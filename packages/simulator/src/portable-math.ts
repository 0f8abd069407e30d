// Engines of JavaScript differ in the last bit of elementary functions: those of Chromium 156 are not those of Node 24, on
// the same machine. These have the bits of Node 24 everywhere, but for `log1p`,
// `log2` and `pow`.
// Training, which runs on Node, takes those of `Math` in its inner loops: they are about three times as fast.
// After FreeBSD's msun (e_exp.c, e_log.c, k_cos.c, k_sin.c; Copyright (C) 1993 by Sun Microsystems, Inc. All
// rights reserved. Permission to use, copy, modify, and distribute this software is freely granted, provided that this
// notice is preserved).

const words = new Uint32Array(2);
const double = new Float64Array(words.buffer);
/** Word with the exponent. */
const HIGH = new Uint8Array(Uint32Array.of(1).buffer)[0];

const [LN2_HIGH, LN2_LOW] = [0.6931471803691238, 1.9082149292705877e-10];
const LARGEST_EXPONENT = 709.782712893384;
const LEAST_EXPONENT = -745.1332191019411;
const LEAST_NORMAL = 2 ** -1022;
/** Coefficients, lowest power first. */
const EXP = [
  0.16666666666666602, -0.0027777777777015593, 6.613756321437934e-5, -1.6533902205465252e-6,
  4.1381367970572385e-8,
];
const LOG = [
  0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805,
  0.15313837699209373, 0.14798198605116586,
];
const COS = [
  0.0416666666666666, -0.001388888888887411, 2.480158728947673e-5, -2.7557314351390663e-7,
  2.087572321298175e-9, -1.1359647557788195e-11,
];
const SIN = [
  0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-6, -2.5050760253406863e-8,
  1.58969099521155e-10,
];
const SIN_3 = -0.16666666666666632;
/** A quarter turn in three parts, the first two with 33 bits. */
const [QUARTER_1, QUARTER_2, QUARTER_3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];

function exp(x: number): number {
  if (!(x <= LARGEST_EXPONENT)) return x > 0 ? Number.POSITIVE_INFINITY : x;
  if (x < LEAST_EXPONENT) return 0;
  if (x === 1) return Math.E;
  const size = Math.abs(x);
  let k = 0;
  let [high, low] = [x, 0];
  if (size > 0.5 * Math.LN2) {
    k = size < 1.5 * Math.LN2 ? Math.sign(x) : Math.trunc(x * Math.LOG2E + (x < 0 ? -0.5 : 0.5));
    high = x - k * LN2_HIGH;
    low = k * LN2_LOW;
  } else if (size < 2 ** -28) return 1 + x;
  const rest = high - low;
  const t = rest * rest;
  const c = rest - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))));
  if (k === 0) return 1 - ((rest * c) / (c - 2) - rest);
  const y = 1 - (low - (rest * c) / (2 - c) - high);
  if (k === 1024) return 2 * y * 2 ** 1023;
  double[0] = y;
  words[HIGH] += (k < -1021 ? k + 1000 : k) << 20;
  return k < -1021 ? double[0] * 2 ** -1000 : double[0];
}

function log(x: number): number {
  if (!(x >= LEAST_NORMAL)) {
    if (x > 0) return log(x * 2 ** 54) - 54 * Math.LN2;
    return x === 0 ? Number.NEGATIVE_INFINITY : Number.NaN;
  }
  if (x === Number.POSITIVE_INFINITY) return x;
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
  const even = w * (LOG[1] + w * (LOG[3] + w * LOG[5]));
  const odd = z * (LOG[0] + w * (LOG[2] + w * (LOG[4] + w * LOG[6])));
  const sum = odd + even;
  if (((top - 0x6147a) | (0x6b851 - top)) > 0) {
    const square = 0.5 * f * f;
    if (k === 0) return f - (square - s * (square + sum));
    return k * LN2_HIGH - (square - (s * (square + sum) + k * LN2_LOW) - f);
  }
  if (k === 0) return f - s * (f - sum);
  return k * LN2_HIGH - (s * (f - sum) - k * LN2_LOW - f);
}

/** Natural logarithm of 1 + x, within some units in the last place. */
function log1p(x: number): number {
  const sum = 1 + x;
  if (sum === 1) return x;
  if (!(sum > 0 && sum < Number.POSITIVE_INFINITY)) return log(sum);
  // What was lost in the sum, to first order.
  return log(sum) - (sum - 1 - x) / sum;
}

/** Logarithm to base 2 of a normal number; exact for powers of 2. */
function log2(x: number): number {
  double[0] = x;
  const exponent = (words[HIGH] >>> 20) - 1023;
  return exponent + log(x * 2 ** -exponent) * Math.LOG2E;
}

/** Cosine of an angle up to 2^19 quarter turns. */
function cos(x: number): number {
  const size = Math.abs(x);
  if (size <= Math.PI / 4) return cosine(size, 0);
  const quarters = Math.round(size * (2 / Math.PI));
  const first = size - quarters * QUARTER_1;
  const second = quarters * QUARTER_2;
  const rest = first - second;
  const third = quarters * QUARTER_3 - (first - rest - second);
  const y = rest - third;
  const low = rest - y - third;
  switch (quarters & 3) {
    case 0:
      return cosine(y, low);
    case 1:
      return -sine(y, low);
    case 2:
      return -cosine(y, low);
    default:
      return sine(y, low);
  }
}

/** Of an angle up to an eighth of a turn, in two parts. */
function cosine(x: number, low: number): number {
  const z = x * x;
  const r = z * (COS[0] + z * (COS[1] + z * (COS[2] + z * (COS[3] + z * (COS[4] + z * COS[5])))));
  const size = Math.abs(x);
  if (size < 0.3) return 1 - (0.5 * z - (z * r - x * low));
  let quarter = 0.28125;
  if (size <= 0.78125) {
    double[0] = size;
    // A quarter of it, about.
    words[HIGH] -= 0x200000;
    words[1 - HIGH] = 0;
    quarter = double[0];
  }
  return 1 - quarter - (0.5 * z - quarter - (z * r - x * low));
}

function sine(x: number, low: number): number {
  const z = x * x;
  const cube = z * x;
  const r = SIN[0] + z * (SIN[1] + z * (SIN[2] + z * (SIN[3] + z * SIN[4])));
  return x - (z * (0.5 * low - cube * r) - low - cube * SIN_3);
}

/** A positive number to a power, within some units in the last place where the result is not extreme. */
function pow(x: number, y: number): number {
  return exp(y * log(x));
}

/** The third power, rounded once but in rare cases: nearer than two products. */
function cube(x: number): number {
  const square = x * x;
  const product = square * x;
  return product + (productError(square, x, product) + productError(x, x, square) * x);
}

/** What rounding has taken from a product (Dekker, 1971). */
function productError(a: number, b: number, product: number): number {
  const [aHigh, bHigh] = [upperHalf(a), upperHalf(b)];
  const [aLow, bLow] = [a - aHigh, b - bHigh];
  return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
}

function upperHalf(x: number): number {
  const wide = (2 ** 27 + 1) * x;
  return wide - (wide - x);
}

/** Elementary functions with the same bits in every engine of JavaScript. All that reaches a result uses them. */
export const portableMath = { cos, cube, exp, log, log1p, log2, pow } as const;
