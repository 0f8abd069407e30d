import { basename, join } from 'node:path';
import { type FittedWorkload, fitWorkload, type WorkloadIdentity } from '@servegym/environments';
import { alignedRows } from '@servegym/operators/report';
import { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/traces';
import { readTraffic } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { InputError } from '../failure.ts';
import { printResult } from '../output/print-result.ts';
import { writeJsonFile } from '../output/write-output-file.ts';

/** The public traces that workloads are fitted to. */
const PUBLIC_TRACES: readonly (WorkloadIdentity & { readonly file: ReferenceFile })[] = [
  {
    id: 'azure-conversation-2023',
    title: 'Azure, conversation, November 2023',
    source: 'AzureLLMInferenceTrace_conv (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureConversation,
  },
  {
    id: 'azure-code-2023',
    title: 'Azure, code completion, November 2023',
    source: 'AzureLLMInferenceTrace_code (Azure/AzurePublicDataset, CC-BY-4.0)',
    file: REFERENCE_DATA.azureCode,
  },
  {
    id: 'mooncake-conversation',
    title: 'Mooncake (Kimi), conversation, 2024',
    source: 'conversation_trace (kvcache-ai/Mooncake, Apache-2.0)',
    file: REFERENCE_DATA.mooncakeConversation,
  },
  {
    id: 'ragpulse',
    title: 'RAGPulse, answers from documents, 2025',
    source: 'RAGPulse (flashserve/RAGPulse, MIT)',
    file: REFERENCE_DATA.ragPulse,
  },
];

/** `servegym traffic fit`: models of traffic, fitted to traces. */
export function fitCommand() {
  return defineCommand({
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
}

function publicTraces(folder: string) {
  const files = findReferenceFiles(
    folder,
    PUBLIC_TRACES.map(({ file }) => file),
  );
  return PUBLIC_TRACES.map(({ file: _, ...identity }, i) => ({ file: files[i], identity }));
}

/** Figures of the models, and their distances to their traces. */
export function trafficTable(models: readonly FittedWorkload[]): string {
  const summary = alignedRows([
    ['traffic', 'requests', 'rate /s', 'prompt p50', 'p99', 'output p50', 'p99', 'shared prefix'],
    ...models.map(({ id, requests, arrivals, lengths, prefixes }) => [
      id,
      `${requests}`,
      arrivals.perSecond.toFixed(2),
      quantile(lengths, lengths.input, 0.5),
      quantile(lengths, lengths.input, 0.99),
      quantile(lengths, lengths.output, 0.5),
      quantile(lengths, lengths.output, 0.99),
      prefixes === null ? '-' : `${(100 * prefixes.cacheableShare).toFixed(0)} %`,
    ]),
  ]);
  const distances = alignedRows([
    ['KS distance', 'prompt', 'held out', 'of halves', 'output', 'held out', 'of halves', 'counts', 'gaps'],
    ...models.map(({ id, fit: { ks, heldOut } }) => [
      id,
      ...[
        ...[ks.input, heldOut.input, heldOut.halvesInput],
        ...[ks.output, heldOut.output, heldOut.halvesOutput],
        ...[ks.counts, ks.gaps],
      ].map((distance) => distance.toFixed(3)),
    ]),
  ]);
  const scales = [...new Set(models.flatMap(({ fit }) => fit.dispersion.map(({ seconds }) => seconds)))];
  const dispersion = alignedRows([
    ['variance / mean of arrivals, trace | model', ...scales.map((seconds) => `${seconds} s`)],
    ...models.map(({ id, fit }) => [
      id,
      ...scales.map((scale) => {
        const at = fit.dispersion.find(({ seconds }) => seconds === scale);
        return at === undefined ? '-' : `${at.trace.toPrecision(3)} | ${at.model.toPrecision(3)}`;
      }),
    ]),
  ]);
  return [...summary, '', ...distances, '', ...dispersion].join('\n');
}

function quantile(
  { probabilities }: FittedWorkload['lengths'],
  quantiles: readonly number[],
  probability: number,
): string {
  const nearest = probabilities.reduce(
    (best, p, i) => (Math.abs(p - probability) < Math.abs(probabilities[best] - probability) ? i : best),
    0,
  );
  return `${quantiles[nearest]}`;
}
