import type { JsonSchema } from './answer-format.ts';
import type { PlayableEnvironment } from './playable-environment.ts';

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

/** The task of this id, where the environment describes it. */
export function promptedTask(
  { tasks }: Pick<PromptedEnvironment<unknown, unknown>, 'tasks'>,
  taskId: string | number,
): DescribedTask | undefined {
  return tasks?.find(({ id }) => String(id) === String(taskId));
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
export function systemPrompt(
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
export function windowPrompt(history: readonly RememberedWindow[], current: RememberedWindow): string {
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
export function maskedValues(task: DescribedTask): Readonly<Record<string, unknown>> {
  const defaults = (task.default_action ?? {}) as Readonly<Record<string, unknown>>;
  const masked = (task.masked_actions ?? []) as readonly string[];
  const named = masked.filter((knob) => Object.hasOwn(defaults, knob));
  return Object.fromEntries(named.map((knob) => [knob, defaults[knob]]));
}

/** A schema of answers that leaves masked knobs one value each. */
export function narrowedSchema(schema: JsonSchema, masked: Readonly<Record<string, unknown>>): JsonSchema {
  const properties = { ...(schema.properties as Readonly<Record<string, JsonSchema>>) };
  for (const [knob, value] of Object.entries(masked)) {
    const description = properties[knob]?.description;
    properties[knob] = { ...(description !== undefined && { description }), enum: [value] };
  }
  return { ...schema, properties };
}

/** Complaints about masked knobs that an answer turns. */
export function maskComplaints(action: object, masked: Readonly<Record<string, unknown>>): string[] {
  const set = action as Readonly<Record<string, unknown>>;
  return Object.entries(masked)
    .filter(([knob, value]) => set[knob] !== value)
    .map(
      ([knob, value]) =>
        `${knob}: Expected ${JSON.stringify(value)}, at which the task holds it, got ${JSON.stringify(set[knob])}`,
    );
}
