import { basename, join } from 'node:path';
import {
  type FittedWorkload,
  fitWorkload,
  type PublicWorkloadId,
  publicWorkload,
} from '@servegym/environments';
import { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/traces';
import { readTraffic } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { type Column, printResult, table } from '../output/print-result.ts';
import { writeJsonFile } from '../output/write-output-file.ts';

/** Files of the public traces that the shipped models are fitted to. */
const PUBLIC_TRACES: Readonly<Record<PublicWorkloadId, ReferenceFile>> = {
  'azure-conversation-2023': REFERENCE_DATA.azureConversation,
  'azure-code-2023': REFERENCE_DATA.azureCode,
  'mooncake-conversation': REFERENCE_DATA.mooncakeConversation,
  ragpulse: REFERENCE_DATA.ragPulse,
};

/** `servegym traffic fit`: models of traffic, fitted to traces. */
export const fitCommand = () =>
  defineCommand({
    name: 'fit',
    description: 'fit a model to each trace, and say how near it comes',
    words: { files: { value: '[files...]', help: 'files of requests' } },
    options: {
      data: {
        value: '<folder>',
        help: 'the public traces behind the models, as docs/reference-data.md describes them',
      },
      id: { value: '<name>', help: 'how the model is called; with one file' },
      out: { value: '<folder>', help: 'write each model into this folder, as <id>.json' },
      json: { help: 'print one JSON array' },
    },
    async action({ files, data, id, out, json }) {
      const traces = [
        ...files.map((file) => {
          const name = id ?? basename(file).replace(/\.[^.]+$/, '');
          return { file, identity: { id: name, title: name, source: basename(file) } };
        }),
        ...(data === undefined ? [] : publicTraces(data)),
      ];
      if (traces.length === 0) throw new InputError('expected traces, or a folder of them with --data');
      if (id !== undefined && traces.length > 1) throw new InputError('expected one file with --id');
      const models: FittedWorkload[] = [];
      for (const { file, identity } of traces) {
        const model = fitWorkload((await readTraffic(file)).trace, identity);
        models.push(model);
        if (out !== undefined) await writeJsonFile(join(out, `${model.id}.json`), model);
      }
      printResult(json, models, { text: trafficTable });
    },
  });

function publicTraces(folder: string) {
  const files = findReferenceFiles(folder, Object.values(PUBLIC_TRACES));
  return (Object.keys(PUBLIC_TRACES) as PublicWorkloadId[]).map((id, i) => {
    const { title, source } = publicWorkload(id);
    return { file: files[i], identity: { id, title, source } };
  });
}

/** Figures of the models, and their distances to their traces. */
export function trafficTable(models: readonly FittedWorkload[]): string {
  const name: Column<FittedWorkload>[1] = ({ id }) => id;
  const distance = (heading: string, of: (fit: FittedWorkload['fit']) => number): Column<FittedWorkload> => [
    heading,
    ({ fit }) => of(fit).toFixed(3),
  ];
  const scales = [...new Set(models.flatMap(({ fit }) => fit.dispersion.map(({ seconds }) => seconds)))];
  return [
    ...table(models, [
      ['traffic', name],
      ['requests', ({ requests }) => `${requests}`],
      ['rate /s', ({ arrivals }) => arrivals.perSecond.toFixed(2)],
      ['prompt p50', ({ lengths }) => quantile(lengths, lengths.input, 0.5)],
      ['p99', ({ lengths }) => quantile(lengths, lengths.input, 0.99)],
      ['output p50', ({ lengths }) => quantile(lengths, lengths.output, 0.5)],
      ['p99', ({ lengths }) => quantile(lengths, lengths.output, 0.99)],
      [
        'shared prefix',
        ({ prefixes }) => (prefixes === null ? '-' : `${(100 * prefixes.cacheableShare).toFixed(0)} %`),
      ],
    ]),
    '',
    ...table(models, [
      ['KS distance', name],
      distance('prompt', ({ ks }) => ks.input),
      distance('held out', ({ heldOut }) => heldOut.input),
      distance('of halves', ({ heldOut }) => heldOut.halvesInput),
      distance('output', ({ ks }) => ks.output),
      distance('held out', ({ heldOut }) => heldOut.output),
      distance('of halves', ({ heldOut }) => heldOut.halvesOutput),
      distance('counts', ({ ks }) => ks.counts),
      distance('gaps', ({ ks }) => ks.gaps),
    ]),
    '',
    ...table(models, [
      ['variance / mean of arrivals, trace | model', name],
      ...scales.map(
        (scale): Column<FittedWorkload> => [
          `${scale} s`,
          ({ fit }) => {
            const at = fit.dispersion.find(({ seconds }) => seconds === scale);
            return at === undefined ? '-' : `${at.trace.toPrecision(3)} | ${at.model.toPrecision(3)}`;
          },
        ],
      ),
    ]),
  ].join('\n');
}

function quantile(
  { probabilities }: FittedWorkload['lengths'],
  quantiles: readonly number[],
  probability: number,
): string {
  const distances = probabilities.map((p) => Math.abs(p - probability));
  return `${quantiles[distances.indexOf(Math.min(...distances))]}`;
}
