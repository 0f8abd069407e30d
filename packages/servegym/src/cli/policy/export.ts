import { readFile } from 'node:fs/promises';
import { startPolicy } from '@servegym/simulator';
import { defineCommand } from '../command-table.ts';
import { invalidFile } from '../failure.ts';
import { readInputFile, writeOutputFile } from '../files.ts';
import { policySource } from './evaluate-policy.ts';
import { pickerConfig, scorerPlugin, scorerWeights } from './export-epp.ts';
import { withoutComments } from './guest.ts';
import { importPolicy } from './import-policy.ts';
import { isPython, pythonCode } from './python-guest.ts';

const TARGETS = { epp: toEpp, vllm: toVllm } as const;

export const exportCommand = () =>
  defineCommand({
    words: {
      file: { value: '<file>', help: 'module of a policy (.ts, .js or .py); it is your own code' },
    },
    options: {
      to: {
        value: '<system>',
        help: 'epp: weights or a scorer of the endpoint picker, from `score`; vllm: a scheduler for --scheduler-cls, from `order`',
        choices: Object.keys(TARGETS) as (keyof typeof TARGETS)[],
        required: true,
      },
      output: { value: '<file>', writes: true, help: 'where it is written (default: standard output)' },
    },
    after: `Examples:
  servegym policy export my-scheduler.ts --to vllm --output my_scheduler.py
  servegym policy export my-router.ts --to epp`,
    async action({ file, to, output }) {
      const text = await exported(to, file);
      if (output === undefined) console.log(text.trimEnd());
      else await writeOutputFile(output, [text]);
    },
  });

/** The policy in a file in the form of a system. @throws InputError where it cannot be there */
export async function exported(to: keyof typeof TARGETS, file: string): Promise<string> {
  const text = await readInputFile(file);
  const source = isPython(file) ? text : policySource(text, file);
  return TARGETS[to](startPolicy(await importPolicy(file), file), source, file);
}

type Functions = ReturnType<typeof startPolicy>;

function refuse(file: string, reason: string): never {
  throw invalidFile(`${file}: ${reason}`);
}

/** A module of Python with the policy in it, which a process of Node runs where it is JavaScript. */
async function toVllm({ order, ...others }: Functions, source: string, file: string): Promise<string> {
  if (order === undefined)
    refuse(file, 'expected `order`, the function that a scheduler of vLLM has, got none');
  const code = isPython(file) ? pythonCode(source) : withoutComments(source);
  for (const [word, why] of [
    ['predicted_output', 'vLLM predicts no lengths of answers'],
    ['prefix_hashes', 'hashes of vLLM are of another kind than those of a trace'],
  ])
    if (code.includes(word)) refuse(file, `expected \`order\` without \`${word}\`: ${why}`);
  noteLeft(others, 'a scheduler only orders');
  const template = await readFile(new URL('./vllm_scheduler.py', import.meta.url), 'utf8');
  return template
    .replace('"{{policy}}"', () => JSON.stringify(source))
    .replace('IN_PYTHON = False', isPython(file) ? 'IN_PYTHON = True' : '$&');
}

/** Weights of the endpoint picker's scorers where they give the policy's scores, else a scorer in Go. */
async function toEpp({ score, ...others }: Functions, source: string, file: string): Promise<string> {
  if (score === undefined) refuse(file, 'expected `score`, the function that a scorer has, got none');
  noteLeft(others, 'a scorer only scores');
  const weights = scorerWeights(score);
  if (weights !== null) return pickerConfig(weights);
  if (isPython(file))
    refuse(file, 'expected TypeScript: `score` is no sum of scorers, and Python is not translated to Go');
  return scorerPlugin(score, source, file, (reason) => refuse(file, reason));
}

function noteLeft(others: object, why: string): void {
  const left = Object.keys(others).filter((name) => name !== 'ties');
  if (left.length > 0) console.error(`note: ${left.join(', ')} left out: ${why}`);
}
