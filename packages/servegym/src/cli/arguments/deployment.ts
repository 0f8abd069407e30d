import { existsSync } from 'node:fs';
import { type Deployment, readLaunch, resolveLaunch, resolvePlan } from '@servegym/operators';
import type { EngineProfile } from '@servegym/simulator';
import type { OptionTable } from '../command-table.ts';
import { InputError } from '../input-error.ts';
import { readInputFile, readInputJson, readProfile } from './read-input-file.ts';

/** `--gpu` and `--profile`: where a deployment runs, in commands that take one. */
export const hardwareOptions = {
  gpu: { value: '<name>', help: 'GPU of the deployment, a part of its name: h100' },
  profile: {
    value: '<name|file.json>',
    help: 'engine profile, instead of one for the model and --gpu',
  },
} as const satisfies OptionTable;

/** A deployment of a command that takes one. */
export const deploymentOptions = {
  deployment: {
    value: '<line|file>',
    help: 'your `vllm serve` or SGLang line, or a file: with one, a Kubernetes manifest, Helm values, JSON of `plan`; with --profile also bare flags',
  },
  ...hardwareOptions,
} as const satisfies OptionTable;

/** Settings of an engine whose profile is named, and no line that starts it. */
const BARE = { maxNumSeqs: 256, maxNumBatchedTokens: 2048 };

/**
 * The deployment in a line, a file or bare flags; without a text, the profile's engine with its defaults.
 * @param options.name Name of a line in messages.
 * @throws InputError or TuningError
 */
export async function readDeployment(
  text: string | undefined,
  options: {
    readonly name?: string;
    readonly gpu?: string | undefined;
    readonly profile?: string | undefined;
  },
): Promise<Deployment> {
  const { gpu, name: option = 'deployment' } = options;
  const profile = options.profile === undefined ? undefined : await readProfile(options.profile);
  if (text === undefined || text.trimStart().startsWith('-')) {
    if (profile === undefined)
      throw new InputError(
        `--${option}: expected a \`vllm serve\` or SGLang line, or a file with one, and --gpu; or a --profile (\`servegym profile list\`)`,
      );
    // The checkpoint is that of the profile, in FP16 where no flag says otherwise.
    const launch = readLaunch(`vllm serve ./${profile.name} ${text ?? ''}`, option);
    return resolveLaunch(launch, { name: option, profile, defaults: BARE });
  }
  const isFile = existsSync(text);
  if (!isFile && !/\s/.test(text.trim())) throw new InputError(`--${option}: there is no file ${text}`);
  const name = isFile ? text : option;
  const content = isFile ? await readInputFile(text) : text;
  if (content.trimStart().startsWith('{')) {
    const value = isFile ? await readInputJson(text) : parsed(content, option);
    const named = async (each: string): Promise<EngineProfile> => profile ?? readProfile(each);
    return resolvePlan(Object(value), name, named);
  }
  return resolveLaunch(readLaunch(content, name), { name, profile, gpu });
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError(`${name}: no JSON: ${(error as Error).message}`);
  }
}
