import { toJSONSchema, type ZodType } from 'zod';
import { type JsonSchema, jsonIn } from './answer-format.ts';
import {
  maskComplaints,
  maskedValues,
  narrowedSchema,
  type PromptedEnvironment,
  promptedTask,
  type RememberedWindow,
  systemPrompt,
  windowPrompt,
} from './llm-prompt.ts';
import type { AsyncPolicy, PolicyEpisode, PolicyStep } from './policy.ts';

/** Source of the answers: `LlmClient`, or a test. */
export interface LlmAnswerer {
  /** The answer to a conversation, JSON of the schema if all goes well; `null` when there is none. */
  ask(
    messages: readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[],
    schema: JsonSchema,
  ): Promise<string | null>;
}

/** Windows that a model is shown, and the times it is asked. */
export interface LlmPolicyOptions {
  /** Windows that the model is shown beside the current one. Default 6. */
  readonly history?: number;
  /** Ask before every n-th window and keep the action between. Default 1. */
  readonly decideEvery?: number;
  /** False when the model may not be asked any more: the action then stays. Default: always true. */
  readonly mayAsk?: () => boolean;
}

/** Counts of a model's answers. */
export interface LlmAnswers {
  /** Windows before which the model was asked. */
  asked: number;
  /** Answers that were no valid action. */
  invalid: number;
  /** Invalid answers that the model mended when it was told what was wrong. */
  repaired: number;
  /** Windows that kept the last valid action because no valid answer came. */
  keptLast: number;
}

/** An answer's mistake, as the model is told it. */
const LONGEST_COMPLAINT = 600;

/**
 * Lets a language model set the knobs. An invalid answer, or one that turns a knob that the task masks, is counted and
 * goes back once, with what is wrong with it; when no valid action comes of that, or the model does not answer, the last
 * valid action stays in force.
 */
export class LlmPolicy<Action, Observation> implements AsyncPolicy<Action, Observation> {
  readonly name = 'llm';
  readonly answers: LlmAnswers = { asked: 0, invalid: 0, repaired: 0, keptLast: 0 };
  readonly #answerer: LlmAnswerer;
  readonly #environment: PromptedEnvironment<Action, Observation>;
  readonly #history: number;
  readonly #decideEvery: number;
  readonly #mayAsk: () => boolean;
  readonly #actionSchema: JsonSchema;
  /** That of the task: the action's, but for masked knobs. */
  #schema: JsonSchema;
  #masked: Readonly<Record<string, unknown>> = {};
  #system = '';
  #windows: RememberedWindow[] = [];
  #keptBecause: string | null = null;

  constructor(
    environment: PromptedEnvironment<Action, Observation>,
    answerer: LlmAnswerer,
    { history = 6, decideEvery = 1, mayAsk = () => true }: LlmPolicyOptions = {},
  ) {
    this.#answerer = answerer;
    this.#environment = environment;
    this.#history = history;
    this.#decideEvery = decideEvery;
    this.#mayAsk = mayAsk;
    this.#actionSchema = strictSchema(environment.action);
    this.#schema = this.#actionSchema;
  }

  /** Why the last `act` kept the action though the model was asked; `null` when it did not. */
  get keptBecause(): string | null {
    return this.#keptBecause;
  }

  reset({ taskId }: PolicyEpisode): void {
    this.#keptBecause = null;
    this.#windows = [];
    const task = promptedTask(this.#environment, taskId) ?? { id: taskId };
    this.#masked = maskedValues(task);
    this.#schema = narrowedSchema(this.#actionSchema, this.#masked);
    this.#system = systemPrompt(
      this.#environment,
      task,
      this.#masked,
      fieldsOf(this.#schema),
      fieldsOf(toJSONSchema(this.#environment.observation) as JsonSchema),
    );
  }

  async act(step: PolicyStep<Action, Observation>): Promise<Action> {
    const isAsked = step.stepIndex % this.#decideEvery === 0 && this.#mayAsk();
    this.#keptBecause = null;
    const action = isAsked ? await this.#decide(step) : step.previousAction;
    this.watch(step, action);
    return action;
  }

  watch({ observation, reward, stepIndex }: PolicyStep<Action, Observation>, action: Action): void {
    const last = this.#windows.at(-1);
    // The reward of a window comes with the next observation.
    if (last !== undefined) this.#windows[this.#windows.length - 1] = { ...last, reward };
    this.#windows.push({ stepIndex, observation, action, reward: null });
    if (this.#windows.length > this.#history) this.#windows.shift();
  }

  async #decide({
    observation,
    reward,
    previousAction,
    stepIndex,
  }: PolicyStep<Action, Observation>): Promise<Action> {
    this.answers.asked++;
    const history = this.#windows.map((window, i) =>
      i === this.#windows.length - 1 ? { ...window, reward } : window,
    );
    const messages: { role: 'system' | 'user' | 'assistant'; content: string }[] = [
      { role: 'system', content: this.#system },
      {
        role: 'user',
        content: windowPrompt(history, { stepIndex, observation, action: previousAction, reward }),
      },
    ];
    let flaw = 'no answer';
    for (let attempt = 0; attempt < 2; attempt++) {
      const answer = await this.#answerer.ask(messages, this.#schema);
      if (answer === null) break;
      const read = this.#environment.action.safeParse(jsonIn(answer));
      const complaints = read.success
        ? maskComplaints(read.data as object, this.#masked)
        : read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
      if (read.success && complaints.length === 0) {
        if (attempt > 0) this.answers.repaired++;
        return read.data;
      }
      this.answers.invalid++;
      const complaint = complaints.join('; ').slice(0, LONGEST_COMPLAINT);
      flaw = `invalid answer: ${complaint}`;
      messages.push(
        { role: 'assistant', content: answer },
        {
          role: 'user',
          content: `That is no valid action: ${complaint}. Answer with the action as one JSON object and nothing else.`,
        },
      );
    }
    this.answers.keptLast++;
    this.#keptBecause = `${flaw}; last action kept`;
    return previousAction;
  }
}

/** A JSON schema that the strict mode of structured output takes. */
function strictSchema(action: ZodType): JsonSchema {
  const { $schema: _, ...schema } = toJSONSchema(action, { io: 'input' }) as JsonSchema;
  return { ...schema, required: Object.keys(fieldsOf(schema)), additionalProperties: false };
}

function fieldsOf(schema: JsonSchema): Readonly<Record<string, { readonly description?: string }>> {
  return (schema.properties ?? {}) as Record<string, { description?: string }>;
}
