import { ENVIRONMENTS } from '@servegym/environments';
import { AGENTS } from './registry.ts';

// Old names, until the commands that use them are gone.

const { llmserve, fleet, inferencegym } = AGENTS;
export const { createPolicy, loadPolicy: loadTrainedPolicy, check: checkTask } = llmserve;
export const { createPolicy: createFleetPolicy, loadPolicy: loadFleetPolicy, check: checkFleetTask } = fleet;
export const { createPolicy: createGymPolicy, loadPolicy: loadGymPolicy } = inferencegym;
export const listPolicies = () => llmserve.policies;
export const listFleetPolicies = () => fleet.policies;
export const listGymPolicies = () => inferencegym.policies;
export const isPlanner = (name: string) => (llmserve.planners as readonly string[]).includes(name);
export const LEARNABLE_TASKS = {
  llmserve: ENVIRONMENTS.llmserve.tasks.shippedIds,
  inferencegym: ENVIRONMENTS.inferencegym.tasks.shippedIds.map(String),
  fleet: ENVIRONMENTS.fleet.tasks.shippedIds,
} as const;
