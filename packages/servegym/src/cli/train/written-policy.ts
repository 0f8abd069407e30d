import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Algorithm, isNetworkAlgorithm, type PolicyFiles } from '@servegym/agents';

/** What came of a training. */
export interface TrainingReport {
  /** Windows played. */
  readonly steps: number;
  /** Mean return of an episode, as training last saw it; `null` when no episode ended. */
  readonly final_return: number | null;
  readonly files: { readonly policy: string; readonly [kind: string]: string };
}

/** Paths of a policy in its folder. */
export type PolicyPaths = Readonly<Record<keyof PolicyFiles, string>> | { readonly policy: string };

export function policyPaths(folder: string, algorithm: Algorithm): PolicyPaths {
  if (!isNetworkAlgorithm(algorithm)) return { policy: join(folder, 'policy.json') };
  return {
    policy: join(folder, 'policy.safetensors'),
    onnx: join(folder, 'policy.onnx'),
    checkpoint: checkpointPath(folder),
  };
}

export function checkpointPath(folder: string): string {
  return join(folder, 'checkpoint.safetensors');
}

/** Writes the files of a policy; the policy itself comes last, so that where it is, everything is. */
export function writePolicy(paths: PolicyPaths, files: PolicyFiles): void {
  const pathOf: Readonly<Record<string, string>> = paths;
  for (const [kind, file] of Object.entries(files)) replaceFile(pathOf[kind], file);
}

/** Writes a file; a crash leaves the one that was there. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.part`, bytes);
  renameSync(`${path}.part`, path);
}
