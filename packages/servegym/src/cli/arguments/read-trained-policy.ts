import { loadTrainedPolicy, TensorFileError, type TrainedPolicy, TrainedPolicyError } from '@servegym/agents';
import { InputError } from '../input-error.ts';
import { readInputBytes } from './read-input-file.ts';

/** A policy that `servegym train` wrote. @throws InputError when the file has none for this version of the environment */
export async function readTrainedPolicy(path: string): Promise<TrainedPolicy> {
  const bytes = await readInputBytes(path);
  try {
    return loadTrainedPolicy(bytes);
  } catch (error) {
    if (!(error instanceof TensorFileError || error instanceof TrainedPolicyError)) throw error;
    throw new InputError(`${path}: ${error.message}`);
  }
}
