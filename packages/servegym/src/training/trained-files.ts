import { join } from 'node:path';

/** Where a trained network lies in its folder, for agents, for ONNX runtimes, and to go on with. */
export function networkFiles(folder: string) {
  return {
    policy: join(folder, 'policy.safetensors'),
    onnx: join(folder, 'policy.onnx'),
    checkpoint: join(folder, 'checkpoint.safetensors'),
  };
}

/** Where configurations that were searched lie in their folder. */
export function searchedFiles(folder: string) {
  return { policy: join(folder, 'policy.json') };
}
