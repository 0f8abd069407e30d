import { type Caller, HttpProblem, jsonValue, type OpenEnvServer, toJsonSchema } from '@servegym/openenv';
import type { Context } from 'hono';
import { z } from 'zod';
import type { BaselineRequest, BaselineResult, BaselineSuite } from './baseline-suite.ts';

/** Plays a language model in the place of a deterministic agent. */
export interface ModelBaseline {
  /** Name of the model. */
  readonly agent: string;
  /** @throws HttpProblem when there is no key, or the model does not answer */
  play(request: BaselineRequest, caller: Caller): Promise<ModelBaselineRun>;
}

export interface ModelBaselineRun {
  readonly results: BaselineResult[];
  /** Calls, tokens and cost, and what became of the answers. */
  readonly usage: Readonly<Record<string, unknown>>;
}

export interface BaselineRoutes {
  readonly suite: BaselineSuite;
  /** Plays where a `POST` says `use_openai`. */
  readonly model?: ModelBaseline;
}

/** Query parameters are texts. */
const flag = z.preprocess(
  (sent) => (sent === 'true' || sent === '1' ? true : sent === 'false' || sent === '0' ? false : sent),
  z.boolean(),
);
const number = z.preprocess(
  (sent) => (typeof sent === 'string' && /^\d+$/.test(sent) ? Number(sent) : sent),
  z.int().min(0),
);

const baselineRequest = z
  .strictObject({
    task_id: z
      .union([z.string(), z.int()])
      .nullish()
      .meta({ description: 'One task; without it, all of them' }),
    agent: z.string().nullish().meta({ description: 'Which baseline; without it, the first of `agents`' }),
    seed: number.nullish().meta({ description: 'Seed of the episodes' }),
    use_openai: flag
      .nullish()
      .meta({ description: 'Play a language model instead. POST only. Needs OPENAI_API_KEY' }),
  })
  .meta({ title: 'BaselineRequest', examples: [{}, { task_id: 1 }] });

const jsonObject = jsonValue<object>({ type: 'object' });
const result = z.object({
  task_id: z.union([z.string(), z.number()]),
  name: z.string(),
  difficulty: z.string(),
  score: z.number().gt(0).lt(1),
  breakdown: jsonObject,
  feedback: z.string(),
  configuration: z.union([jsonObject, z.null()]),
  steps: z.int(),
  total_reward: z.number(),
  expected_range: z.array(z.number()).optional(),
});
const baselineAnswer = z
  .looseObject({
    environment: z.string(),
    version: z.string(),
    agent: z.string(),
    mode: z.enum(['deterministic', 'openai']),
    agents: z.array(z.string()),
    seed: z.int(),
    tasks: z.array(result),
    scores: jsonObject,
    mean_score: z.number(),
    usage: jsonObject
      .optional()
      .meta({ description: 'Of a language model: calls, tokens, cost and answers' }),
  })
  .meta({ patternProperties: { '^task\\d+$': toJsonSchema(result, 'answer') } });
const errors = {
  404: 'Unknown task (`UNKNOWN_TASK`) or agent (`UNKNOWN_AGENT`)',
  409: 'The model is playing a baseline already (`MODEL_BUSY`)',
  422: 'Invalid parameters',
  429: 'The client has too many long requests under way (`WORK_QUEUE_FULL`)',
  501: 'The server plays no language model (`NO_MODEL`), or knows no key (`LLM_SETTINGS`)',
  502: 'The model refuses (`LLM_REFUSED`) or does not answer (`LLM_UNREACHABLE`)',
  503: 'The work takes too long (`WORK_TIMEOUT`) or too much memory (`WORK_MEMORY`)',
};

/**
 * `GET` and `POST /baseline`: what agents that need no training reach, graded anew by this server. Only a `POST` can
 * have a language model play, which costs money: any page can make a browser send a `GET`.
 */
export function mountBaselineRoutes<Action, Observation extends object, State extends object>(
  server: OpenEnvServer<Action, Observation, State>,
  { suite, model }: BaselineRoutes,
): void {
  const { definition } = server;
  const tasks = definition.tasks ?? [];

  const description = {
    path: '/baseline',
    tag: 'Grading',
    summary: 'Play the baseline agents, and grade them',
    answer: baselineAnswer,
  } as const;
  server.addRoute(
    {
      ...description,
      method: 'get',
      operationId: 'baseline_get',
      query: baselineRequest,
      errors: { ...errors, 405: 'A language model is to play (`POST_REQUIRED`)' },
    },
    (context, { query }) => {
      if (!query.use_openai) return answer(context, query);
      context.header('allow', 'POST');
      throw new HttpProblem(
        405,
        'Expected POST: playing a language model costs tokens. Send POST /baseline with {"use_openai": true}.',
        'POST_REQUIRED',
      );
    },
  );
  server.addRoute(
    { ...description, method: 'post', operationId: 'baseline_post', body: baselineRequest, errors },
    (context, { body }) => answer(context, body),
  );

  async function answer(
    context: Context,
    { task_id, agent, seed, use_openai }: z.infer<typeof baselineRequest>,
  ) {
    const request = { taskIds: taskIdsOf(task_id), seed: seed ?? suite.seed };
    if (use_openai) {
      if (model === undefined) {
        throw new HttpProblem(501, 'This server plays no language model.', 'NO_MODEL');
      }
      const { results, usage } = await model.play(request, server.callerOf(context));
      return { ...report(model.agent, 'openai', request.seed, results), usage };
    }
    const name = agent ?? suite.agents[0];
    if (!suite.agents.includes(name)) {
      throw new HttpProblem(
        404,
        `Unknown agent: ${name.slice(0, 100)}. There are ${suite.agents.join(', ')}.`,
        'UNKNOWN_AGENT',
      );
    }
    const results = await suite.play(name, request, server.callerOf(context));
    return report(name, 'deterministic', request.seed, results);
  }

  function taskIdsOf(asked: string | number | null | undefined): readonly (string | number)[] {
    if (asked === undefined || asked === null) return tasks.map(({ id }) => id);
    const task = tasks.find(({ id, slug }) => String(id) === String(asked) || slug === asked);
    if (task) return [task.id];
    throw new HttpProblem(
      404,
      `Unknown task: ${String(asked).slice(0, 100)}. There are ${tasks.map(({ id }) => id).join(', ')}.`,
      'UNKNOWN_TASK',
    );
  }

  function report(
    agent: string,
    mode: 'deterministic' | 'openai',
    seed: number,
    results: readonly BaselineResult[],
  ) {
    return {
      environment: definition.id,
      version: definition.version,
      agent,
      mode,
      agents: suite.agents,
      seed,
      tasks: results,
      scores: Object.fromEntries(results.map(({ task_id, score }) => [task_id, score])),
      mean_score: results.reduce((sum, { score }) => sum + score, 0) / results.length,
      ...numberedTasks(results),
    };
  }
}

/** Results of tasks with numbers as `task1`, `task2`, ...: the keys of InferenceGym's baseline agent. */
function numberedTasks(results: readonly BaselineResult[]): Readonly<Record<string, BaselineResult>> {
  const numbered = results.filter(({ task_id }) => typeof task_id === 'number');
  return Object.fromEntries(numbered.map((result) => [`task${result.task_id}`, result]));
}
