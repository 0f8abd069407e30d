import { type Feature, type KnobMask, llmserve, type ServeAction } from '@servegym/environments';
import { requireSame } from '../error-catalogue.ts';
import { ActionCodec } from './action-codec.ts';

const BY_RATIO = llmserve.knobs.filter(
  (knob) => llmserve.actionSchema.shape[knob].meta()?.bins_by === 'ratio',
);

/** A head for each knob that a task leaves free. */
export class ServeActionCodec extends ActionCodec<ServeAction> {
  constructor(task: KnobMask<ServeAction>) {
    super(llmserve.bins, llmserve.activeKnobs(task), task.defaultAction, BY_RATIO);
  }
}

/** Features of policies that run many servers; those of one server see `llmserve.features`. */
export const MANY_SERVERS_FEATURES: readonly Feature[] = [...llmserve.features, ...llmserve.serverFeatures];

/** Features of a network that sees so many. @throws AgentError `POLICY_MISMATCH` */
export function serveFeatures(observationSize: number): readonly Feature[] {
  if (observationSize === MANY_SERVERS_FEATURES.length) return MANY_SERVERS_FEATURES;
  requireSame('observation size', String(llmserve.features.length), String(observationSize));
  return llmserve.features;
}
