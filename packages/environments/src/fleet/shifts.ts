import { type EngineProfile, kvPoolBlocks } from '@servegym/simulator';
import { relatedProfile } from '../scenario.ts';
import type { FleetTask, RequestStream, Surges } from './fleet-task.ts';

/** Names of the changes of a task that test how policies generalise. */
export const FLEET_SHIFTS = [
  'rate_1.3',
  'burstier',
  'long_prompts',
  'slow_cold_start',
  'failures',
  'other_gpu',
] as const;
export type FleetShift = (typeof FLEET_SHIFTS)[number];

/** Arrivals of `rate_1.3` come this many times as fast. */
const FASTER = 1.3;
/** Prompts of `long_prompts`, and what later turns add, are this many times as long. */
const LONGER = 1.5;
/** Surges of `burstier` come this many times as often and add this many times as much. */
const BURSTIER = 1.5;
/** Surges of `burstier` for interactive streams without any. */
const SURGES: readonly Surges[] = [
  { everySeconds: 1200, factor: [1.5, 3], seconds: [30, 300], rampSeconds: 10 },
];
/** Cold starts of `slow_cold_start` take this many times as long. */
const SLOWER = 2;
/** Failures of a replica an hour under `failures`. */
const FAILURES_PER_HOUR = 0.5;

/** The same task, shifted: knobs, objectives, prices and default settings stay. @throws RangeError when no profile fits */
export function shiftFleetTask(task: FleetTask, shift: FleetShift): FleetTask {
  if (task.trace !== undefined && ['burstier', 'long_prompts'].includes(shift)) {
    throw new RangeError(`Expected another shift for a trace than \`${shift}\`, which changes what is drawn`);
  }
  switch (shift) {
    case 'rate_1.3':
      return scaleFleetArrivals(task, FASTER);
    case 'burstier':
      return { ...task, streams: task.streams.map(burstier) };
    case 'long_prompts':
      return {
        ...task,
        streams: task.streams.map((stream) => ({
          ...stream,
          promptScale: (stream.promptScale ?? 1) * LONGER,
        })),
      };
    case 'slow_cold_start': {
      const { second } = task;
      const slower = ([least, most]: readonly [number, number]) => [SLOWER * least, SLOWER * most] as const;
      return {
        ...task,
        coldStartSeconds: slower(task.coldStartSeconds),
        ...(second && { second: { ...second, coldStartSeconds: slower(second.coldStartSeconds) } }),
      };
    }
    case 'failures':
      return { ...task, failuresPerHour: task.failuresPerHour + FAILURES_PER_HOUR };
    case 'other_gpu': {
      const fits = (profile: EngineProfile) => fleetProfileFits(profile, task);
      return { ...task, profile: relatedProfile(task.profile, 'gpu', task.id, fits).name };
    }
  }
}

/** The same task with arrivals `factor` times as fast. */
export function scaleFleetArrivals(task: FleetTask, factor: number): FleetTask {
  const { trace } = task;
  if (trace !== undefined) {
    return { ...task, trace: { ...trace, rateScale: trace.rateScale * factor } };
  }
  const streams = task.streams.map((stream) => ({
    ...stream,
    rate: { ...stream.rate, perSecond: stream.rate.perSecond * factor },
  }));
  return { ...task, streams };
}

/** True when a replica of this profile holds the KV of the longest prompt that a task foresees. */
export function fleetProfileFits(profile: EngineProfile, task: Pick<FleetTask, 'streams'>): boolean {
  if (profile.weights.FP16 === undefined) return false;
  const { blockTokens } = profile.memory;
  return kvPoolBlocks(profile, 'FP16', false, 1) * blockTokens >= longestRequest(task);
}

/** Tokens of the longest request that the streams of a task foresee; those of fitted lengths are short. */
function longestRequest({ streams }: Pick<FleetTask, 'streams'>): number {
  const longest = streams.map(({ lengths, turns, promptScale = 1 }) => {
    if (typeof lengths === 'string') return 0;
    return Math.max(promptScale * lengths.prompt.max, turns?.maxPrompt ?? 0) + lengths.output.max;
  });
  return Math.max(...longest);
}

function burstier(stream: RequestStream): RequestStream {
  const { surges = stream.class === 'interactive' ? SURGES : [] } = stream.rate;
  const more = surges === SURGES ? surges : surges.map(moreOften);
  return { ...stream, rate: { ...stream.rate, surges: more } };
}

function moreOften({ everySeconds, factor: [least, most], ...rest }: Surges): Surges {
  return {
    ...rest,
    everySeconds: everySeconds / BURSTIER,
    factor: [1 + BURSTIER * (least - 1), 1 + BURSTIER * (most - 1)],
  };
}
