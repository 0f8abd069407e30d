import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLORS = 256;
/** Colours closer than this (squared distance in RGB) share an entry of the palette. */
const SAME_COLOR = 40;

/** Makes an 8-bit RGB PNG, as browsers take screenshots, about a third the size: 256 colours, the frequent ones kept exact. */
export function indexedPng(png: Buffer): Buffer {
  const { width, height, pixels } = decodeRgb(png);
  const palette = commonColors(pixels);
  const entryOf = new Map<number, number>();
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0, from = 0; y < height; y++) {
    for (let x = 0; x < width; x++, from += 3) {
      const color = pixels.readUIntBE(from, 3);
      let entry = entryOf.get(color);
      if (entry === undefined) {
        entry = nearest(palette, color);
        entryOf.set(color, entry);
      }
      rows[y * (width + 1) + 1 + x] = entry;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.alloc(palette.length * 3);
  palette.forEach((color, i) => {
    colors.writeUIntBE(color, i * 3, 3);
  });
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', colors),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function decodeRgb(png: Buffer): { width: number; height: number; pixels: Buffer } {
  const data: Buffer[] = [];
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + length));
  }
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const [depth, colorType] = png.subarray(24, 26);
  if (depth !== 8 || colorType !== 2)
    throw new Error(`Expected an 8-bit RGB PNG, got depth ${depth}, type ${colorType}`);
  const raw = inflateSync(Buffer.concat(data));
  const stride = width * 3;
  const pixels = Buffer.alloc(height * stride);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x >= 3 ? pixels[at - 3] : 0;
      const up = y > 0 ? pixels[at - stride] : 0;
      const corner = x >= 3 && y > 0 ? pixels[at - stride - 3] : 0;
      pixels[at] = raw[y * (stride + 1) + 1 + x] + predict(filter, left, up, corner);
    }
  }
  return { width, height, pixels };
}

/** The five filters of the PNG specification. */
function predict(filter: number, left: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  const [toLeft, toUp, toCorner] = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

/** The most frequent colours that are not nearly the same. */
function commonColors(pixels: Buffer): number[] {
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 3) {
    const color = pixels.readUIntBE(at, 3);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const chosen: number[] = [];
  for (const [color] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (chosen.length === COLORS) break;
    if (chosen.every((other) => distance(color, other) > SAME_COLOR)) chosen.push(color);
  }
  return chosen;
}

function nearest(palette: readonly number[], color: number): number {
  let best = 0;
  for (let i = 1; i < palette.length; i++) {
    if (distance(palette[i], color) < distance(palette[best], color)) best = i;
  }
  return best;
}

function distance(a: number, b: number): number {
  const red = (a >> 16) - (b >> 16);
  const green = ((a >> 8) & 255) - ((b >> 8) & 255);
  const blue = (a & 255) - (b & 255);
  return red * red + green * green + blue * blue;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(body.length + 8);
  frame.writeUInt32BE(data.length, 0);
  body.copy(frame, 4);
  frame.writeUInt32BE(crc32(body), body.length + 4);
  return frame;
}
