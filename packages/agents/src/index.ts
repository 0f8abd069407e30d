export {
  createPolicy,
  listPolicies,
  type PolicyDescription,
  type ServePolicy,
} from './policies/catalogue.ts';
export type { Policy, PolicyEpisode, PolicyStep } from './policy.ts';
