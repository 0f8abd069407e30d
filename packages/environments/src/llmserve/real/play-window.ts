import { setTimeout as sleep } from 'node:timers/promises';
import { msFromTicks, TICKS_PER_S } from '@servegym/simulator';
import { percentileOfSorted } from '@servegym/simulator/statistics';
import { REQUEST_CLASSES } from '../../tasks.ts';
import type { EpisodeRequests } from '../episode-requests.ts';
import type { ServeTask } from '../serve-task.ts';
import { failed, promptText, type RealAnswer, type RealClient, type RealFailure } from './real-client.ts';
import type { RealSettings } from './real-settings.ts';
import type { AppliedAction, VllmReading } from './server-controls.ts';

/** A window that was played at a real server. */
export type PlayedWindow = Awaited<ReturnType<typeof playWindow>>;

/** A request that was sent, or waited in vain for its turn. Times in ms of the task's time. */
type SentRequest = PlayedWindow['requests'][number];

interface WindowPlan {
  readonly task: ServeTask;
  readonly requests: EpisodeRequests;
  readonly seed: number;
  readonly window: number;
  readonly applied: AppliedAction;
  readonly model: string;
  /** Called at the end of the window, before the last requests have ended. */
  readonly onWindowEnd: () => Promise<void>;
}

/**
 * Sends the requests of a window when they arrive and waits until all have ended. Each ends within the time that a
 * request may take after the window, so that none is left running.
 */
export async function playWindow(
  client: RealClient,
  settings: RealSettings,
  plan: WindowPlan,
  signal: AbortSignal,
) {
  const { task, requests, window, applied } = plan;
  const { timeScale } = settings;
  const ids = selectEvenly(
    requests.windowStarts[window],
    requests.windowStarts[window + 1],
    settings.maxRequestsPerStep,
  );
  const gate = new RequestGate(applied.concurrency ?? Number.POSITIVE_INFINITY);
  const windowMs = (task.windowSeconds * 1000) / timeScale;
  const deadline = AbortSignal.timeout(Math.ceil(windowMs + settings.timeoutSeconds * 1000));
  const stop = AbortSignal.any([signal, deadline]);
  const startMs = performance.now();
  let endedMs = startMs;

  const play = async (id: number) => {
    const offsetMs = msFromTicks(requests.arrivalTicks[id] - window * task.windowSeconds * TICKS_PER_S);
    const dueMs = startMs + offsetMs / timeScale;
    const kind = requests.classes[id];
    const promptTokensWanted = Math.min(requests.inputTokens[id], settings.maxPromptTokens);
    const outputTokensWanted = Math.min(requests.outputTokens[id], settings.maxCompletionTokens);
    await pause(dueMs - performance.now(), signal);
    // The timer's lateness is the client's own: it does not count as a wait.
    const readyMs = performance.now();
    await gate.enter(applied.sendsPriority ? kind : 0);
    const waitedMs = performance.now() - readyMs;
    try {
      const answer = stop.aborted
        ? notSent(signal.aborted ? failed('aborted') : expired(settings))
        : await client.complete(
            {
              prompt: promptText(plan.seed, id, promptTokensWanted),
              outputTokens: outputTokensWanted,
              priority: applied.sendsPriority ? kind : null,
            },
            plan.model,
            stop,
          );
      // The deadline of the window is a timeout to the request.
      const isExpired = answer.failure?.outcome === 'aborted' && !signal.aborted;
      const gaps = answer.completionTokens - 1;
      // A piece of a stream may hold several tokens.
      const piecesPerToken = gaps > 0 ? answer.gapsMs.length / gaps : 1;
      return {
        /** Index into `REQUEST_CLASSES`. */
        kind,
        promptTokensWanted,
        outputTokensWanted,
        /** From arrival to the first token, the wait for its turn included; `null` when none came. */
        ttftMs: answer.ttftMs === null ? null : (waitedMs + answer.ttftMs) * timeScale,
        /** `null` for a request of one token. */
        tpotMs: gaps > 0 ? (answer.decodeMs / gaps) * timeScale : null,
        /** Between tokens. */
        itlMs: answer.gapsMs.map((gapMs) => gapMs * piecesPerToken * timeScale),
        answer: isExpired ? { ...answer, failure: expired(settings) } : answer,
      };
    } finally {
      endedMs = performance.now();
      gate.leave();
    }
  };

  const sent = Promise.all(ids.map(play));
  let heldBack = 0;
  let inFlight = 0;
  const end = pause(startMs + windowMs - performance.now(), signal).then(async () => {
    heldBack = gate.waitingCount;
    inFlight = gate.insideCount;
    await plan.onWindowEnd();
  });
  const [played] = await Promise.all([sent, end]);
  const elapsedMs = Math.max(windowMs, endedMs - startMs);
  return {
    /** Requests that the task has in this window. */
    arrivals: requests.windowStarts[window + 1] - requests.windowStarts[window],
    requests: played,
    /** At the end of the window: held back by the client, and in flight. */
    heldBack,
    inFlight,
    /** Until the last request had ended; at least the length of the window, s of the task's time. */
    elapsedSeconds: (elapsedMs * timeScale) / 1000,
  };
}

/** At most `most` of the whole numbers from `start` to `end` - 1, evenly spread. */
function selectEvenly(start: number, end: number, most: number): number[] {
  const count = Math.min(most, end - start);
  return Array.from({ length: count }, (_, i) => start + Math.floor((i * (end - start)) / count));
}

/** Waits, but not beyond an abort. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  await sleep(ms, undefined, { signal }).catch(() => {});
}

function expired({ timeoutSeconds }: RealSettings): RealFailure {
  return failed('timeout', `No end of the answer within ${timeoutSeconds} s after the window`);
}

function notSent(failure: RealFailure): RealAnswer {
  const nothing = { decodeMs: 0, gapsMs: [], promptTokens: 0, completionTokens: 0, retries: 0 };
  return { failure, ttftMs: null, ...nothing };
}

/** Lets so many through at once; who waits goes in order of urgency, then of arrival. */
export class RequestGate {
  readonly #limit: number;
  readonly #waiting: { readonly urgency: number; readonly enter: () => void }[] = [];
  #inside = 0;

  /** @param limit `Infinity` lets everybody through */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }
  get insideCount(): number {
    return this.#inside;
  }

  /** Resolves when there is room. @param urgency the lowest goes first */
  async enter(urgency: number): Promise<void> {
    if (this.#inside < this.#limit) {
      this.#inside++;
      return;
    }
    await new Promise<void>((enter) => {
      const at = this.#waiting.findIndex((other) => other.urgency > urgency);
      this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, { urgency, enter });
    });
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside--;
    else next.enter();
  }
}

/** Figures of a window at a real server. */
export type RealWindowFigures = ReturnType<typeof windowFigures>;

export function windowFigures(
  played: PlayedWindow,
  task: ServeTask,
  settings: RealSettings,
  applied: AppliedAction,
  { before, after }: { readonly before: VllmReading | null; readonly after: VllmReading | null },
) {
  const { requests } = played;
  const failures: Record<string, number> = {};
  const firstFailures: RealFailure[] = [];
  for (const { failure } of requests.map(({ answer }) => answer)) {
    if (failure === null) continue;
    if (failures[failure.outcome] === undefined) firstFailures.push(failure);
    failures[failure.outcome] = (failures[failure.outcome] ?? 0) + 1;
  }
  const sum = (value: (request: SentRequest) => number) =>
    requests.reduce((total, request) => total + value(request), 0);
  const promptTokens = sum(({ answer }) => answer.promptTokens);
  const completionTokens = sum(({ answer }) => answer.completionTokens);
  const attained = (request: SentRequest) => meetsObjectives(request, task);
  const weight = ({ kind }: SentRequest) => task.objectives[REQUEST_CLASSES[kind]].weight;
  const weights = sum(weight);
  const drafts = before && after ? after.draftTokens - before.draftTokens : 0;
  return {
    classes: REQUEST_CLASSES.map((_, kind) => {
      const own = requests.filter((request) => request.kind === kind);
      return {
        sent: own.length,
        completed: own.filter(({ answer }) => answer.failure === null).length,
        attained: own.filter(attained).length,
        ttftMs: ascending(own.map(({ ttftMs }) => ttftMs)),
        tpotMs: ascending(own.map(({ tpotMs }) => tpotMs)),
      };
    }),
    completed: requests.filter(({ answer }) => answer.failure === null).length,
    /** Requests that did not complete, by outcome, and the first of each. */
    failures,
    firstFailures,
    retries: sum(({ answer }) => answer.retries),
    promptTokens,
    completionTokens,
    /** Tokens that the requests that failed still owed. */
    owedTokens: sum(({ answer, outputTokensWanted }) =>
      answer.failure === null ? 0 : Math.max(0, outputTokensWanted - answer.completionTokens),
    ),
    /** Ascending, ms. */
    ttftMs: ascending(requests.map(({ ttftMs }) => ttftMs)),
    itlMs: ascending(requests.flatMap(({ itlMs }) => itlMs)),
    meanPromptTokens:
      requests.length === 0
        ? 0
        : sum(({ answer, promptTokensWanted }) => answer.promptTokens || promptTokensWanted) /
          requests.length,
    throughputTps: completionTokens / played.elapsedSeconds,
    /** Share of the requests inside their objectives, those that failed included; 1 when none was sent. */
    sloCompliance: requests.length === 0 ? 1 : requests.filter(attained).length / requests.length,
    weightedSloAttainment:
      weights === 0 ? 1 : sum((request) => (attained(request) ? weight(request) : 0)) / weights,
    /** USD; `null` when no price is known. */
    cost: costOf(promptTokens, completionTokens, task, settings, applied),
    /** Since the window began; `null` when the server does not tell. */
    preemptions: before && after ? after.preemptions - before.preemptions : null,
    draftAcceptance:
      before && after
        ? drafts === 0
          ? 0
          : Math.min(1, (after.acceptedTokens - before.acceptedTokens) / drafts)
        : null,
  };
}

/** 0 when there are none. */
export function percentile(sorted: readonly number[], q: number): number {
  return sorted.length === 0 ? 0 : percentileOfSorted(Float64Array.from(sorted), q);
}

function meetsObjectives({ kind, answer, ttftMs, tpotMs }: SentRequest, task: ServeTask): boolean {
  const objective = task.objectives[REQUEST_CLASSES[kind]];
  return (
    answer.failure === null &&
    ttftMs !== null &&
    ttftMs <= objective.ttftMs &&
    (tpotMs ?? 0) <= objective.tpotMs
  );
}

/** By the prices of tokens, else by those of the GPUs where the server tells them. */
function costOf(
  promptTokens: number,
  completionTokens: number,
  task: ServeTask,
  { inputUsdPerMillion, outputUsdPerMillion }: RealSettings,
  { endpoint }: AppliedAction,
): number | null {
  if (inputUsdPerMillion !== null && outputUsdPerMillion !== null) {
    return (promptTokens * inputUsdPerMillion + completionTokens * outputUsdPerMillion) / 1e6;
  }
  return endpoint === null ? null : (endpoint.usd_per_hour * task.windowSeconds) / 3600;
}

function ascending(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null).sort((a, b) => a - b);
}
