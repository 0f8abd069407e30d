import { setTimeout as sleep } from 'node:timers/promises';
import { msFromTicks, TICKS_PER_S } from '@servegym/simulator';
import type { EpisodeRequests } from '../episode-requests.ts';
import type { ServeTask } from '../serve-task.ts';
import { promptText, type RealAnswer, type RealClient } from './real-client.ts';
import type { RealFailure } from './real-failure.ts';
import type { RealSettings } from './real-settings.ts';
import type { AppliedAction } from './server-controls.ts';

/** A request that was sent, or waited in vain for its turn. Times in ms of the task's time. */
export interface SentRequest {
  /** Index into `REQUEST_CLASSES`. */
  readonly kind: number;
  readonly promptTokensWanted: number;
  readonly outputTokensWanted: number;
  /** From arrival to the first token, the wait for its turn included; `null` when none came. */
  readonly ttftMs: number | null;
  /** `null` for a request of one token. */
  readonly tpotMs: number | null;
  /** Between tokens. */
  readonly itlMs: readonly number[];
  readonly answer: RealAnswer;
}

/** A window that was played at a real server. */
export interface PlayedWindow {
  /** Requests that the task has in this window. */
  readonly arrivals: number;
  readonly requests: readonly SentRequest[];
  /** At the end of the window: held back by the client, and in flight. */
  readonly heldBack: number;
  readonly inFlight: number;
  /** Until the last request had ended; at least the length of the window, s of the task's time. */
  readonly elapsedSeconds: number;
}

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
): Promise<PlayedWindow> {
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

  const play = async (id: number): Promise<SentRequest> => {
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
        ? notSent(signal.aborted ? ABORTED : expired(settings))
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
        kind,
        promptTokensWanted,
        outputTokensWanted,
        ttftMs: answer.ttftMs === null ? null : (waitedMs + answer.ttftMs) * timeScale,
        tpotMs: gaps > 0 ? (answer.decodeMs / gaps) * timeScale : null,
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
    arrivals: requests.windowStarts[window + 1] - requests.windowStarts[window],
    requests: played,
    heldBack,
    inFlight,
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

const ABORTED: RealFailure = { outcome: 'aborted', status: null, sentence: '' };

function expired({ timeoutSeconds }: RealSettings): RealFailure {
  const sentence = `No end of the answer within ${timeoutSeconds} s after the window`;
  return { outcome: 'timeout', status: null, sentence };
}

function notSent(failure: RealFailure): RealAnswer {
  return {
    failure,
    ttftMs: null,
    decodeMs: 0,
    gapsMs: [],
    promptTokens: 0,
    completionTokens: 0,
    retries: 0,
  };
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
