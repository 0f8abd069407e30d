import { TensorFileError, TrainedPolicyError } from '@servegym/agents';
import { InputError } from '../input-error.ts';

/** Reads a file that `servegym train` wrote. @throws InputError where it has nothing for this version of the environment */
export function decodeTrained<Decoded>(path: string, decode: () => Decoded): Decoded {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof TensorFileError || error instanceof TrainedPolicyError)) throw error;
    throw new InputError(`${path}: ${error.message}`);
  }
}
