import { agentsOf, LlmClient, LlmPolicy, llmSettings } from '@servegym/agents';
import type { EnvironmentId, RegisteredEnvironment } from '@servegym/environments';
import { type Caller, httpProblem, type OpenEnvServer, toJsonSchema } from '@servegym/openenv';
import type { Context } from 'hono';
import { z } from 'zod';
import type { BackgroundEnvironment } from './background-work.ts';
import { asAnswers, LLM } from './open-environment.ts';
import type { OutsideCalls } from './outside-calls.ts';
import { described, jsonObject, unknownName } from './routes.ts';
import { playBaseline } from './served-job.ts';

const BASELINE_SEED = 0;
const POST_REQUIRED =
  'Expected POST: playing a language model costs tokens. Send POST /baseline with {"use_openai": true}.';
/** A language model is asked before every so many windows: whoever asks for the baseline waits for all answers. */
const DECIDE_EVERY = 6;

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
    task_id: z.union([z.string(), z.int()]).nullish().describe('One task; without it, all of them'),
    agent: z.string().nullish().describe('Which baseline; without it, the first of `agents`'),
    seed: number.nullish().describe('Seed of the episodes'),
    use_openai: flag.nullish().describe('Play a language model instead. POST only. Needs OPENAI_API_KEY'),
  })
  .meta({ title: 'BaselineRequest', examples: [{}, { task_id: 1 }] });
type BaselineRequest = z.infer<typeof baselineRequest>;

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
type BaselineResult = z.infer<typeof result>;

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
    usage: jsonObject.optional().describe('Of a language model: calls, tokens, cost and answers'),
  })
  .meta({ patternProperties: { '^task\\d+$': toJsonSchema(result, 'answer') } });

/**
 * `GET` and `POST /baseline`: what agents that need no training reach, graded anew by this server. Only a `POST` can
 * have a language model play, which costs money: any page can make a browser send a `GET`.
 */
export function mountBaselineRoutes(
  server: OpenEnvServer,
  entry: RegisteredEnvironment,
  background: BackgroundEnvironment,
  outside: OutsideCalls,
): void {
  const { definition } = server;
  const tasks = definition.tasks ?? [];
  const { baselines: agents, expectedRanges = {} } = agentsOf(entry.id as EnvironmentId);
  // The definition's version is longer where something is of the user's own.
  const ranges = definition.version === entry.version ? expectedRanges : {};
  /** Results that everybody asks for. */
  const known = new Map<string, BaselineResult>();
  let isModelPlaying = false;

  server.addRoute(
    { ...described('baseline_get'), query: baselineRequest, answer: baselineAnswer },
    (context, { query }) => {
      if (!query.use_openai) return answer(context, query);
      context.header('allow', 'POST');
      throw httpProblem(405, POST_REQUIRED, 'POST_REQUIRED');
    },
  );
  server.addRoute(
    { ...described('baseline_post'), body: baselineRequest, answer: baselineAnswer },
    (context, { body }) => answer(context, body),
  );

  async function answer(context: Context, { agent: named, use_openai, ...given }: BaselineRequest) {
    const asked = given.task_id ?? null;
    const isPlayed = ({ id, slug }: Task) => asked === null || String(id) === String(asked) || slug === asked;
    const played = tasks.filter(isPlayed);
    const ids = tasks.map(({ id }) => id);
    if (asked !== null && played.length === 0) throw unknownName('task', asked, ids);
    const seed = given.seed ?? BASELINE_SEED;
    const caller = server.requestSessions.caller(context);
    const agent = use_openai ? LLM : (named ?? agents[0]);
    if (!use_openai && !agents.includes(agent)) throw unknownName('agent', agent, agents);
    const { results, usage } = use_openai
      ? await playModelAlone(played, seed, caller)
      : { results: await playAgent(agent, played, seed, caller) };
    const { id, version } = definition;
    const mode = use_openai ? ('openai' as const) : ('deterministic' as const);
    return {
      ...{ environment: id, version, agent, mode, agents, seed, tasks: results },
      scores: Object.fromEntries(results.map((each) => [each.task_id, each.score])),
      mean_score: results.reduce((sum, { score }) => sum + score, 0) / results.length,
      // The keys of InferenceGym's baseline agent.
      ...Object.fromEntries(
        results.flatMap((each) => (typeof each.task_id === 'number' ? [[`task${each.task_id}`, each]] : [])),
      ),
      usage,
    };
  }

  async function playAgent(agent: string, played: readonly Task[], seed: number, caller: Caller) {
    const results: BaselineResult[] = [];
    for (const task of played) {
      const key = JSON.stringify([agent, task.id]);
      const isStandard = seed === BASELINE_SEED;
      let found = isStandard ? known.get(key) : undefined;
      if (found === undefined) {
        const work = { kind: 'play-baseline', agent, taskId: task.id, seed } as const;
        const result = await background.run({ task_id: task.id }, work, caller);
        const range = agent === agents[0] && isStandard && ranges[task.id];
        found = resultOf(task, result as Awaited<ReturnType<typeof playBaseline>>);
        if (range) found.expected_range = [...range];
        if (isStandard) known.set(key, found);
      }
      results.push(found);
    }
    return results;
  }

  /** Plays the model that the server's variables name. */
  async function playModelAlone(played: readonly Task[], seed: number, caller: Caller) {
    if (isModelPlaying)
      throw httpProblem(409, 'The model is playing a baseline already. Ask again later.', 'MODEL_BUSY');
    isModelPlaying = true;
    return asAnswers(async () => {
      const settings = llmSettings(process.env);
      const client = new LlmClient(settings);
      const answerer = outside.answererOf(client, () => caller.name);
      const results: BaselineResult[] = [];
      const answers: object[] = [];
      for (const task of played) {
        const policy = new LlmPolicy(definition, answerer, { decideEvery: DECIDE_EVERY });
        const initialAction = entry.initialAction({ task_id: task.id, seed });
        const episode = { taskId: task.id, seed, initialAction };
        results.push(resultOf(task, await playBaseline(definition, policy, episode, caller)));
        answers.push(policy.answers);
      }
      const { model } = settings;
      return { results, usage: { model, ...client.usage, cost_usd: client.costUsd, answers } };
    }).finally(() => {
      isModelPlaying = false;
    });
  }
}

type Task = NonNullable<OpenEnvServer['definition']['tasks']>[number];

const resultOf = (
  { id, name, difficulty }: Task,
  played: Awaited<ReturnType<typeof playBaseline>>,
): BaselineResult => ({ task_id: id, name, difficulty, ...played });
