// The kernels of src/learning/kernels.ts on SIMD lanes of four float32. Compiled to src/learning/simd-kernels.wasm by
// `npm run build:simd`. Pointers are byte offsets into the imported memory; matrices are row-major.
//
// Every sum runs over its terms in the same order whatever the batch, so that a row has the same bits in any batch.

/** y = x W + b, and tanh of it if `tanh` is not 0. */
export function denseForward(
  x: usize,
  weights: usize,
  bias: usize,
  y: usize,
  rows: i32,
  inputs: i32,
  outputs: i32,
  tanh: i32,
): void {
  const xRow: usize = (<usize>inputs) << 2;
  const yRow: usize = (<usize>outputs) << 2;
  let row = 0;
  for (; row + 4 <= rows; row += 4) {
    forwardRows4(x, weights, bias, y, inputs, outputs);
    x += xRow << 2;
    y += yRow << 2;
  }
  for (; row < rows; row++) {
    forwardRow(x, weights, bias, y, inputs, outputs);
    x += xRow;
    y += yRow;
  }
  if (tanh) tanhInPlace(y - <usize>rows * yRow, rows * outputs);
}

/** Four rows share each load of the weights. */
function forwardRows4(x: usize, weights: usize, bias: usize, y: usize, inputs: i32, outputs: i32): void {
  const xRow: usize = (<usize>inputs) << 2;
  const yRow: usize = (<usize>outputs) << 2;
  const xEnd = x + xRow;
  const y1 = y + yRow;
  const y2 = y1 + yRow;
  const y3 = y2 + yRow;
  let o: i32 = 0;
  for (; o + 8 <= outputs; o += 8) {
    const at: usize = (<usize>o) << 2;
    const biasA = v128.load(bias + at);
    const biasB = v128.load(bias + at, 16);
    let sum0a = biasA;
    let sum0b = biasB;
    let sum1a = biasA;
    let sum1b = biasB;
    let sum2a = biasA;
    let sum2b = biasB;
    let sum3a = biasA;
    let sum3b = biasB;
    let w = weights + at;
    for (let i = x; i < xEnd; i += 4) {
      const wa = v128.load(w);
      const wb = v128.load(w, 16);
      let value = v128.load32_splat(i);
      sum0a = f32x4.add(sum0a, f32x4.mul(value, wa));
      sum0b = f32x4.add(sum0b, f32x4.mul(value, wb));
      value = v128.load32_splat(i + xRow);
      sum1a = f32x4.add(sum1a, f32x4.mul(value, wa));
      sum1b = f32x4.add(sum1b, f32x4.mul(value, wb));
      value = v128.load32_splat(i + 2 * xRow);
      sum2a = f32x4.add(sum2a, f32x4.mul(value, wa));
      sum2b = f32x4.add(sum2b, f32x4.mul(value, wb));
      value = v128.load32_splat(i + 3 * xRow);
      sum3a = f32x4.add(sum3a, f32x4.mul(value, wa));
      sum3b = f32x4.add(sum3b, f32x4.mul(value, wb));
      w += yRow;
    }
    v128.store(y + at, sum0a);
    v128.store(y + at, sum0b, 16);
    v128.store(y1 + at, sum1a);
    v128.store(y1 + at, sum1b, 16);
    v128.store(y2 + at, sum2a);
    v128.store(y2 + at, sum2b, 16);
    v128.store(y3 + at, sum3a);
    v128.store(y3 + at, sum3b, 16);
  }
  for (; o < outputs; o++) {
    const at: usize = (<usize>o) << 2;
    let sum0 = load<f32>(bias + at);
    let sum1 = sum0;
    let sum2 = sum0;
    let sum3 = sum0;
    let w = weights + at;
    for (let i = x; i < xEnd; i += 4) {
      const weight = load<f32>(w);
      sum0 += load<f32>(i) * weight;
      sum1 += load<f32>(i + xRow) * weight;
      sum2 += load<f32>(i + 2 * xRow) * weight;
      sum3 += load<f32>(i + 3 * xRow) * weight;
      w += yRow;
    }
    store<f32>(y + at, sum0);
    store<f32>(y1 + at, sum1);
    store<f32>(y2 + at, sum2);
    store<f32>(y3 + at, sum3);
  }
}

function forwardRow(x: usize, weights: usize, bias: usize, y: usize, inputs: i32, outputs: i32): void {
  const xEnd: usize = x + ((<usize>inputs) << 2);
  const yRow: usize = (<usize>outputs) << 2;
  let o: i32 = 0;
  for (; o + 8 <= outputs; o += 8) {
    const at: usize = (<usize>o) << 2;
    let sumA = v128.load(bias + at);
    let sumB = v128.load(bias + at, 16);
    let w = weights + at;
    for (let i = x; i < xEnd; i += 4) {
      const value = v128.load32_splat(i);
      sumA = f32x4.add(sumA, f32x4.mul(value, v128.load(w)));
      sumB = f32x4.add(sumB, f32x4.mul(value, v128.load(w, 16)));
      w += yRow;
    }
    v128.store(y + at, sumA);
    v128.store(y + at, sumB, 16);
  }
  for (; o < outputs; o++) {
    const at: usize = (<usize>o) << 2;
    let sum = load<f32>(bias + at);
    let w = weights + at;
    for (let i = x; i < xEnd; i += 4) {
      sum += load<f32>(i) * load<f32>(w);
      w += yRow;
    }
    store<f32>(y + at, sum);
  }
}

/**
 * The arguments of `Kernels.denseBackward`. `xGradients` is 0 when it is not wanted. `tanh` tells whether `y` is the
 * tanh of the layer's sums.
 */
export function denseBackward(
  x: usize,
  weights: usize,
  y: usize,
  yGradients: usize,
  xGradients: usize,
  weightGradients: usize,
  biasGradients: usize,
  rows: i32,
  inputs: i32,
  outputs: i32,
  tanh: i32,
): void {
  if (tanh) throughTanh(y, yGradients, rows * outputs);
  addBiasGradients(yGradients, biasGradients, rows, outputs);
  addWeightGradients(x, yGradients, weightGradients, rows, inputs, outputs);
  if (xGradients) inputGradients(weights, yGradients, xGradients, rows, inputs, outputs);
}

/** yGradients *= 1 - y^2. */
function throughTanh(y: usize, yGradients: usize, count: i32): void {
  const one = f32x4.splat(1);
  let left = count;
  for (; left >= 4; left -= 4) {
    const value = v128.load(y);
    const slope = f32x4.sub(one, f32x4.mul(value, value));
    v128.store(yGradients, f32x4.mul(v128.load(yGradients), slope));
    y += 16;
    yGradients += 16;
  }
  for (; left > 0; left--) {
    const value = load<f32>(y);
    store<f32>(yGradients, load<f32>(yGradients) * (1 - value * value));
    y += 4;
    yGradients += 4;
  }
}

function addBiasGradients(yGradients: usize, biasGradients: usize, rows: i32, outputs: i32): void {
  const yRow: usize = (<usize>outputs) << 2;
  let o: i32 = 0;
  for (; o + 4 <= outputs; o += 4) {
    const at: usize = (<usize>o) << 2;
    let sum = v128.load(biasGradients + at);
    let dy = yGradients + at;
    for (let row = 0; row < rows; row++) {
      sum = f32x4.add(sum, v128.load(dy));
      dy += yRow;
    }
    v128.store(biasGradients + at, sum);
  }
  for (; o < outputs; o++) {
    const at: usize = (<usize>o) << 2;
    let sum = load<f32>(biasGradients + at);
    let dy = yGradients + at;
    for (let row = 0; row < rows; row++) {
      sum += load<f32>(dy);
      dy += yRow;
    }
    store<f32>(biasGradients + at, sum);
  }
}

/** weightGradients += x^T yGradients, in tiles of four inputs by eight outputs. */
function addWeightGradients(
  x: usize,
  yGradients: usize,
  weightGradients: usize,
  rows: i32,
  inputs: i32,
  outputs: i32,
): void {
  const xRow: usize = (<usize>inputs) << 2;
  const yRow: usize = (<usize>outputs) << 2;
  let i: i32 = 0;
  for (; i + 4 <= inputs; i += 4) {
    const w0 = weightGradients + <usize>i * yRow;
    const w1 = w0 + yRow;
    const w2 = w1 + yRow;
    const w3 = w2 + yRow;
    const xStart: usize = x + ((<usize>i) << 2);
    let o: i32 = 0;
    for (; o + 8 <= outputs; o += 8) {
      const at: usize = (<usize>o) << 2;
      let sum0a = v128.load(w0 + at);
      let sum0b = v128.load(w0 + at, 16);
      let sum1a = v128.load(w1 + at);
      let sum1b = v128.load(w1 + at, 16);
      let sum2a = v128.load(w2 + at);
      let sum2b = v128.load(w2 + at, 16);
      let sum3a = v128.load(w3 + at);
      let sum3b = v128.load(w3 + at, 16);
      let xAt = xStart;
      let dy = yGradients + at;
      for (let row = 0; row < rows; row++) {
        const dya = v128.load(dy);
        const dyb = v128.load(dy, 16);
        let value = v128.load32_splat(xAt);
        sum0a = f32x4.add(sum0a, f32x4.mul(value, dya));
        sum0b = f32x4.add(sum0b, f32x4.mul(value, dyb));
        value = v128.load32_splat(xAt, 4);
        sum1a = f32x4.add(sum1a, f32x4.mul(value, dya));
        sum1b = f32x4.add(sum1b, f32x4.mul(value, dyb));
        value = v128.load32_splat(xAt, 8);
        sum2a = f32x4.add(sum2a, f32x4.mul(value, dya));
        sum2b = f32x4.add(sum2b, f32x4.mul(value, dyb));
        value = v128.load32_splat(xAt, 12);
        sum3a = f32x4.add(sum3a, f32x4.mul(value, dya));
        sum3b = f32x4.add(sum3b, f32x4.mul(value, dyb));
        xAt += xRow;
        dy += yRow;
      }
      v128.store(w0 + at, sum0a);
      v128.store(w0 + at, sum0b, 16);
      v128.store(w1 + at, sum1a);
      v128.store(w1 + at, sum1b, 16);
      v128.store(w2 + at, sum2a);
      v128.store(w2 + at, sum2b, 16);
      v128.store(w3 + at, sum3a);
      v128.store(w3 + at, sum3b, 16);
    }
    for (; o < outputs; o++) {
      for (let k: i32 = 0; k < 4; k++) addWeightGradient(x, yGradients, weightGradients, rows, inputs, outputs, i + k, o);
    }
  }
  for (; i < inputs; i++) {
    let o: i32 = 0;
    for (; o + 4 <= outputs; o += 4) {
      const at: usize = (<usize>i * <usize>outputs + <usize>o) << 2;
      let sum = v128.load(weightGradients + at);
      let xAt: usize = x + ((<usize>i) << 2);
      let dy: usize = yGradients + ((<usize>o) << 2);
      for (let row = 0; row < rows; row++) {
        sum = f32x4.add(sum, f32x4.mul(v128.load32_splat(xAt), v128.load(dy)));
        xAt += xRow;
        dy += yRow;
      }
      v128.store(weightGradients + at, sum);
    }
    for (; o < outputs; o++) addWeightGradient(x, yGradients, weightGradients, rows, inputs, outputs, i, o);
  }
}

function addWeightGradient(
  x: usize,
  yGradients: usize,
  weightGradients: usize,
  rows: i32,
  inputs: i32,
  outputs: i32,
  i: i32,
  o: i32,
): void {
  const at: usize = weightGradients + ((<usize>i * <usize>outputs + <usize>o) << 2);
  let sum = load<f32>(at);
  let xAt: usize = x + ((<usize>i) << 2);
  let dy: usize = yGradients + ((<usize>o) << 2);
  for (let row = 0; row < rows; row++) {
    sum += load<f32>(xAt) * load<f32>(dy);
    xAt += (<usize>inputs) << 2;
    dy += (<usize>outputs) << 2;
  }
  store<f32>(at, sum);
}

/** xGradients = yGradients W^T, in tiles of two rows by two inputs. */
function inputGradients(
  weights: usize,
  yGradients: usize,
  xGradients: usize,
  rows: i32,
  inputs: i32,
  outputs: i32,
): void {
  const xRow: usize = (<usize>inputs) << 2;
  const yRow: usize = (<usize>outputs) << 2;
  let row = 0;
  for (; row + 2 <= rows; row += 2) {
    const dy0 = yGradients + <usize>row * yRow;
    const dy1 = dy0 + yRow;
    const dx0 = xGradients + <usize>row * xRow;
    const dx1 = dx0 + xRow;
    let i: i32 = 0;
    for (; i + 2 <= inputs; i += 2) {
      const w0 = weights + <usize>i * yRow;
      const w1 = w0 + yRow;
      let sum00 = f32x4.splat(0);
      let sum01 = f32x4.splat(0);
      let sum10 = f32x4.splat(0);
      let sum11 = f32x4.splat(0);
      let o: i32 = 0;
      for (; o + 4 <= outputs; o += 4) {
        const at: usize = (<usize>o) << 2;
        const a = v128.load(dy0 + at);
        const b = v128.load(dy1 + at);
        const c = v128.load(w0 + at);
        const d = v128.load(w1 + at);
        sum00 = f32x4.add(sum00, f32x4.mul(a, c));
        sum01 = f32x4.add(sum01, f32x4.mul(a, d));
        sum10 = f32x4.add(sum10, f32x4.mul(b, c));
        sum11 = f32x4.add(sum11, f32x4.mul(b, d));
      }
      let total00 = across(sum00);
      let total01 = across(sum01);
      let total10 = across(sum10);
      let total11 = across(sum11);
      for (; o < outputs; o++) {
        const at: usize = (<usize>o) << 2;
        total00 += load<f32>(dy0 + at) * load<f32>(w0 + at);
        total01 += load<f32>(dy0 + at) * load<f32>(w1 + at);
        total10 += load<f32>(dy1 + at) * load<f32>(w0 + at);
        total11 += load<f32>(dy1 + at) * load<f32>(w1 + at);
      }
      const to: usize = (<usize>i) << 2;
      store<f32>(dx0 + to, total00);
      store<f32>(dx0 + to, total01, 4);
      store<f32>(dx1 + to, total10);
      store<f32>(dx1 + to, total11, 4);
    }
    for (; i < inputs; i++) {
      store<f32>(dx0 + ((<usize>i) << 2), overlap(dy0, weights + <usize>i * yRow, outputs));
      store<f32>(dx1 + ((<usize>i) << 2), overlap(dy1, weights + <usize>i * yRow, outputs));
    }
  }
  for (; row < rows; row++) {
    const dy = yGradients + <usize>row * yRow;
    const dx = xGradients + <usize>row * xRow;
    for (let i: i32 = 0; i < inputs; i++) {
      store<f32>(dx + ((<usize>i) << 2), overlap(dy, weights + <usize>i * yRow, outputs));
    }
  }
}

/** Sum of the products of two vectors. */
function overlap(a: usize, b: usize, length: i32): f32 {
  let sums = f32x4.splat(0);
  let k: i32 = 0;
  for (; k + 4 <= length; k += 4) {
    const at: usize = (<usize>k) << 2;
    sums = f32x4.add(sums, f32x4.mul(v128.load(a + at), v128.load(b + at)));
  }
  let sum = across(sums);
  for (; k < length; k++) {
    const at: usize = (<usize>k) << 2;
    sum += load<f32>(a + at) * load<f32>(b + at);
  }
  return sum;
}

/** Sum of the lanes. */
// @ts-ignore: decorator
@inline
function across(lanes: v128): f32 {
  return (
    f32x4.extract_lane(lanes, 0) +
    f32x4.extract_lane(lanes, 1) +
    (f32x4.extract_lane(lanes, 2) + f32x4.extract_lane(lanes, 3))
  );
}

/** Adam. `learningRate` has the corrections of both moments in it, and so has `epsilon`. */
export function adam(
  parameters: usize,
  gradients: usize,
  firstMoments: usize,
  secondMoments: usize,
  count: i32,
  gradientScale: f32,
  beta1: f32,
  beta2: f32,
  learningRate: f32,
  epsilon: f32,
): void {
  const keep1 = f32x4.splat(beta1);
  const take1 = f32x4.splat(1 - beta1);
  const keep2 = f32x4.splat(beta2);
  const take2 = f32x4.splat(1 - beta2);
  const scale = f32x4.splat(gradientScale);
  const rate = f32x4.splat(learningRate);
  const small = f32x4.splat(epsilon);
  let left = count;
  for (; left >= 4; left -= 4) {
    const gradient = f32x4.mul(v128.load(gradients), scale);
    const first = f32x4.add(f32x4.mul(keep1, v128.load(firstMoments)), f32x4.mul(take1, gradient));
    const squared = f32x4.mul(gradient, gradient);
    const second = f32x4.add(f32x4.mul(keep2, v128.load(secondMoments)), f32x4.mul(take2, squared));
    const step = f32x4.div(f32x4.mul(rate, first), f32x4.add(f32x4.sqrt(second), small));
    v128.store(firstMoments, first);
    v128.store(secondMoments, second);
    v128.store(parameters, f32x4.sub(v128.load(parameters), step));
    parameters += 16;
    gradients += 16;
    firstMoments += 16;
    secondMoments += 16;
  }
  for (; left > 0; left--) {
    const gradient = load<f32>(gradients) * gradientScale;
    const first = beta1 * load<f32>(firstMoments) + (1 - beta1) * gradient;
    const second = beta2 * load<f32>(secondMoments) + (1 - beta2) * (gradient * gradient);
    store<f32>(firstMoments, first);
    store<f32>(secondMoments, second);
    store<f32>(parameters, load<f32>(parameters) - (learningRate * first) / (sqrt(second) + epsilon));
    parameters += 4;
    gradients += 4;
    firstMoments += 4;
    secondMoments += 4;
  }
}

function tanhInPlace(values: usize, count: i32): void {
  let left = count;
  for (; left >= 4; left -= 4) {
    v128.store(values, tanh4(v128.load(values)));
    values += 16;
  }
  for (; left > 0; left--) {
    store<f32>(values, f32x4.extract_lane(tanh4(v128.load32_splat(values)), 0));
    values += 4;
  }
}

/** tanh |x| = (1 - e) / (1 + e), e = exp(-2 |x|). Off by at most about 1e-7. */
// @ts-ignore: decorator
@inline
function tanh4(x: v128): v128 {
  const one = f32x4.splat(1);
  const e = expOfNegative(f32x4.mul(f32x4.splat(-2), f32x4.abs(x)));
  const size = f32x4.div(f32x4.sub(one, e), f32x4.add(one, e));
  const sign = v128.and(x, i32x4.splat(<i32>0x80000000));
  return v128.or(size, sign);
}

/** exp(x) of x <= 0: 2^n times the Taylor series of the rest, which is at most ln 2 / 2 either way. */
// @ts-ignore: decorator
@inline
function expOfNegative(x: v128): v128 {
  // Below -87 the result is under the least normal float32.
  const bounded = f32x4.max(x, f32x4.splat(-87));
  const n = f32x4.nearest(f32x4.mul(bounded, f32x4.splat(1.44269504)));
  // ln 2 in two parts, of which the first times n is exact.
  const coarse = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.sub(coarse, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let series = f32x4.splat(1.0 / 720);
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(1.0 / 120));
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(1.0 / 24));
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(1.0 / 6));
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(0.5));
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(1));
  series = f32x4.add(f32x4.mul(series, r), f32x4.splat(1));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(series, power);
}
