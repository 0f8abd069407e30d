import { existsSync } from 'node:fs';
import { EvaluationRecord, parseSearchSpace, type SearchSpace, searchSpaceSchema } from '@servegym/operators';
import type { OptionTable, OptionValues } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { readInputFile } from '../files.ts';
import { codeVersion } from '../jobs.ts';
import { printResult } from '../output/print-result.ts';
import { within } from './options.ts';

/** What a search takes in, how accurate its weights are, and where its evaluations are kept. */
export const searchOptions = {
  search: {
    value: '<names|file.json>',
    help: 'dimensions to search: names, or a file of their values, which `print` prints, and `schema` the JSON Schema of it (default: `default`)',
  },
  quality: within('<share>', 0, 1, 'least accuracy of quantized weights, relative to FP16', 0.98),
  resume: {
    value: '<file>',
    writes: true,
    help: 'keep finished evaluations in the file, and take over its own',
  },
} as const satisfies OptionTable;

/**
 * The space that `--search` asks for; the whole of it without a name. `print` and `schema`: prints that, or its JSON Schema, and answers `undefined`.
 * @param base what `default` stands for
 * @param known values of every dimension of the command
 * @throws InputError or TuningError
 */
export async function readSearchSpace(
  text: string | undefined,
  base: SearchSpace,
  known: SearchSpace,
): Promise<SearchSpace | undefined> {
  if (text === 'print' || text === 'schema') {
    printResult(true, text === 'print' ? base : searchSpaceSchema(known), { text: String });
    return undefined;
  }
  if (text === undefined) return base;
  if (existsSync(text) || text.endsWith('.json'))
    return parseSearchSpace(await readInputFile(text), text, known);
  return Object.fromEntries(
    text.split(',').flatMap((part) => {
      const name = part.trim();
      if (name === 'default') return Object.entries(base);
      if (name in known) return [[name, known[name as keyof SearchSpace]]];
      throw new InputError(
        `--search: expected \`print\`, \`schema\`, a file, \`default\` or some of ${Object.keys(known).join(', ')}, got \`${name}\``,
      );
    }),
  );
}

/** Finished evaluations in the file of `--resume`. @throws InputError or TuningError */
export async function openRecord({
  resume,
}: OptionValues<typeof searchOptions>): Promise<EvaluationRecord | undefined> {
  if (resume === undefined) return undefined;
  const record = new EvaluationRecord(resume, codeVersion());
  if (record.size > 0)
    console.error(`${resume}: going on from ${record.size.toLocaleString('en-US')} evaluations`);
  return record;
}
