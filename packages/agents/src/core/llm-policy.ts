import { toJSONSchema, type ZodType } from 'zod';
import { type ChatMessage, type JsonSchema, jsonIn } from './llm-client.ts';
import type { PlayableEnvironment } from './playable.ts';
import type { AsyncPolicy, PolicyEpisode, PolicyStep } from './policy.ts';

/** Source of the answers: `LlmClient`, or a test. */
export interface LlmAnswerer {
  /** The answer to a conversation, JSON of the schema if all goes well; `null` when there is none. */
  ask(messages: readonly ChatMessage[], schema: JsonSchema): Promise<string | null>;
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
    const tasks: readonly DescribedTask[] = this.#environment.tasks ?? [];
    const task = tasks.find(({ id }) => String(id) === String(taskId)) ?? { id: taskId };
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
    const messages: ChatMessage[] = [
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

/** An environment as prompts describe it: every definition of `@servegym/environments`. */
export type PromptedEnvironment<Action, Observation> = Pick<
  PlayableEnvironment<Action, Observation>,
  'name' | 'description' | 'tasks' | 'action' | 'observation'
>;

/** A task as the environment describes it. It may name `masked_actions`, which stay at its `default_action`. */
interface DescribedTask {
  readonly id: string | number;
  readonly [field: string]: unknown;
}

/** A window as the model is shown it. */
export interface RememberedWindow {
  readonly stepIndex: number;
  readonly action: unknown;
  readonly observation: unknown;
  readonly reward: number | null;
}

type Fields = Readonly<Record<string, { readonly description?: string } & Record<string, unknown>>>;

/** The role of the model, its observation and its action, with units, ranges and the knobs that are masked. */
function systemPrompt(
  environment: Pick<PromptedEnvironment<unknown, unknown>, 'description'>,
  task: DescribedTask,
  masked: Readonly<Record<string, unknown>>,
  actionFields: Fields,
  observationFields: Fields,
): string {
  const isMasked = Object.keys(masked).length > 0;
  const lines = [
    'You operate an LLM inference server. After each time window you see its state and set its knobs for the next window.',
    environment.description,
    '',
    `Task: ${JSON.stringify(task)}`,
    'Your goal is the largest sum of rewards over the episode. A change of weights or of the arrangement of the GPUs interrupts the service, so change those only when it pays.',
    '',
    'Observation:',
    ...fieldLines(observationFields),
    '',
    'Action, all fields required:',
    ...fieldLines(actionFields),
    ...(isMasked ? ['', `This task masks knobs: they stay at ${JSON.stringify(masked)}.`] : []),
    '',
    'Answer with the action as one JSON object and nothing else.',
  ];
  return lines.join('\n');
}

/** The windows so far, oldest first, and the question. */
function windowPrompt(history: readonly RememberedWindow[], current: RememberedWindow): string {
  const lines = [];
  if (history.length > 0) lines.push('The last windows, oldest first:');
  for (const { stepIndex, observation, action, reward } of history) {
    lines.push(
      `step ${stepIndex}: observed ${compact(withoutObjects(observation))}, set ${compact(action)}, which earned ${reward === null ? 'nothing yet' : rounded(reward)}`,
    );
  }
  lines.push(
    `Now, step ${current.stepIndex}: observed ${compact(current.observation)}. In force: ${compact(current.action)}. Set the knobs for the next window.`,
  );
  return lines.join('\n');
}

function fieldLines(fields: Fields): string[] {
  return Object.entries(fields).map(([name, { description, ...schema }]) => {
    const { type, enum: values, minimum, maximum } = schema;
    const range = values
      ? `one of ${JSON.stringify(values)}`
      : minimum !== undefined && maximum !== undefined && Math.abs(Number(maximum)) < 2 ** 53 - 1
        ? `${String(type)}, ${String(minimum)} to ${String(maximum)}`
        : String(type ?? 'value');
    return `- ${name} (${range})${description === undefined ? '' : `: ${description}`}`;
  });
}

/** A past observation without its nested objects, which describe and do not change: the current one shows them. */
function withoutObjects(observation: unknown): unknown {
  const isPlain = (value: unknown) => typeof value !== 'object' || value === null || Array.isArray(value);
  return Object.fromEntries(Object.entries(observation as object).filter(([, value]) => isPlain(value)));
}

/** JSON with numbers of four significant digits: models pay for every digit. */
function compact(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'number' ? rounded(each) : each));
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** The knobs that a task masks where it names its default action, with the values that they stay at. */
function maskedValues(task: DescribedTask): Readonly<Record<string, unknown>> {
  const defaults = (task.default_action ?? {}) as Readonly<Record<string, unknown>>;
  const masked = (task.masked_actions ?? []) as readonly string[];
  const named = masked.filter((knob) => Object.hasOwn(defaults, knob));
  return Object.fromEntries(named.map((knob) => [knob, defaults[knob]]));
}

/** A schema of answers that leaves masked knobs one value each. */
function narrowedSchema(schema: JsonSchema, masked: Readonly<Record<string, unknown>>): JsonSchema {
  const properties = { ...(schema.properties as Readonly<Record<string, JsonSchema>>) };
  for (const [knob, value] of Object.entries(masked)) {
    const description = properties[knob]?.description;
    properties[knob] = { ...(description !== undefined && { description }), enum: [value] };
  }
  return { ...schema, properties };
}

/** Complaints about masked knobs that an answer turns. */
function maskComplaints(action: object, masked: Readonly<Record<string, unknown>>): string[] {
  const set = action as Readonly<Record<string, unknown>>;
  return Object.entries(masked)
    .filter(([knob, value]) => set[knob] !== value)
    .map(
      ([knob, value]) =>
        `${knob}: Expected ${JSON.stringify(value)}, at which the task holds it, got ${JSON.stringify(set[knob])}`,
    );
}
