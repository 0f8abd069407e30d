import {
  evaluatedServe,
  type PlayedTask,
  playTask,
  policyUnderScenario,
  underScenario,
} from '@servegym/agents';
import type { ServeScenario } from '@servegym/environments';
import type { JobContext, Json } from '@servegym/jobs';
import { type JobAgent, policyOfAgent } from '../jobs/job-agent.ts';
import { addSharedTask } from '../jobs/job-task.ts';
import { addSharedTrace } from '../jobs/job-trace.ts';

/** Episodes of one task for a thread or another machine. */
export interface PlayEpisodesInput {
  readonly agent: JobAgent;
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
  const policy = policyOfAgent(agent, context);
  let finished = 0;
  const played: PlayedTask = await playTask(
    underScenario(evaluatedServe, scenario),
    policyUnderScenario(policy, scenario),
    taskId,
    seeds,
    () => {
      finished += 1;
      context.report(finished / seeds.length);
    },
  );
  return played as unknown as Json;
}
