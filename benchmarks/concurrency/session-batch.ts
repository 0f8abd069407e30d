import { setImmediate as nextTurn } from 'node:timers/promises';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { playSession, type SessionPlan, type SessionPlay } from './session-play.ts';

/** So many sessions are begun before the answers to others are read. */
const BEGUN_AT_ONCE = 32;

export interface BatchPlan extends SessionPlan {
  /** Sockets of the servers; sessions are dealt out in turn. */
  readonly socketUrls: readonly string[];
}

/** Percentiles of a time, ms; `null` when no session succeeded. */
interface Times {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Sessions that were open at the same time. */
export type BatchResult = Awaited<ReturnType<typeof runBatch>>;

/**
 * Plays sessions at once: each connects, resets and steps, and stays open until all have been answered or have failed,
 * so that the servers really hold them all, also while `held` runs. Times count from the start of the session they belong to.
 */
export async function runBatch(plan: BatchPlan, sessions: number, held?: () => Promise<void>) {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const plays = await launch(plan, sessions);
  const launchS = (performance.now() - startedAt) / 1000;
  const outcomes = await Promise.all(plays.map((play) => play.outcome));
  const wallS = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await held?.();
  await Promise.all(plays.map((play) => play.close()));

  const answered = outcomes.filter((outcome) => outcome.failure === null);
  return {
    sessions,
    succeeded: answered.length,
    /** From the first start to the last answer, s. */
    wallS,
    /** From the first start to the last, s. */
    launchS,
    /** Sessions that succeeded, a second of wall time. */
    requestsPerS: answered.length / wallS,
    stepsPerS: (answered.length * plan.steps) / wallS,
    /** From connecting to the last answer. */
    total: times(answered.map((outcome) => outcome.totalMs)),
    connect: times(answered.map((outcome) => outcome.connectMs)),
    reset: times(answered.map((outcome) => outcome.resetMs)),
    step: times(answered.map((outcome) => outcome.stepMs)),
    /** Failed sessions by reason. */
    failures: tally(outcomes.map((outcome) => outcome.failure)),
    /** Answered sessions by server and process, where observations name them. */
    answeredBy: tally(answered.map((outcome) => outcome.answeredBy)),
    /** Share of a core that this process took. Near 1, the load was at its own limit. */
    loadCpu: (user + system) / 1e6 / wallS,
  };
}

async function launch(plan: BatchPlan, sessions: number): Promise<SessionPlay[]> {
  const { socketUrls } = plan;
  const plays: SessionPlay[] = [];
  while (plays.length < sessions) {
    if (plays.length % BEGUN_AT_ONCE === 0) await nextTurn();
    plays.push(playSession(socketUrls[plays.length % socketUrls.length], plan));
  }
  return plays;
}

function times(values: readonly number[]): Times | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return {
    p50: percentileOfSorted(sorted, 50),
    p99: percentileOfSorted(sorted, 99),
    max: sorted.at(-1)!,
  };
}

/** Number of occurrences of each text, the most frequent first. */
function tally(texts: readonly (string | null)[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}
