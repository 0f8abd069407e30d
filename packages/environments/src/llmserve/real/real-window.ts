import { percentileOfSorted } from '@servegym/simulator/statistics';
import { REQUEST_CLASSES } from '../../tasks.ts';
import type { ServeTask } from '../serve-task.ts';
import type { PlayedWindow, SentRequest } from './play-window.ts';
import type { RealFailure } from './real-failure.ts';
import type { RealSettings } from './real-settings.ts';
import type { AppliedAction, VllmReading } from './server-controls.ts';

/** Figures of a window at a real server. */
export type RealWindowFigures = ReturnType<typeof windowFigures>;

interface WindowReadings {
  readonly before: VllmReading | null;
  readonly after: VllmReading | null;
}

export function windowFigures(
  played: PlayedWindow,
  task: ServeTask,
  settings: RealSettings,
  applied: AppliedAction,
  { before, after }: WindowReadings,
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
