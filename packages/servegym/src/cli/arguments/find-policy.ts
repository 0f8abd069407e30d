import {
  createPolicy,
  listPolicies,
  loadTrainedPolicy,
  type ServePolicy,
  SHIPPED_FORMATS,
  whyNotShipped,
} from '@servegym/agents';
import { llmserve } from '@servegym/environments';
import { InputError } from '../input-error.ts';
import { decodeInputFile } from './read-input-file.ts';

/** A policy as somebody named it on the command line, and the tasks that it can play. */
export interface FoundPolicy {
  readonly policy: ServePolicy;
  /** Its name in the catalogue, or its file: jobs load it from there. */
  readonly source: string | Uint8Array;
  readonly taskIds: readonly string[];
}

/** The policy of that name, or in that file. @throws InputError when there is neither. */
export async function findPolicy(nameOrFile: string): Promise<FoundPolicy> {
  const names = listPolicies().map((policy) => policy.name);
  if (names.includes(nameOrFile)) {
    const taskIds = Object.hasOwn(SHIPPED_FORMATS, nameOrFile)
      ? llmserve.tasks.shippedIds
      : llmserve.tasks.ids();
    return { policy: createPolicy(nameOrFile), source: nameOrFile, taskIds };
  }
  if (!/[./\\]/.test(nameOrFile)) {
    throw new InputError(
      whyNotShipped(nameOrFile) ??
        `expected a policy named one of ${names.join(', ')}, or a file that \`servegym train\` wrote, got ${nameOrFile}`,
    );
  }
  return decodeInputFile(nameOrFile, (source) => {
    const { policy, taskId } = loadTrainedPolicy(source);
    return { policy, source, taskIds: [taskId] };
  });
}

/**
 * The tasks to play: the one asked for, or `all` that every policy can play.
 * @throws InputError when there is no such task, or a policy cannot play it
 */
export function tasksFor(asked: string, policies: readonly FoundPolicy[]): readonly string[] {
  const known = llmserve.tasks.ids();
  if (asked !== 'all' && !known.includes(asked)) {
    throw new InputError(`expected --task to be all or one of ${known.join(', ')}, got ${asked}`);
  }
  const common = known.filter((taskId) => policies.every(({ taskIds }) => taskIds.includes(taskId)));
  const tasks = asked === 'all' ? common : common.filter((taskId) => taskId === asked);
  if (tasks.length > 0) return tasks;
  const trained = policies.flatMap(({ policy, taskIds }) =>
    taskIds.length < known.length ? [`${policy.name} for ${taskIds.join(', ')}`] : [],
  );
  const wanted = asked === 'all' ? 'the same task' : asked;
  throw new InputError(`expected policies that can play ${wanted}, got ${trained.join(' and ')}`);
}
