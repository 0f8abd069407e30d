// Stands in pages for the modules of Node that code uses which also runs there.

export const serialize = <Value>(value: Value): Value => value;
export const deserialize = serialize;
export const basename = (path: string): string => path.replace(/^.*[\\/]/, '');
export const isDeepStrictEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
export const endianness = (): string => (new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 'LE' : 'BE');

/** Reads a file that stands beside the modules. Only in a worker, where waiting for it holds nobody up. */
export function readFileSync(url: URL, encoding?: 'utf8'): string | Uint8Array {
  const request = new XMLHttpRequest();
  request.open('GET', url, false);
  request.responseType = encoding === undefined ? 'arraybuffer' : 'text';
  request.send();
  if (request.status !== 200) throw new Error(`Expected ${url}, got status ${request.status}`);
  return encoding === undefined ? new Uint8Array(request.response) : request.response;
}

/** SHA-256 (FIPS 180-4), the only hash that is asked for. */
export function createHash() {
  const parts: Uint8Array[] = [];
  const hash = {
    update(data: string | ArrayBufferView) {
      parts.push(
        typeof data === 'string'
          ? new TextEncoder().encode(data)
          : new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice(),
      );
      return hash;
    },
    /** As hexadecimal digits. */
    digest: () => sha256(parts),
  };
  return hash;
}

/** First 32 bits of the fractional parts of a root of the first primes. */
function primeBits(count: number, root: (prime: number) => number): Uint32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return Uint32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32);
}

function sha256(parts: readonly Uint8Array[]): string {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const padded = new Uint8Array(64 * Math.ceil((length + 9) / 64));
  let at = 0;
  for (const part of parts) {
    padded.set(part, at);
    at += part.length;
  }
  padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(length) * 8n);
  const round = primeBits(64, Math.cbrt);
  const state = primeBits(8, Math.sqrt);
  const words = new Int32Array(64);
  const turned = (x: number, by: number) => (x >>> by) | (x << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const [x, y] = [words[i - 15]!, words[i - 2]!];
      const low = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const high = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      words[i] = words[i - 16]! + low + words[i - 7]! + high;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [
      ...[number, number, number, number],
      ...[number, number, number, number],
    ];
    for (let i = 0; i < 64; i++) {
      const upper = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const one = (h + upper + ((e & f) ^ (~e & g)) + round[i]! + words[i]!) | 0;
      const lower = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const two = (lower + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i]! += value;
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('');
}
