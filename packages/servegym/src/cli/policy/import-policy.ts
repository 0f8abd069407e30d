import {
  definePolicy,
  type Policy,
  type PolicyFunctions,
  SimulatorError,
  startPolicy,
} from '@servegym/simulator';
import { invalidFile } from '../failure.ts';
import { readInputFile } from '../files.ts';
import { policySource } from './evaluate-policy.ts';
import { isPython, playPython, pythonOf } from './python-guest.ts';

/** True for a word that names a module, and no file that training wrote. */
export function isPolicyModule(word: string): boolean {
  return isPython(word) || /\.[cm]?[jt]s$/.test(word);
}

/** Makes each import a module of its own, with new state. */
let imports = 0;

/** Time after which a call to a policy in Python is ended, s: a choice. */
const PYTHON_SECONDS = 10;

/** The policy that a module of the user's own exports; it runs in this process, or in one of Python. @throws InputError */
export async function importPolicy(path: string): Promise<Policy> {
  const text = await readInputFile(path);
  if (isPython(path)) return importPython(text, path);
  const source = policySource(text, path);
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
    throw invalidFile(text);
  }
}

/** Closes the process of a run that is forgotten. */
const forgotten = new FinalizationRegistry<() => void>((close) => close());

/** A policy in Python: a process for each run. @throws InputError */
function importPython(source: string, file: string): Policy {
  const start = () => {
    try {
      const policy = { source, file, seconds: PYTHON_SECONDS, python: pythonOf(process.env) };
      const { functions, close } = playPython(policy, (fleet) => fleet.random());
      forgotten.register(functions, close);
      return functions as PolicyFunctions;
    } catch (error) {
      throw invalidFile(`${file}: ${(error as Error).message}`);
    }
  };
  let next: PolicyFunctions | null = start();
  return () => {
    const functions = next ?? start();
    next = null;
    return functions;
  };
}
