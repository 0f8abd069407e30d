import { definePolicy, type Policy, SimulatorError, startPolicy } from '@servegym/simulator';
import { InputError } from '../failure.ts';
import { readPolicySource } from './evaluate-policy.ts';

/** True for a word that names a module, and no file that training wrote. */
export function isPolicyModule(word: string): boolean {
  return /\.[cm]?[jt]s$/.test(word);
}

/** Makes each import a module of its own, with new state. */
let imports = 0;

/** The policy that a module of the user's own exports; it runs in this process. @throws InputError */
export async function importPolicy(path: string): Promise<Policy> {
  const source = await readPolicySource(path);
  Object.assign(globalThis, { definePolicy });
  try {
    const module = await import(`data:text/javascript,${encodeURIComponent(source)}#${imports++}`);
    if (module.default === undefined)
      throw new Error('expected `export default definePolicy({ ... })`, got none');
    startPolicy(module.default, path);
    return module.default;
  } catch (error) {
    const { message } = error as Error;
    const text = error instanceof SimulatorError ? message : `${path}: ${message}`;
    throw new InputError(text, { code: 'INVALID_FILE' });
  }
}
