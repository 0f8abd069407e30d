import {
  type AsyncPolicy,
  hasLlmSettings,
  LlmClient,
  LlmPolicy,
  llmSettings,
  type PromptedEnvironment,
} from '@servegym/agents';
import { EnvironmentError, httpProblem } from '@servegym/openenv';
import type { PolicyCatalogue } from './policy-catalogue.ts';

/** Name of the policy that asks a language model. */
export const LLM = 'llm';

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
      return [...others, { name: LLM, title: `Language model (${model})`, description }];
    },
    create(name) {
      if (name !== LLM || !hasLlmSettings(variables)) return catalogue.create(name);
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

/** What is wrong with a model, as an answer of the server. */
export function asProblem(error: unknown): unknown {
  if (!(error instanceof EnvironmentError && error.code.startsWith('LLM_'))) return error;
  return httpProblem(error.code === 'LLM_SETTINGS' ? 501 : 502, `${error.message}.`, error.code);
}
