import { startEndpoint } from '@servegym/endpoint';
import { Guard, isLoopback } from '@servegym/openenv';
import { Command, Option } from 'commander';
import { listenError } from '../../server/listen-error.ts';
import { stopOnSignals } from '../../server/stop-on-signals.ts';
import { addEngineOptions, type EngineOptions, runningLimit } from '../arguments/engine-options.ts';
import { numberAbove, wholeNumber } from '../arguments/options.ts';
import { readProfile } from '../arguments/read-input-file.ts';
import { withSchedulerOptions } from '../arguments/scheduler-options.ts';
import { allowedHosts, withBoundName } from '../arguments/server-options.ts';
import { optionOf } from '../command-table.ts';

interface EndpointCommandOptions extends EngineOptions {
  readonly profile: string;
  readonly port: number;
  readonly host: string;
  readonly engines: 1 | 2;
  readonly acceptance: string;
  readonly split: boolean;
  readonly prefixCaching: boolean;
  readonly servedModelName?: readonly string[];
  readonly maxModelLen?: number;
  readonly timeScale: number;
  readonly apiKey: readonly string[];
  readonly allowedHosts: readonly (readonly string[])[];
  readonly drainTimeout: number;
  readonly seed: number;
}

const MOST_TOKENS = 10_000_000;

/** `servegym endpoint`: a simulated engine behind the OpenAI API, until a signal ends it. */
export function endpointCommand(): Command {
  const command = new Command('endpoint')
    .description(
      'serve a simulated engine over the OpenAI API, in real time, for clients and load generators',
    )
    .option('--profile <name|file.json>', 'engine profile (see `servegym profiles`)', 'a100-40gb-llama-3-8b')
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 takes any free one')
        .env('PORT')
        .default(8000)
        .argParser(wholeNumber(0, 65535)),
    )
    .addOption(
      new Option('--host <address>', 'address to listen on; 0.0.0.0 is all of them')
        .env('HOST')
        .default('127.0.0.1'),
    )
    .addOption(
      new Option(
        '--api-key <text>',
        'a key that requests must carry (authorization: Bearer); may be repeated',
      )
        .env('SERVEGYM_ENDPOINT_API_KEY')
        .argParser((text: string, before: readonly string[]) => [...before, ...text.split(',')])
        .default([], 'everybody'),
    )
    .addOption(optionOf('allowedHosts', allowedHosts))
    .option(
      '--served-model-name <names...>',
      "names that requests may use for the model (default: the profile's model and the profile)",
    )
    .addOption(
      new Option('--time-scale <factor>', 'let simulated time pass this many times as fast')
        .default(1)
        .argParser(numberAbove(0, 1000)),
    )
    .addOption(
      new Option('--drain-timeout <seconds>', 'how long requests may continue when it stops')
        .default(5)
        .argParser(wholeNumber(0, 86_400)),
    )
    .optionsGroup(
      'The engine, as in `simulate`; GET /admin/knobs lists those that can be changed while it serves:',
    )
    .addOption(
      new Option('--engines <n>', '1, or 2 behind a round-robin router, which can split prefill and decode')
        .default(1)
        .argParser((text) => wholeNumber(1, 2)(text)),
    )
    .addOption(
      new Option(
        '--max-model-len <n>',
        "most tokens of a prompt and its reply together (default: the model's context, or what the KV pool holds if that is less)",
      ).argParser(wholeNumber(2, MOST_TOKENS)),
    );
  return addEngineOptions(command)
    .option('--acceptance <table>', "which of the profile's acceptance tables holds", 'sharegpt')
    .option('--split', 'one engine prefills and the other decodes; needs --engines 2', false)
    .option('--no-prefix-caching', 'do not look for cached prefixes of prompts (two engines never do)')
    .addOption(
      new Option('--seed <n>', 'seed of the replies and of the acceptance of draft tokens')
        .default(0)
        .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER)),
    )
    .addHelpText(
      'after',
      `
Examples:
  servegym endpoint --profile h100-80gb-llama-3-8b
  curl -N localhost:8000/v1/completions -H 'content-type: application/json' \\
    -d '{"prompt": "Once", "max_tokens": 20, "ignore_eos": true, "stream": true}'
  curl -X PATCH localhost:8000/admin/knobs -H 'content-type: application/json' -d '{"max_num_seqs": 32}'

A token is four characters of text. Replies are words without meaning.`,
    )
    .action(endpoint);
}

async function endpoint(options: EndpointCommandOptions): Promise<void> {
  const { host } = options;
  const guard = new Guard({ allowedHosts: withBoundName(options.allowedHosts.flat(), host) });
  const endpoint = await startEndpoint({
    profile: withSchedulerOptions(await readProfile(options.profile), options),
    config: {
      maxNumSeqs: runningLimit(options),
      kvBudgetFraction: options.kvBudgetFraction,
      speculationDepth: options.speculationDepth,
      weights: options.weights,
      split: options.split,
      schedulingPolicy: options.policy,
    },
    engines: options.engines,
    maxNumBatchedTokens: options.maxNumBatchedTokens,
    acceptance: options.acceptance,
    prefixCaching: options.prefixCaching,
    modelNames: options.servedModelName,
    maxModelLen: options.maxModelLen,
    timeScale: options.timeScale,
    onLate: ({ lateMs, allowedMs, fittingScale }) => {
      const scale = Math.floor(fittingScale);
      const advice =
        scale >= 1 && options.timeScale > 1
          ? `--time-scale ${options.timeScale} is too fast for this machine as it is: use ${scale} or less`
          : 'this machine is too busy: end other programs';
      console.error(
        `warning: tokens are handed out ${lateMs.toFixed(1)} ms of simulated time late, more than ${allowedMs} ms; ${advice}`,
      );
    },
    apiKeys: options.apiKey,
    seed: options.seed,
    port: options.port,
    host,
    refuse(request, path) {
      const refusal = guard.check(request, path);
      return refusal && { ...refusal, code: refusal.code.toLowerCase() };
    },
  }).catch((error) => {
    throw listenError(error, options.port, host);
  });
  console.log(`The endpoint is ready: ${endpoint.url}/v1 serves ${endpoint.modelNames[0]} (Ctrl-C stops it)`);
  if (!isLoopback(endpoint.address)) {
    console.log(`It listens on ${endpoint.address}, port ${endpoint.port}: other machines can reach it`);
    if (options.apiKey.length === 0) {
      console.error(
        'warning: the endpoint asks for no key: anyone who reaches this machine can use it. Set SERVEGYM_ENDPOINT_API_KEY, or listen on 127.0.0.1',
      );
    }
  }
  await stopOnSignals(
    {
      heldSessions: 0,
      drain(drainOptions) {
        const { liveRequests } = endpoint;
        if (liveRequests > 0 && drainOptions.graceMs > 0) {
          console.log(
            `Stopping: waiting up to ${drainOptions.graceMs / 1000} s for ${liveRequests} requests. A second signal stops at once.`,
          );
        }
        return endpoint.drain(drainOptions);
      },
      close: () => endpoint.close(),
    },
    { graceMs: options.drainTimeout * 1000, say: console.log },
  );
}
