import { RandomStream } from '@servegym/simulator';
import type { RateCurve } from './request-stream.ts';

const DAY_S = 86_400;

interface Surge {
  readonly begin: number;
  readonly end: number;
  readonly ramp: number;
  /** Rate at its height over the rate without it, less 1. */
  readonly added: number;
}

/** Draws the rate of an episode: arrivals a second in each second after the hour at which it begins. */
export function drawRate(
  { perSecond, peakToTrough, peakHour = 14, surges = [] }: RateCurve,
  seed: number,
  name: string,
  seconds: number,
  startHour: number,
): (second: number) => number {
  const swing = (peakToTrough - 1) / (peakToTrough + 1);
  const drawn = surges.flatMap((kind, at) => {
    const draws = new RandomStream(seed, `${name} surges ${at}`);
    const list: Surge[] = [];
    // One that began before the episode may still last.
    let begin = -kind.seconds[1] + draws.exponential(kind.everySeconds);
    while (begin < seconds) {
      const [shortest, longest] = kind.seconds;
      const [least, most] = kind.factor;
      const end = begin + shortest + (longest - shortest) * draws.uniform();
      list.push({
        ...{ begin, end, ramp: kind.rampSeconds },
        added: least + (most - least) * draws.uniform() - 1,
      });
      begin += draws.exponential(kind.everySeconds);
    }
    return list;
  });
  return (second) => {
    const daily = Math.cos((2 * Math.PI * (startHour * 3600 + second - peakHour * 3600)) / DAY_S);
    let factor = 1;
    for (const { begin, end, ramp, added } of drawn) {
      if (second < begin || second >= end) continue;
      factor += added * Math.min(1, (second - begin) / ramp, (end - second) / ramp);
    }
    return perSecond * (1 + swing * daily) * factor;
  };
}
