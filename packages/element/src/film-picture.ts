import { percent } from './line-chart.ts';
import type { LoadFilm } from './load-curve.ts';

const [WIDTH, HEIGHT] = [720, 150];
/** Where each part of a request's way begins, and where it ends. */
const WAY = { queue: 10, prefill: 170, decode: 310, done: 640, end: 712 } as const;
const LANES = 12;
/** Time that a film takes on the screen, s, whatever it takes on the server. */
const SHOWN_S = 20;
/** Share of the film in which an answered request leaves. */
const LEAVING = 0.015;

/** A film as SVG that moves by itself, over and over. */
export function filmPicture({ ms, requests, kv }: LoadFilm, rate: string): string {
  const animation = (name: string, points: readonly (readonly [time: number, value: number | string])[]) =>
    `<animate attributeName="${name}" dur="${SHOWN_S}s" repeatCount="indefinite" keyTimes="${points.map(([time]) => time.toFixed(4)).join(';')}" values="${points.map(([, value]) => value).join(';')}"/>`;
  const dots = requests.map((request, i) => {
    const [arrival, begin, first, last] = request.map((at) => at / ms) as [number, number, number, number];
    const way = [
      [arrival, WAY.queue],
      [begin, WAY.prefill],
      [first, WAY.decode],
      [last, WAY.done],
      [last + LEAVING, WAY.end],
    ] as const;
    const place = (time: number) => {
      const next = way.findIndex(([at]) => at > time);
      if (next <= 0) return next === 0 ? WAY.queue : WAY.end;
      const [[from, x], [to, toX]] = [way[next - 1]!, way[next]!];
      return x + ((toX - x) * (time - from)) / (to - from);
    };
    const inside = way.map(([at]) => at).filter((at) => at > 0 && at < 1);
    const times = [0, ...new Set(inside), 1];
    const [shown, gone] = [Math.max(0, arrival), Math.min(1, last + LEAVING)];
    const seen: [number, number][] = [[0, arrival > 0 ? 0 : 1]];
    if (arrival > 0) seen.push([shown, 1]);
    if (gone < 1) seen.push([gone, 0]);
    seen.push([1, seen.at(-1)![1]]);
    return `<circle r="3.4" cx="${WAY.queue}" cy="${34 + 7.2 * (i % LANES)}" opacity="0">${animation(
      'cx',
      times.map((time) => [time, place(time).toFixed(1)]),
    )}${animation('opacity', seen).replace('<animate', '<animate calcMode="discrete"')}</circle>`;
  });
  const parts = [
    ['Queue', WAY.queue, WAY.prefill],
    ['Prefill', WAY.prefill, WAY.decode],
    ['Decode', WAY.decode, WAY.done],
    ['Done', WAY.done, WIDTH],
  ] as const;
  const heads = parts.map(
    ([name, from, to]) =>
      `<text class="title" x="${from}" y="14">${name}</text><path class="grid" d="M${to - 5} 4V122"/>`,
  );
  const room = WIDTH - 250;
  const level = animation(
    'width',
    kv.map((share, i) => [i / (kv.length - 1), (room * share).toFixed(1)]),
  );
  const mean = percent(kv.reduce((sum, share) => sum + share, 0) / kv.length);
  const slower = SHOWN_S / (ms / 1000);
  const speed =
    slower >= 1
      ? `${Number(slower.toPrecision(2))} times slower`
      : `${Number((1 / slower).toPrecision(2))} times faster`;
  return `<svg class="curve film" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Requests on their way from the queue through prefill and decode at ${rate} requests/s, ${speed} than on the server. KV cache in use: ${mean} on average.">
${heads.join('')}${dots.join('')}<text x="10" y="141">KV cache</text><text x="${WIDTH - 8}" y="141" text-anchor="end">${speed}</text><rect class="room" x="80" y="131" width="${room}" height="12" rx="3"/><rect class="level" x="80" y="131" width="0" height="12" rx="3">${level}</rect></svg>`;
}
