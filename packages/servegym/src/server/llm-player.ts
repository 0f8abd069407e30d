import {
  type AsyncPolicy,
  hasLlmSettings,
  LlmClient,
  LlmPolicy,
  llmSettings,
  type PromptedEnvironment,
} from '@servegym/agents';
import {
  type EnvironmentDefinition,
  EnvironmentError,
  HttpProblem,
  type ResetOptions,
} from '@servegym/openenv';
import type { ModelBaseline } from './baseline-routes.ts';
import { baselineSuite, playBaseline } from './baseline-suite.ts';
import type { PolicyCatalogue } from './policy-catalogue.ts';

/** In a baseline over HTTP the model is asked before every so many windows: whoever asks for it waits for all answers. */
const BASELINE_DECIDE_EVERY = 6;
const NAME = 'llm';

type Variables = Readonly<Record<string, string | undefined>>;

/** A catalogue with the policy `llm`, for as long as the variables name a model to ask. */
export function withLlm<Action, Observation>(
  catalogue: PolicyCatalogue<Action, Observation>,
  environment: () => PromptedEnvironment<Action, Observation>,
  variables: Variables = process.env,
): PolicyCatalogue<Action, Observation> {
  return {
    ...catalogue,
    list() {
      const others = catalogue.list();
      if (!hasLlmSettings(variables)) return others;
      const { model } = llmSettings(variables);
      const description = 'Asks a language model before every window, and sets its answer.';
      return [...others, { name: NAME, title: `Language model (${model})`, description }];
    },
    create(name) {
      if (name !== NAME || !hasLlmSettings(variables)) return catalogue.create(name);
      return new LlmPolicy(environment(), new LlmClient(llmSettings(variables)));
    },
  };
}

/** Lets a policy choose; what is wrong with its model becomes an answer of the server. */
export async function chooseAction<Action, Observation>(
  policy: AsyncPolicy<Action, Observation>,
  step: Parameters<AsyncPolicy<Action, Observation>['act']>[0],
): Promise<Action> {
  try {
    return await policy.act(step);
  } catch (error) {
    throw asProblem(error);
  }
}

/** The model that the server's variables name, for `POST /baseline` with `use_openai`. One run at a time. */
export function modelBaseline<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  initialAction: (reset: ResetOptions) => Action,
  variables: Variables = process.env,
): ModelBaseline {
  let isPlaying = false;
  return {
    agent: NAME,
    async play(request, caller) {
      if (isPlaying) {
        throw new HttpProblem(409, 'The model is playing a baseline already. Ask again later.', 'MODEL_BUSY');
      }
      isPlaying = true;
      try {
        const settings = llmSettings(variables);
        const client = new LlmClient(settings);
        const policies: LlmPolicy<Action, Observation>[] = [];
        const suite = baselineSuite(definition as unknown as EnvironmentDefinition, {
          agents: [NAME],
          seed: request.seed,
          play(_agent, taskId, seed) {
            const policy = new LlmPolicy(definition, client, { decideEvery: BASELINE_DECIDE_EVERY });
            policies.push(policy);
            const initial = initialAction({ task_id: taskId, seed });
            return playBaseline(definition, policy, { taskId, seed, initialAction: initial }, caller);
          },
        });
        const results = await suite.play(NAME, request, caller);
        const answers = policies.map((policy) => policy.answers);
        return {
          results,
          usage: { model: settings.model, ...client.usage, cost_usd: client.costUsd, answers },
        };
      } catch (error) {
        throw asProblem(error);
      } finally {
        isPlaying = false;
      }
    },
  };
}

function asProblem(error: unknown): unknown {
  if (!(error instanceof EnvironmentError && error.code.startsWith('LLM_'))) return error;
  return new HttpProblem(error.code === 'LLM_SETTINGS' ? 501 : 502, `${error.message}.`, error.code);
}
