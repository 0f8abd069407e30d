import { EVALUATION_SPLITS } from '@servegym/agents';
import { ENVIRONMENT_IDS } from '@servegym/environments';
import { namedValues, numberFrom, parseShares, wholeNumber } from '../arguments/options.ts';
import { scenarioOptions } from '../arguments/scenario-options.ts';
import { serverAddress } from '../arguments/server-options.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { jobOptions } from '../jobs.ts';
import { checkTasks } from './check-tasks.ts';
import { evaluatePolicies } from './evaluate-policies.ts';
import { playSeed } from './play-seed.ts';
import { recordPolicy } from './record-policy.ts';

/** How a language model is asked. */
const askLlm = namedValues({
  history: { parse: wholeNumber(0, 100) },
  'decide-every': { parse: wholeNumber(1, 1000) },
  'max-calls': { parse: wholeNumber(1, 100_000) },
  'answer-timeout': { parse: numberFrom(0.1, 3600) },
  'time-budget': { parse: numberFrom(0, 1e6) },
  'input-price': { parse: numberFrom(0, 1e6) },
  'output-price': { parse: numberFrom(0, 1e6) },
});

const options = {
  env: { value: '<id>', help: 'the environment', choices: ENVIRONMENT_IDS, default: 'llmserve' },
  task: {
    value: '<id|file>',
    help: 'a task, a file that holds one, or all',
    default: 'all',
  },
  table: { value: '<file.parquet>', help: 'inferencegym: a table of your own' },
  ...scenarioOptions,
  classShares: {
    value: '<shares>',
    help: 'fleet, requests of your own: shares of the classes, such as 0.7,0.2,0.1',
    parse: parseShares,
  },
  episodes: {
    value: '<n>',
    help: 'episodes for each task, each with a seed of its own',
    parse: wholeNumber(1, 100_000),
    default: 20,
  },
  split: {
    value: '<name>',
    help: 'where the seeds come from (default: test; train with --record)',
    choices: EVALUATION_SPLITS,
  },
  seed: {
    value: '<n>',
    help: 'instead: one episode of each task, with this seed, step by step',
    parse: wholeNumber(0, Number.MAX_SAFE_INTEGER),
    conflicts: ['episodes', 'split'],
  },
  maxSteps: {
    value: '<n>',
    help: 'with --seed: most steps of an episode (fleet: its length in windows)',
    parse: wholeNumber(1, 100_000),
  },
  url: { value: '<address>', help: 'with --seed: play at this server', parse: serverAddress },
  llm: {
    value: '<settings>',
    help: 'how llm is asked, such as history=6,decide-every=4',
    parse: askLlm,
  },
  lines: {
    value: '[score]',
    help: 'with --seed: OpenEnv’s lines; success is above this score',
    preset: '0.2',
    parse: numberFrom(0, 1),
    conflicts: ['json'],
  },
  record: {
    value: '<file>',
    help: 'write the episodes of one policy as Parquet; with --seed as JSON',
  },
  check: {
    value: '[effort]',
    help: 'instead: is a task sound and worth learning; recorded: its reference returns',
    choices: ['thorough', 'quick', 'recorded'],
    preset: 'thorough',
    conflicts: ['episodes', 'split', 'seed', 'record', 'traffic', 'rateScale', 'profile', 'shift', 'queue'],
  },
  ...jobOptions,
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

export type EvaluateOptions = OptionValues<typeof options> & { readonly policies: readonly string[] };

/** `servegym evaluate`: plays and grades policies, and checks tasks. */
export const evaluateCommand = () =>
  defineCommand({
    name: 'evaluate',
    description: 'Play and grade policies, with 95 % intervals. Several are compared on the same seeds.',
    words: {
      policies: {
        value: '[policies...]',
        help: 'names, files of `servegym train`, or llm[:MODEL] (default: the rules of the environment)',
      },
    },
    options,
    after: `Examples:
  servegym evaluate default heuristic runs/bursty_workload-ppo-seed0/policy.safetensors --episodes 50
  servegym evaluate static:8 hpa:30 rule --env fleet --task flash_crowds --seed 0
  OPENAI_API_KEY=... servegym evaluate llm:gpt-4.1-mini --seed 0 --llm decide-every=4`,
    action(options) {
      const { check, record, seed } = options;
      if (check !== undefined) return checkTasks(check, options);
      if (seed !== undefined) return playSeed(seed, options);
      return record === undefined ? evaluatePolicies(options) : recordPolicy(record, options);
    },
  });
