import { existsSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { above, whole } from '../arguments/options.ts';
import { defineCommand, type OptionTable, type OptionValues } from '../command-table.ts';
import { InputError, invalidFile, isInputError, untilInterrupted } from '../failure.ts';
import { readInputFile, writeOutputFile } from '../files.ts';
import { printResult } from '../output/print-result.ts';
import { showProgress } from '../output/progress.ts';
import { reportPage } from '../output/report-page.ts';
import type { PolicyEvaluator } from './evaluate-policy.ts';
import { isPython } from './python-guest.ts';
import pythonTemplates from './python-templates.json' with { type: 'json' };
import type { SuiteName } from './suite.ts';
import data from './suites.json' with { type: 'json' };
import templates from './templates.json' with { type: 'json' };
import { startTrials } from './trial-host.ts';

const SUITE_NAMES = Object.keys(data.suites) as SuiteName[];

export const options = {
  suite: { value: '<name>', help: 'the traces', choices: SUITE_NAMES, default: 'router' },
  split: {
    value: '<name>',
    help: 'train and validation are given, test is drawn from a secret',
    choices: ['train', 'validation', 'test'],
    default: 'validation',
  },
  secret: {
    value: '<file>',
    help: 'file with the secret of test traces (default: a new one, which is printed)',
  },
  traces: whole('<n>', 1, 1000, 'the first n traces of the split'),
  requests: whole('<n>', 100, 1_000_000, 'about so many requests a trace (default: 20,000)'),
  timeLimit: above('<s>', 0, 3600, 'processor seconds for a trace', 60),
  memory: whole('<MiB>', 128, 65_536, 'memory of the process of a trace', 1024),
  json: { help: 'print one JSON object' },
} as const satisfies OptionTable;

export const evaluateCommand = () =>
  defineCommand({
    words: { file: { value: '<file>', help: 'module of a policy (.ts, .js or .py)' } },
    options: {
      ...options,
      watch: { help: 'print the score at each save' },
      worstMinute: { help: 'show the minute in which most is lost against the default, beside the default' },
      report: {
        value: '<file.html>',
        writes: true,
        help: 'write the score and that minute, second by second, as a page',
      },
    },
    after: `Examples:
  servegym policy new router my-router.ts
  servegym policy evaluate my-router.ts --suite router
  servegym policy evaluate my-router.ts --split test --json`,
    async action({ file, watch: watches, worstMinute: showsMinute, report: page, json, ...given }) {
      await withEvaluator(given, async (evaluator, secret) => {
        const { evaluationForm, evaluationPage, policyReport } = await import('./report.ts');
        const evaluate = async () => {
          const evaluation = await evaluator.evaluate(file, showTraces);
          const minute = showsMinute || page ? await evaluator.worstMinute(evaluation) : undefined;
          const report = policyReport(evaluation, secret, minute);
          if (page !== undefined) await writeOutputFile(page, [reportPage(evaluationPage(report))]);
          return report;
        };
        if (!watches) return printResult(json, await evaluate(), evaluationForm);
        await atEachSave(file, async () => {
          const { combinedScore, ci95, faults } = await evaluate();
          const [score, low, high] = [combinedScore, ...ci95].map((figure) => figure.toFixed(3));
          console.log([`${score} (${low} to ${high})`, ...faults.map(({ message }) => message)].join('; '));
        });
      });
    },
  });

export const compareCommand = () =>
  defineCommand({
    words: { first: { value: '<a>', help: 'a policy' }, second: { value: '<b>', help: 'another one' } },
    options,
    async action({ first, second, json, ...given }) {
      await withEvaluator(given, async (evaluator, secret) => {
        const { comparePolicies, comparisonForm } = await import('./report.ts');
        const a = await evaluator.evaluate(first, showTraces);
        const b = await evaluator.evaluate(second, showTraces);
        printResult(json, comparePolicies(a, b, secret), comparisonForm);
      });
    },
  });

export const newCommand = () =>
  defineCommand({
    words: {
      kind: {
        value: '<kind>',
        help: 'what it decides',
        choices: Object.keys(templates) as (keyof typeof templates)[],
      },
      file: { value: '[file]', help: 'where it is written (default: <kind>.ts, or <kind>.py)' },
    },
    options: { python: { help: 'in Python, as for a file that ends with .py' } },
    async action({ kind, python, file = `${kind}.${python ? 'py' : 'ts'}` }) {
      if (existsSync(file)) throw new InputError(`expected a file that is not there yet, got ${file}`);
      if (python && !isPython(file)) throw new InputError(`expected a file that ends with .py, got ${file}`);
      const lines = (isPython(file) ? pythonTemplates : templates)[kind];
      await writeOutputFile(file, [`${lines.join('\n')}\n`]);
      console.log(`${file} is there. Next: servegym policy evaluate ${file} --suite ${kind}`);
    },
  });

export async function withEvaluator<Result>(
  {
    suite,
    split,
    secret: secretFile,
    traces: most,
    requests,
    ...given
  }: Omit<OptionValues<typeof options>, 'json'>,
  use: (evaluator: PolicyEvaluator, secret: string | undefined) => Promise<Result>,
): Promise<Result> {
  if (secretFile !== undefined && split !== 'test')
    throw new InputError('expected --secret with --split test: the other traces are given');
  const told = secretFile === undefined ? undefined : (await readInputFile(secretFile)).trim();
  if (told !== undefined && !/^[0-9a-f]{64}$/.test(told))
    throw invalidFile(`expected 64 hexadecimal digits in ${secretFile}, got ${told.length} characters`);
  const limits = { requests, seconds: given.timeLimit, memoryMiB: given.memory };
  // They start while this process loads what draws the traces.
  const trials = startTrials(limits, Math.min(most ?? Infinity, data.suites[suite].train.length));
  try {
    const { PolicyEvaluator } = await import('./evaluate-policy.ts');
    const { drawSecret, tracesOf } = await import('./suite.ts');
    const secret = told ?? drawSecret();
    const traces = tracesOf(suite, split, secret).slice(0, most);
    const evaluator = new PolicyEvaluator(suite, split, traces, limits, trials);
    return await use(evaluator, split === 'test' ? secret : undefined);
  } finally {
    for (const each of trials) each.close();
  }
}

export function showTraces(done: number, of: number): void {
  showProgress(done < of ? `served ${done} of ${of} traces` : '');
}

/** Runs at each change of a file until Ctrl-C; what is wrong with one is told, and the next one waited for. */
async function atEachSave(file: string, run: () => Promise<void>): Promise<void> {
  const { signal, close } = untilInterrupted();
  const saves = watch(file, { signal });
  let last = '';
  try {
    do {
      const text = await readInputFile(file);
      if (text === last) continue;
      last = text;
      await run().catch((error) => {
        if (!isInputError(error)) throw error;
        console.error(error.message);
      });
    } while (!(await saves.next()).done);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    close();
  }
}
