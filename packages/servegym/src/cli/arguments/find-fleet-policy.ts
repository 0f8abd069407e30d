import { createFleetPolicy, type FleetPolicy, loadFleetPolicy } from '@servegym/agents';
import { decodeInputFile } from './read-input-file.ts';

/** The policy of `fleet` of that name, or in that file with the task it was trained for. @throws AgentError or InputError */
export async function findFleetPolicy(
  nameOrFile: string,
): Promise<{ readonly policy: FleetPolicy; readonly taskId?: string }> {
  if (!/[./\\]/.test(nameOrFile.split(':')[0]!)) return { policy: createFleetPolicy(nameOrFile) };
  return decodeInputFile(nameOrFile, loadFleetPolicy);
}
