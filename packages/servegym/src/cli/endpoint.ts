import { type RunningEndpoint, startEndpoint } from '@servegym/endpoint';
import { Guard } from '@servegym/openenv';
import { counted } from '@servegym/simulator';
import { listenError, stopOnSignals, tellOthers } from '../server/listening.ts';
import { deploymentOptions, isBareFlags, readDeployment, servingConfig } from './arguments/deployment.ts';
import { above, allowedHosts, listenOptions, whole, withBoundName } from './arguments/options.ts';
import { defineCommand, type OptionTable, type OptionValues } from './command-table.ts';
import { InputError } from './failure.ts';

const DEFAULT_PROFILE = 'a100-40gb-llama-3-8b';

const endpointOptions = {
  ...deploymentOptions,
  profile: {
    ...deploymentOptions.profile,
    help: `engine profile (default without a line: ${DEFAULT_PROFILE})`,
  },
  ...listenOptions(8000),
  apiKey: {
    value: '<text>',
    env: 'SERVEGYM_ENDPOINT_API_KEY',
    parse: (text: string) => text.split(','),
    repeated: true,
    help: 'key that requests must carry (authorization: Bearer); may be repeated',
  },
  allowedHosts: {
    ...allowedHosts,
    help: 'host names that clients may use beside localhost: gym.example.com, *.example.com, *',
  },
  servedModelName: {
    value: '<names...>',
    help: 'names of the model in requests (default: model and profile)',
  },
  engines: {
    value: '<n>',
    choices: ['1', '2'],
    default: '1',
    help: '2 stand behind a round-robin router, which can split prefill and decode',
  },
  replicas: whole('<n>', 1, 64, 'equal endpoints, each on a port of its own, from --port on', 1),
  split: { help: 'one engine prefills and the other decodes; needs --engines 2' },
  acceptance: {
    value: '<table>',
    default: 'sharegpt',
    help: "which of the profile's acceptance tables holds",
  },
  timeScale: above('<factor>', 0, 1000, 'let simulated time pass this many times as fast', 1),
  drainTimeout: whole('<seconds>', 0, 86_400, 'how long requests may continue when it stops', 5),
  seed: whole('<n>', 0, Number.MAX_SAFE_INTEGER, 'seed of the replies and of accepted draft tokens', 0),
} as const satisfies OptionTable;

export const endpointCommand = () =>
  defineCommand({
    options: endpointOptions,
    after: `Examples:
  servegym endpoint --deployment 'vllm serve Qwen/Qwen3-8B --max-num-seqs 128' --gpu h100
  curl -N localhost:8000/v1/completions -H 'content-type: application/json' \\
    -d '{"prompt": "Once", "max_tokens": 20, "ignore_eos": true, "stream": true}'

A token is four characters of text. GET /admin/knobs lists the settings that can be changed while it serves.`,
    action: endpoint,
  });

async function endpoint(options: OptionValues<typeof endpointOptions>): Promise<void> {
  const { host } = options;
  const engines = options.engines === '2' ? 2 : 1;
  const hosts = options.allowedHosts.flat();
  const apiKeys = options.apiKey.flat();
  const { profile: named = isBareFlags(options.deployment) ? DEFAULT_PROFILE : undefined } = options;
  const deployment = await readDeployment(options.deployment, { ...options, profile: named });
  const { settings, kvBlocks, notSimulated } = deployment;
  for (const flag of [...notSimulated, ...(kvBlocks === undefined ? [] : ['--num-gpu-blocks-override'])])
    console.error(`not simulated: ${flag}`);
  if (options.port + options.replicas - 1 > 65_535)
    throw new InputError(
      `expected --port of at most ${65_536 - options.replicas} for ${options.replicas} replicas, got ${options.port}`,
    );
  const guard = new Guard({ allowedHosts: withBoundName(hosts, host) });
  const of = (port: number): Parameters<typeof startEndpoint>[0] => ({
    profile: deployment.profile,
    config: { ...servingConfig(deployment), split: options.split },
    engines,
    maxNumBatchedTokens: settings.maxNumBatchedTokens,
    acceptance: options.acceptance,
    prefixCaching: settings.prefixCaching,
    modelNames: options.servedModelName.length === 0 ? undefined : options.servedModelName,
    adapters: deployment.adapters?.modules,
    maxModelLen: deployment.maxModelLen,
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
    apiKeys,
    seed: options.seed,
    ...{ port, host },
    refuse(request, path) {
      const refusal = guard.check(request, path);
      return refusal && { ...refusal, code: refusal.code.toLowerCase() };
    },
  });
  const endpoints: RunningEndpoint[] = [];
  const each = async (stop: (endpoint: RunningEndpoint) => Promise<void>) => {
    await Promise.all(endpoints.map(stop));
  };
  for (let i = 0; i < options.replicas; i++) {
    const port = options.port === 0 ? 0 : options.port + i;
    const started = await startEndpoint(of(port)).catch(async (error) => {
      await each((endpoint) => endpoint.close());
      throw listenError(error, port, host);
    });
    endpoints.push(started);
  }
  const [endpoint] = endpoints;
  for (const [i, { url }] of endpoints.entries()) if (i > 0) console.log(`Replica ${i + 1}: ${url}/v1`);
  console.log(`The endpoint is ready: ${endpoint.url}/v1 serves ${endpoint.modelNames[0]} (Ctrl-C stops it)`);
  const isOpen = apiKeys.length === 0;
  for (const listening of endpoints)
    tellOthers(listening, isOpen && 'the endpoint asks for no key', 'SERVEGYM_ENDPOINT_API_KEY');
  await stopOnSignals(
    {
      heldSessions: () => endpoints.reduce((sum, { liveRequests }) => sum + liveRequests, 0),
      drain: (drainOptions) => each((endpoint) => endpoint.drain(drainOptions)),
      close: () => each((endpoint) => endpoint.close()),
    },
    {
      ...{ graceMs: options.drainTimeout * 1000, say: console.log },
      held: (requests) => counted(requests, 'request'),
    },
  );
}
