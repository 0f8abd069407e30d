import {
  agentsOf,
  compareEvaluations,
  type Evaluation,
  evaluate,
  evaluatePolicy,
  evaluateShifted,
  joinEvaluations,
  LlmClient,
  LlmPolicy,
  llmSettings,
  type PlayInputs,
  SHIFTED,
  tasksToPlay,
} from '@servegym/agents';
import { firstSeeds, type SeedSplit } from '@servegym/environments';
import type { JobEngine } from '@servegym/jobs';
import { InputError } from '../failure.ts';
import { withJobs } from '../jobs.ts';
import { printResult } from '../output/print-result.ts';
import { showShare } from '../output/progress.ts';
import type { EvaluateOptions } from './command.ts';
import { comparisonForm, evaluationForm, shiftedForm } from './evaluation-report.ts';
import { type NamedPolicy, readInputs, readPolicies } from './read-play.ts';

const MOST_EPISODES = 10_000;

/** Evaluations by shift, or the one of a split. */
type Evaluated = Evaluation | ReadonlyMap<string, Evaluation>;

/** Plays policies on the seeds of a split, and grades them; several are compared. */
export async function evaluatePolicies(options: EvaluateOptions): Promise<void> {
  const { env, split = 'test', episodes, json, threads, queue } = options;
  for (const name of ['url', 'lines', 'maxSteps'] as const)
    if (options[name] !== undefined)
      throw new InputError(
        `--${name === 'maxSteps' ? 'max-steps' : name} is for a single episode: add --seed <n>`,
      );
  if (split === SHIFTED && options.shift !== undefined)
    throw new InputError(
      `--split ${SHIFTED} plays every shift: leave out --shift ${options.shift}, or choose another --split`,
    );
  const { environment } = agentsOf(env);
  if (split === SHIFTED && environment.shifts.length === 0)
    throw new InputError(`expected a split of ${env}, which has no shifts, got ${split}`);
  // Policies may be for a task of this file.
  const { task, inputs } = await readInputs(options);
  const policies = await readPolicies(options);
  const least = policies.length > 1 ? 2 : 1;
  if (episodes < least || episodes > MOST_EPISODES)
    throw new InputError(`expected --episodes to be from ${least} to ${MOST_EPISODES}, got ${episodes}`);
  const found = policies.flatMap((policy) => ('found' in policy ? [policy.found] : []));
  const taskIds = tasksToPlay(env, task, found);
  const seeds = firstSeeds(split === SHIFTED ? 'test' : (split as SeedSplit), episodes);
  const { version } = agentsOf(env).playable(inputs);
  const { scenario } = inputs;
  const context = { environment: { id: env, version }, split, episodes, scenario };

  const evaluateOne = async (policy: NamedPolicy, jobs: JobEngine): Promise<Evaluated> => {
    if ('model' in policy) return evaluateModel(policy.model, options, { taskIds, seeds, inputs });
    const plan = { environment: env, policy: policy.found, taskIds, seeds, inputs, onProgress: showShare };
    return split === SHIFTED ? evaluateShifted(plan, jobs) : evaluate(plan, jobs);
  };
  showShare(0);
  const evaluated = await withJobs({ threads, queue }, async (jobs) => {
    const all: Evaluated[] = [];
    for (const policy of policies) all.push(await evaluateOne(policy, jobs));
    return all;
  }).finally(() => showShare(1));

  const [first] = evaluated as [Evaluated];
  if (evaluated.length > 1) {
    const names = policies.map(({ name }) => name);
    const evaluations = evaluated.map((one) => ('policy' in one ? one : joinEvaluations(one)));
    const results = { names, evaluations, standings: compareEvaluations(evaluations) };
    printResult(json, results, comparisonForm(context));
  } else if ('policy' in first) {
    printResult(json, first, evaluationForm(context));
  } else {
    printResult(json, first, shiftedForm(context));
  }
}

/** A language model is asked in this process, one question after another. */
async function evaluateModel(
  model: string,
  { env, split, llm = {} }: EvaluateOptions,
  plan: {
    readonly taskIds: readonly (string | number)[];
    readonly seeds: readonly number[];
    readonly inputs: PlayInputs;
  },
): Promise<Evaluation> {
  if (split === SHIFTED) throw new InputError('a language model plays no --split shifted: name a --shift');
  const playable = agentsOf(env).playable(plan.inputs);
  const settings = { ...llmSettings(process.env, { model }), timeoutSeconds: llm['answer-timeout'] };
  const policy = new LlmPolicy(playable, new LlmClient(settings), {
    history: llm.history,
    decideEvery: llm['decide-every'],
  });
  const episodes = plan.taskIds.length * plan.seeds.length;
  return evaluatePolicy(playable, policy, {
    ...plan,
    onEpisode: (_, finished) => showShare(finished / episodes),
  });
}
