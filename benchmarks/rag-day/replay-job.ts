import type { Trace } from '@servegym/simulator';
import { partOfDay, readDay } from './day.ts';
import { type Deployment, Engines, replay, type Score } from './replay.ts';

/** A replay of a deployment on the whole day, or on so many minutes of each hour. */
export interface ReplayJob {
  readonly data: string;
  readonly tables: string;
  readonly kernelsAlone: boolean;
  readonly copies: number;
  readonly seed: number;
  /** 60 is the whole day. */
  readonly minutes: number;
  readonly deployment: Deployment;
}

export type ReplayResult = Pick<Score, 'goodputPerGpu' | 'coverage' | 'averageGpus'> & {
  readonly cpuS: number;
};

/** What the jobs of a thread share. */
const days = new Map<string, Promise<Trace>>();
const parts = new Map<string, ReturnType<typeof partOfDay>>();
const engines = new Map<string, Engines>();

/** A deployment whose weights do not fit scores 0. Queues grow on from hour to hour; behind routers that was not tried. */
export async function runJob(job: ReplayJob): Promise<ReplayResult & { readonly [key: string]: number }> {
  const { data, tables, kernelsAlone, copies, seed, minutes, deployment } = job;
  const dayKey = JSON.stringify([data, copies, seed]);
  const reading = days.get(dayKey) ?? readDay(data, copies, seed).then(({ day }) => day);
  days.set(dayKey, reading);
  const day = await reading;
  const gap = deployment.router === undefined ? 0 : 1;
  const key = JSON.stringify([dayKey, minutes, gap]);
  const { part, seconds } =
    parts.get(key) ?? (minutes === 60 ? { part: day, seconds: 86_400 } : partOfDay(day, minutes, seed, gap));
  parts.set(key, { part, seconds });
  const enginesKey = `${tables} ${kernelsAlone}`;
  const known = engines.get(enginesKey) ?? new Engines(tables, kernelsAlone);
  engines.set(enginesKey, known);
  await known.load(deployment);
  const start = process.threadCpuUsage();
  const { goodputPerGpu, coverage, averageGpus } = await replay(part, deployment, known, seconds);
  const { user, system } = process.threadCpuUsage(start);
  return { goodputPerGpu, coverage, averageGpus, cpuS: (user + system) / 1e6 };
}
