import { ROUTER_POLICIES } from '@servegym/simulator';
import { Command, Option } from 'commander';
import { addDrawnRequests, MOST_REQUESTS } from '../arguments/drawn-requests.ts';
import { addEngineOptions } from '../arguments/engine-options.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readProfile } from '../arguments/read-input-file.ts';
import { withSchedulerOptions } from '../arguments/scheduler-options.ts';
import { addTraceOptions } from '../arguments/trace-arguments.ts';
import { requireWritable } from '../output/write-output-file.ts';
import { parseChange, parseShares, parseSplit, parseTenant } from './serving-changes.ts';
import { simulateAsRead } from './simulate-as-read.ts';
import { type SimulateOptions, withHostKv } from './simulate-options.ts';
import { needsWholeTrace, simulateWhole } from './simulate-whole.ts';
import { simulationJson, simulationTable } from './simulation-report.ts';

/** `servegym simulate`: a trace, or a batch that is all there at the start, on one simulated engine. */
export function simulateCommand(): Command {
  const command = new Command('simulate')
    .description('serve a trace on a simulated engine and report its latencies')
    .requiredOption('--profile <name|file.json>', 'engine profile (see `servegym profiles`)')
    .option(
      '--trace <file>',
      'requests to serve: CSV, JSON lines, Parquet or a result of vllm bench serve or GuideLLM',
    )
    .addOption(
      new Option('--rate-scale <factor>', 'let the requests arrive this many times as fast')
        .default(1)
        .argParser(numberAbove(0)),
    )
    .addOption(
      new Option('--limit <n>', 'serve only the first n requests').argParser(wholeNumber(1, MOST_REQUESTS)),
    )
    .addOption(
      new Option('--repeat-to <n>', 'play the trace over and over, until n requests')
        .argParser(wholeNumber(1, MOST_REQUESTS))
        .conflicts('limit'),
    )
    .addOption(
      new Option('--closed-batch <n>', 'instead of a trace: n requests that are all there at the start')
        .argParser(wholeNumber(1, MOST_REQUESTS))
        .conflicts(['trace', 'limit', 'repeatTo', 'concurrency']),
    )
    .addOption(
      new Option('--requests <n>', 'requests to draw with --concurrency (default: 10 times that)')
        .argParser(wholeNumber(1, MOST_REQUESTS))
        .conflicts(['trace', 'limit', 'repeatTo']),
    );
  return addTraceOptions(
    addEngineOptions(addDrawnRequests(command))
      .addOption(
        new Option('--replicas <n>', 'engines that serve the trace together')
          .default(1)
          .argParser(wholeNumber(1, 1024)),
      )
      .addOption(
        new Option('--router <policy>', 'how requests are spread over the replicas')
          .choices(ROUTER_POLICIES)
          .default('round_robin'),
      )
      .addOption(
        new Option('--kv-blocks <n>', 'KV blocks of each pool, instead of a share of the memory')
          .argParser(wholeNumber(1, 2 ** 30))
          .conflicts('kvBudgetFraction'),
      )
      .option('--acceptance <text>', 'kind of text that draft tokens are accepted as in (default: sharegpt)')
      .addOption(
        new Option(
          '--priority-shares <shares>',
          'priority classes drawn for the requests, the most urgent first, for instance 0.2,0.8',
        ).argParser(parseShares),
      )
      .addOption(
        new Option(
          '--split [prefill:decode]',
          'engines that prefill and send the KV over, and engines that decode (default: 1:1)',
        )
          .preset('1:1')
          .argParser(parseSplit)
          .conflicts('replicas'),
      )
      .addOption(
        new Option(
          '--change <s:setting=value,...>',
          'two GPUs; settings change at second s: max-num-seqs, kv-budget-fraction, speculation-depth, weights, policy, split; may be repeated',
        )
          .argParser(parseChange)
          .conflicts(['replicas', 'router', 'kvBlocks']),
      )
      .addOption(
        new Option(
          '--tenant <s:GiB>',
          'two GPUs; from second s on, co-located tenants take this much memory of each GPU; may be repeated',
        )
          .argParser(parseTenant)
          .conflicts(['replicas', 'router', 'kvBlocks']),
      )
      .addOption(
        new Option('--no-prefix-caching', 'do not look for cached prefixes of prompts').conflicts(
          'kvOffloadingSize',
        ),
      )
      .addOption(
        new Option(
          '--kv-offloading-size <GiB>',
          'memory of the host, for all GPUs of an engine together, that keeps copies of the KV of prompts',
        ).argParser(numberAbove(0, 1e6)),
      )
      .addOption(
        new Option(
          '--kv-offloading-bandwidth <GB/s>',
          'from the host to one GPU (default: that of the profile, else 25, as PCIe 4.0 reaches)',
        ).argParser(numberAbove(0, 1e6)),
      )
      .option(
        '--chrome-trace <file.json>',
        'write the run for Perfetto (ui.perfetto.dev) or chrome://tracing',
      )
      .option(
        '--requests-file <file>',
        'write a row for each request: JSON lines when it ends in .jsonl, Parquet when in .parquet, else CSV',
      )
      .addOption(
        new Option('--seed <n>', 'seed of drawn lengths and of the acceptance of draft tokens')
          .default(0)
          .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
      )
      .option('--json', 'print one JSON object', false)
      .addHelpText(
        'after',
        `
Examples:
  servegym simulate --profile a100-40gb-llama-3-8b --trace azure-llm-2023-conv.csv --rate-scale 2
  servegym simulate --profile mine.json --closed-batch 64 --input-tokens 1024 --output-tokens 1024 --weights INT8
  servegym simulate --profile mine.json --concurrency 32 --requests 320 --input-tokens 1024 --output-tokens 1024 --length-range 0.8
  servegym simulate --profile h100-80gb-llama-3-8b --trace trace.csv --split --chrome-trace run.json
  servegym simulate --profile h100-80gb-llama-3-8b --trace trace.csv --split 2:1 --router least_loaded
  servegym simulate --profile a100-40gb-llama-3-8b --trace trace.csv --change 60:weights=INT8 --tenant 120:12 --tenant 180:0

Latencies: TTFT from arrival to first token, TPOT over the tokens after it, end to end to the last.
Wall time is that of the simulation, without reading the trace.`,
      )
      .action(simulate),
  );
}

async function simulate(options: SimulateOptions): Promise<void> {
  const profile = withHostKv(withSchedulerOptions(await readProfile(options.profile), options), options);
  await requireWritable(options.chromeTrace);
  await requireWritable(options.requestsFile);
  const simulation = await (needsWholeTrace(options)
    ? simulateWhole(profile, options)
    : simulateAsRead(profile, options));
  console.log(
    options.json ? JSON.stringify(simulationJson(simulation), null, 2) : simulationTable(simulation),
  );
}
