import { basename, join } from 'node:path';
import { type FittedWorkload, fitWorkload, type WorkloadIdentity } from '@servegym/environments';
import { findReferenceFiles, REFERENCE_DATA, type ReferenceFile } from '@servegym/operators/traces';
import { readTraffic } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { InputError } from '../input-error.ts';
import { printResult } from '../output/print-result.ts';
import { writeJsonFile } from '../output/write-output-file.ts';
import { trafficTable } from './traffic-report.ts';

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
      printResult(
        json,
        () => models,
        () => trafficTable(models),
      );
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
