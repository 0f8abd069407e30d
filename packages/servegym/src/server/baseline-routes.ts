import { type Caller, HttpProblem, type OpenEnvServer, readBody, requestJson } from '@servegym/openenv';
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

  server.app.get('/baseline', (context) => {
    const asked = readBody(context.req.query(), baselineRequest);
    if (!asked.use_openai) return answer(context, asked);
    context.header('allow', 'POST');
    throw new HttpProblem(
      405,
      'Expected POST: playing a language model costs tokens. Send POST /baseline with {"use_openai": true}.',
      'POST_REQUIRED',
    );
  });
  server.app.post('/baseline', async (context) =>
    answer(context, readBody(await requestJson(context), baselineRequest)),
  );

  async function answer(
    context: Context,
    { task_id, agent, seed, use_openai }: z.infer<typeof baselineRequest>,
  ): Promise<Response> {
    const request = { taskIds: taskIdsOf(task_id), seed: seed ?? suite.seed };
    if (use_openai) {
      if (model === undefined) {
        throw new HttpProblem(501, 'This server plays no language model.', 'NO_MODEL');
      }
      const { results, usage } = await model.play(request, server.callerOf(context));
      return context.json({ ...report(model.agent, 'openai', request.seed, results), usage });
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
    return context.json(report(name, 'deterministic', request.seed, results));
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

  function report(agent: string, mode: string, seed: number, results: readonly BaselineResult[]) {
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

  const common = {
    path: '/baseline',
    tag: 'Grading',
    summary: 'Play the baseline agents, and grade them',
    response: RESPONSE,
    errors: {
      404: 'Unknown task (`UNKNOWN_TASK`) or agent (`UNKNOWN_AGENT`)',
      409: 'The model is playing a baseline already (`MODEL_BUSY`)',
      422: 'Invalid parameters',
      429: 'The client has too many long requests under way (`WORK_QUEUE_FULL`)',
      501: 'The server plays no language model (`NO_MODEL`), or knows no key (`LLM_SETTINGS`)',
      502: 'The model refuses (`LLM_REFUSED`) or does not answer (`LLM_UNREACHABLE`)',
      503: 'The work takes too long (`WORK_TIMEOUT`) or too much memory (`WORK_MEMORY`)',
    },
  } as const;
  server.describeRoute({
    ...common,
    method: 'get',
    operationId: 'baseline_get',
    errors: { ...common.errors, 405: 'A language model is to play (`POST_REQUIRED`)' },
    query: Object.entries(baselineRequest.shape).map(([name, option]) => ({
      name,
      description: option.meta()?.description ?? '',
    })),
  });
  server.describeRoute({
    ...common,
    method: 'post',
    operationId: 'baseline_post',
    request: baselineRequest,
    requestRequired: false,
  });
}

/** Results of tasks with numbers as `task1`, `task2`, ...: the keys of InferenceGym's baseline agent. */
function numberedTasks(results: readonly BaselineResult[]): Readonly<Record<string, BaselineResult>> {
  const numbered = results.filter(({ task_id }) => typeof task_id === 'number');
  return Object.fromEntries(numbered.map((result) => [`task${result.task_id}`, result]));
}

const RESULT = {
  type: 'object',
  properties: {
    task_id: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    score: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
    breakdown: { type: 'object' },
    feedback: { type: 'string' },
    configuration: { anyOf: [{ type: 'object' }, { type: 'null' }] },
    expected_range: { type: 'array', items: { type: 'number' } },
  },
  required: ['task_id', 'score', 'breakdown', 'feedback', 'configuration'],
} as const;

const RESPONSE = {
  type: 'object',
  properties: {
    environment: { type: 'string' },
    version: { type: 'string' },
    agent: { type: 'string' },
    mode: { type: 'string', enum: ['deterministic', 'openai'] },
    agents: { type: 'array', items: { type: 'string' } },
    seed: { type: 'integer' },
    tasks: { type: 'array', items: RESULT },
    scores: { type: 'object' },
    mean_score: { type: 'number' },
    usage: { type: 'object', description: 'Of a language model: calls, tokens, cost and answers' },
  },
  patternProperties: { '^task\\d+$': RESULT },
  required: ['environment', 'version', 'agent', 'mode', 'agents', 'seed', 'tasks', 'scores', 'mean_score'],
} as const;
