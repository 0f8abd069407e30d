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
  /** Windows that the model is shown beside the current one. Default 3. */
  readonly history?: number;
  /** Ask before every n-th window and keep the action between. Default 1. */
  readonly decideEvery?: number;
  /** False when the model may not be asked any more: the action then stays. Default: always true. */
  readonly mayAsk?: () => boolean;
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
  /** Counts of a model's answers. */
  readonly answers = {
    /** Windows before which the model was asked. */
    asked: 0,
    /** Answers that were no valid action. */
    invalid: 0,
    /** Invalid answers that the model mended when it was told what was wrong. */
    repaired: 0,
    /** Windows that kept the last valid action because no valid answer came. */
    keptLast: 0,
  };
  readonly #answerer: LlmAnswerer;
  readonly #environment: PromptedEnvironment<Action, Observation>;
  readonly #options: Required<LlmPolicyOptions>;
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
    { history = 3, decideEvery = 1, mayAsk = () => true }: LlmPolicyOptions = {},
  ) {
    this.#answerer = answerer;
    this.#environment = environment;
    this.#options = { history, decideEvery, mayAsk };
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
    this.#system = systemPrompt(this.#environment, task, this.#masked, fieldsOf(this.#schema));
  }

  async act(step: PolicyStep<Action, Observation>): Promise<Action> {
    const { decideEvery, mayAsk } = this.#options;
    const isAsked = step.stepIndex % decideEvery === 0 && mayAsk();
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
    if (this.#windows.length > this.#options.history) this.#windows.shift();
  }

  async #decide(step: PolicyStep<Action, Observation>): Promise<Action> {
    const { observation, reward, previousAction, stepIndex } = step;
    this.answers.asked++;
    const history = this.#windows.map((window, i) =>
      i === this.#windows.length - 1 ? { ...window, reward } : window,
    );
    const messages: ChatMessage[] = [
      { role: 'system', content: `${this.#system}${serverLine(observation)}` },
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

function fieldsOf(schema: JsonSchema): Fields {
  return (schema.properties ?? {}) as Fields;
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

/** Fields of an observation that rows leave out: what they are of, and what follows from the others. */
const LEFT_OUT = ['server', 'relative', 'task_id', 'step_index'];

const shownOf = (fields: object) => Object.entries(fields).filter(([name]) => !LEFT_OUT.includes(name));

/** Ends of names of figures of a server that the reward and the costs of changes have already. */
const IN_REWARD = [
  '_weight',
  '_quality',
  'reference_cost_per_1k',
  'reload_s',
  'usd_per_hour',
  'bytes_per_token',
];

/** The server, which is the same in every window of an episode; nothing where the observation does not describe it. */
function serverLine(observation: unknown): string {
  const { server } = Object(observation) as { readonly server?: object };
  if (server === undefined) return '';
  const told = Object.entries(server).filter(
    ([name, value]) => typeof value === 'number' && !IN_REWARD.some((end) => name.endsWith(end)),
  );
  return `\nServer: ${unquoted(Object.fromEntries(told))}`;
}

/** Task, reward, observation and action, with units, ranges and the knobs that are masked: all that decides the reward. */
function systemPrompt(
  environment: Pick<PromptedEnvironment<unknown, unknown>, 'description' | 'observation'>,
  task: DescribedTask,
  masked: Readonly<Record<string, unknown>>,
  actionFields: Fields,
): string {
  const seen = shownOf(fieldsOf(toJSONSchema(environment.observation) as JsonSchema)).map(([name]) => name);
  const { description, windows, window_seconds, reward, changes, ...others } = task;
  const { id: _, name: __, difficulty: ___, default_action: ____, active_actions: _____, ...rest } = others;
  const { masked_actions: ______, ...facts } = rest;
  const lines = [
    'You operate an LLM inference server. After each window you see its state and set its knobs for the next. Maximise the sum of rewards.',
    String(description ?? environment.description),
    windows !== undefined && `Windows: ${windows} of ${window_seconds} s.`,
    reward !== undefined && `Reward of a window: ${reward}`,
    changes !== undefined && `Changes: ${changes}`,
    Object.keys(facts).length > 0 && `Task: ${unquoted(facts)}`,
    `A window is a row: step | seen | set | reward. Seen: ${seen.join(', ')}.`,
    'Set; answer with all of them as one JSON object and nothing else:',
    ...fieldLines(actionFields),
    Object.keys(masked).length > 0 && `This task masks knobs: they stay at ${JSON.stringify(masked)}.`,
  ];
  return lines.filter((line) => line !== false).join('\n');
}

/** The windows so far, oldest first, and the question. */
function windowPrompt(history: readonly RememberedWindow[], current: RememberedWindow): string {
  const row = ({ stepIndex, observation, action }: RememberedWindow, reward: string) =>
    `${stepIndex} | ${cells(observation)} | ${cells(action)} | ${reward}`;
  return [
    ...history.map((window) => row(window, window.reward === null ? '-' : `${rounded(window.reward)}`)),
    row(current, '?'),
  ].join('\n');
}

function cells(value: unknown): string {
  return shownOf(value as object)
    .map(([, each]) => {
      if (typeof each === 'number') return `${rounded(each)}`;
      if (typeof each === 'boolean') return each ? '1' : '0';
      return typeof each === 'string' ? each : unquoted(each);
    })
    .join(' ');
}

function fieldLines(fields: Fields): string[] {
  return Object.entries(fields).map(([name, { description, ...schema }]) => {
    const { type, enum: values, minimum, maximum } = schema;
    const range = values
      ? `one of ${JSON.stringify(values)}`
      : minimum !== undefined && maximum !== undefined && Math.abs(Number(maximum)) < 2 ** 53 - 1
        ? `${String(type)}, ${String(minimum)} to ${String(maximum)}`
        : '';
    return `${name}${range && ` (${range})`}${description === undefined ? '' : `: ${description}`}`;
  });
}

/** JSON without quotes, with numbers of three significant digits: models pay for every character. */
function unquoted(value: unknown): string {
  const json = JSON.stringify(value, (_, each) => (typeof each === 'number' ? rounded(each) : each));
  return json.replaceAll('"', '').replaceAll(',', ', ');
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

/** The knobs that a task masks where it names its default action, with the values that they stay at. */
function maskedValues(task: DescribedTask): Readonly<Record<string, unknown>> {
  const defaults = (task.default_action ?? {}) as Readonly<Record<string, unknown>>;
  const masked = (task.masked_actions ?? []) as readonly string[];
  const named = masked.filter((knob) => Object.hasOwn(defaults, knob));
  return Object.fromEntries(named.map((knob) => [knob, defaults[knob]]));
}

function narrowedSchema(schema: JsonSchema, masked: Readonly<Record<string, unknown>>): JsonSchema {
  const properties = { ...(schema.properties as Readonly<Record<string, JsonSchema>>) };
  for (const [knob, value] of Object.entries(masked)) {
    const description = properties[knob]?.description;
    properties[knob] = { ...(description !== undefined && { description }), enum: [value] };
  }
  return { ...schema, properties };
}

function maskComplaints(action: object, masked: Readonly<Record<string, unknown>>): string[] {
  const set = action as Readonly<Record<string, unknown>>;
  return Object.entries(masked)
    .filter(([knob, value]) => set[knob] !== value)
    .map(
      ([knob, value]) =>
        `${knob}: Expected ${JSON.stringify(value)}, at which the task holds it, got ${JSON.stringify(set[knob])}`,
    );
}
