// Puts together the folder that is pushed to a Hugging Face Space: the Space's own files, the template filled in, and the
// source of ServeGym from which its Dockerfile builds.
//
//   node deploy/spaces/build-space.ts llmserve /tmp/llmserve
//   openenv push /tmp/llmserve --repo-id you/llmserve
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { benchmark, fleet, inferencegym, llmserve } from '@servegym/environments';
import { type EnvironmentDefinition, publishedSchemas } from '@servegym/openenv';
import { pydanticClass } from './python-models.ts';

/** The environments that have a Space: class of the Python client, port, least and largest reward of a step. */
export const SPACES = {
  llmserve: space(llmserve.definition(), 'LLMServeEnv', 7860, [-1, 1]),
  // All GPUs billed for nobody cost less than 5; all of them at full speed, most prompts cached, earn less than 50.
  fleet: space(fleet.definition(), 'FleetEnv', 7860, [-5, 50]),
  inferencegym: space(inferencegym.definition(), 'InferenceGymEnv', 7860, [-1, 1]),
  benchmark: space(benchmark.definition(), 'BenchmarkEnv', 8000, [0, 1]),
} as const;
export type SpaceName = keyof typeof SPACES;

function space<Action, Observation extends object, State extends object>(
  definition: EnvironmentDefinition<Action, Observation, State>,
  client: string,
  port: number,
  rewardRange: readonly [number, number],
) {
  const { description, tasks, grade } = definition;
  const schemas = publishedSchemas(definition);
  return { description, tasks, isGraded: grade !== undefined, schemas, client, port, rewardRange };
}

/** Folder of ServeGym's source in a Space. */
const SPACE_SOURCE = 'servegym';
/** Paths that the Dockerfile copies. */
const SOURCES = ['package.json', 'package-lock.json', 'tsconfig.json', 'packages', 'README.md', 'docs'];
const root = resolve(import.meta.dirname, '../..');

if (import.meta.main) {
  const [name, out] = process.argv.slice(2);
  if (!name || !(name in SPACES) || !out) {
    console.error(`Expected one of ${Object.keys(SPACES).join(', ')}, and a folder to make`);
    process.exit(2);
  }
  if (existsSync(out) && readdirSync(out).length > 0) {
    console.error(`Expected a folder that is empty or is not there yet: ${out}`);
    process.exit(2);
  }
  writeSpace(name as SpaceName, out);
  const tracked = execFileSync('git', ['ls-files', '-z', '--', ...SOURCES], { cwd: root, encoding: 'utf8' });
  for (const path of tracked.split('\0')) {
    if (path === '' || /\.test\.tsx?$/.test(path) || !existsSync(join(root, path))) continue;
    cpSync(join(root, path), join(out, SPACE_SOURCE, path));
  }
  console.log(`${out} is ready: openenv push ${out} --repo-id NAMESPACE/${name}`);
}

/** Writes the files of a Space but for ServeGym's source: its own README, and the template filled in. */
function writeSpace(name: SpaceName, out: string): void {
  mkdirSync(out, { recursive: true });
  cpSync(join(import.meta.dirname, name), out, { recursive: true });
  const values = templateValues(name);
  const template = join(import.meta.dirname, 'template');
  for (const path of globSync('**/*', { cwd: template })) {
    if (path.includes('__pycache__') || statSync(join(template, path)).isDirectory()) continue;
    const target = join(out, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, filledIn(readFileSync(join(template, path), 'utf8'), values));
  }
  writeFileSync(join(out, 'Dockerfile'), spaceDockerfile(name));
  mkdirSync(join(out, 'validation'), { recursive: true });
  writeFileSync(
    join(out, 'validation', 'runtime.json'),
    `${JSON.stringify(validationPlan(name), null, 2)}\n`,
  );
}

/** The steps by which `openenv validate` probes a server: the default action of the first task, twice. */
function validationPlan(name: SpaceName): object {
  const task = SPACES[name].tasks?.[0];
  const action = task?.default_action ?? {};
  return {
    plan_schema_version: '1',
    reset: { episode_id: 'validation', seed: 1, options: task ? { task_id: task.id } : {} },
    actions: [action, action],
  };
}

/** `deploy/Dockerfile` as a Space has it: its own environment and port, and the source in a folder. */
function spaceDockerfile(name: SpaceName): string {
  const { port } = SPACES[name];
  return [
    ['ARG SOURCE=.', `ARG SOURCE=${SPACE_SOURCE}`],
    ['ENV SERVEGYM_ENV=llmserve', `ENV SERVEGYM_ENV=${name}`],
    ['ENV PORT=7860', `ENV PORT=${port}`],
    ['EXPOSE 7860', `EXPOSE ${port}`],
    // The proxy of Hugging Face alone reaches the container.
    ['ENV HOST=0.0.0.0', 'ENV HOST=0.0.0.0\nENV SERVEGYM_TRUST_PROXY=1'],
  ].reduce(
    (text, [from, to]) => {
      const parts = text.split(`${from}\n`);
      if (parts.length !== 2) throw new Error(`Expected the line \`${from}\` once in deploy/Dockerfile`);
      return parts.join(`${to}\n`);
    },
    readFileSync(join(root, 'deploy/Dockerfile'), 'utf8'),
  );
}

function templateValues(name: SpaceName): Readonly<Record<string, string>> {
  const { description, tasks, isGraded, schemas, client, port, rewardRange } = SPACES[name];
  const { version } = JSON.parse(readFileSync(join(root, 'packages/servegym/package.json'), 'utf8'));
  const { action, observation, state } = schemas;
  return {
    name,
    version,
    description: description.replaceAll('"', "'"),
    client,
    port: String(port),
    action: String(action.title),
    observation: String(observation.title),
    state: String(state.title),
    reward_range: JSON.stringify(rewardRange),
    grader_range: JSON.stringify(isGraded ? [0, 1] : null),
    task_api: String(tasks !== undefined),
    tasks: sequence(tasks ?? []),
    action_model: pydanticClass(action, 'Action'),
    observation_model: pydanticClass(observation, 'Observation'),
    state_model: pydanticClass(state, 'State').trimEnd(),
    action_space: sequence(spaceOf(action)),
    observation_space: sequence(spaceOf(observation)),
  };
}

/** Name, type and bounds of each field of a schema, as `openenv.yaml` lists them. */
function spaceOf({ properties }: { readonly properties?: unknown }): object[] {
  return Object.entries(properties as Record<string, Record<string, unknown>>)
    .filter(([name]) => !['metadata', 'reward', 'done'].includes(name))
    .map(([name, { type, enum: values, minimum, maximum, description }]) => ({
      name,
      type: values ? 'enum' : type,
      ...(values !== undefined && { values }),
      ...(minimum !== undefined && { min: minimum }),
      ...(maximum !== undefined && Math.abs(Number(maximum)) < Number.MAX_SAFE_INTEGER && { max: maximum }),
      ...(description !== undefined && { description }),
    }));
}

/** A YAML sequence behind its key, one line an item. JSON is YAML. */
function sequence(items: readonly unknown[]): string {
  return items.length === 0 ? ' []' : items.map((item) => `\n  - ${JSON.stringify(item)}`).join('');
}

function filledIn(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
    const value = values[key];
    if (value === undefined) throw new Error(`Expected the template to hold known names, got {{${key}}}`);
    return value;
  });
}
