import { PUBLIC_WORKLOAD_IDS, publicWorkload } from '@servegym/environments';
import { describeTrace, type TraceReading } from '@servegym/simulator';
import { openTraffic, readingLine, readTraffic, trafficOptions, trafficWord } from '../arguments/traffic.ts';
import { defineCommand } from '../command-table.ts';
import { printResult } from '../output/print-result.ts';
import { traceDescriptionJson, traceDescriptionText } from './trace-description.ts';
import { trafficTable } from './traffic-report.ts';

/** `servegym traffic describe`: rates, bursts and lengths of a traffic; without one, the models that can be drawn. */
export function describeCommand() {
  return defineCommand({
    name: 'describe',
    description:
      'print rates, bursts, lengths and oddities of a traffic; without one, the models and their distance to their traces',
    words: { traffic: { ...trafficWord.traffic, value: '[traffic]' } },
    options: { seed: trafficOptions.seed, json: { help: 'print one JSON object' } },
    after: `Examples:
  servegym traffic describe AzureLLMInferenceTrace_conv.csv
  servegym traffic describe agents@2/s,30m`,
    async action({ traffic, seed, json }) {
      if (traffic === undefined) {
        const models = PUBLIC_WORKLOAD_IDS.map(publicWorkload);
        printResult(
          json,
          () => models,
          () => trafficTable(models),
        );
        return;
      }
      const { trace, reading } =
        traffic.kind === 'file' ? await readTraffic(traffic.file) : await drawn(traffic, seed);
      const name = traffic.kind === 'file' ? traffic.file : trace.source;
      const description = describeTrace(trace);
      printResult(
        json,
        () => traceDescriptionJson(name, reading, description),
        () => `${readingLine(name, reading, trace.arrivalMs.length)}\n\n${traceDescriptionText(description)}`,
      );
    },
  });
}

async function drawn(traffic: Parameters<typeof openTraffic>[0], seed: number) {
  const { trace } = await openTraffic(traffic, { seed });
  const reading: TraceReading = {
    ...{ format: 'drawn', columns: {}, arrivalUnit: 'ms', unanswered: 0, outOfOrder: 0 },
  };
  return { trace, reading };
}
