import { findServeTask, type ServeScenario } from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import { type PlayedTask, playTask } from '../core/evaluation/evaluate-policy.ts';
import { evaluatedServe } from './evaluated-serve.ts';
import { addSharedTask, addSharedTrace, findSharedPolicy, type SharedPolicy } from './shared-inputs.ts';
import { policyUnderScenario, underScenario } from './under-scenario.ts';

/** Episodes of one task for a thread or another machine. */
export interface PlayEpisodesInput {
  readonly agent: SharedPolicy;
  readonly taskId: string;
  readonly seeds: readonly number[];
  readonly scenario: ServeScenario;
  /** A trace of one's own that the scenario names: the name of its shared bytes. */
  readonly trace?: string;
  /** A task of one's own that `taskId` names: the name of its shared bytes. */
  readonly ownTask?: string;
}

/** The job `play-episodes`: plays and grades a policy on `llmserve`. Answers a `PlayedTask`. */
export async function runJob(input: Json, context: JobContext): Promise<Json> {
  const { agent, taskId, seeds, scenario, trace, ownTask } = input as unknown as PlayEpisodesInput;
  addSharedTrace(scenario, trace, context);
  addSharedTask(ownTask, context);
  const policy = findSharedPolicy(agent, context);
  const environment = underScenario(evaluatedServe, scenario);
  const everyTenth = reportTenths(seeds.length * findServeTask(taskId)!.windows, context);
  const played: PlayedTask = await playTask(
    {
      ...environment,
      meter: (task) => {
        const meter = environment.meter(task);
        const see: typeof meter.see = (window) => {
          meter.see(window);
          everyTenth();
        };
        return { see, figures: meter.figures };
      },
    },
    policyUnderScenario(policy, scenario),
    taskId,
    seeds,
  );
  return played as unknown as Json;
}

/** Reports each tenth of so many windows; to be called after each of them. */
function reportTenths(windows: number, context: JobContext): () => void {
  let played = 0;
  let tenths = 0;
  return () => {
    played += 1;
    const now = Math.floor((10 * played) / windows);
    if (now === tenths) return;
    tenths = now;
    context.report(played / windows);
  };
}
