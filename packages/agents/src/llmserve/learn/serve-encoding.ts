import {
  activeKnobs,
  type Feature,
  type KnobMask,
  SERVE_ACTION_BINS,
  SERVE_KNOBS,
  SERVER_FEATURES,
  type ServeAction,
  serveActionSchema,
  WINDOW_FEATURES,
} from '@servegym/environments';
import { requireSame } from '../../error-catalogue.ts';
import { ActionCodec } from '../../learning/action-codec.ts';

const BY_RATIO = SERVE_KNOBS.filter((knob) => serveActionSchema.shape[knob].meta()?.bins_by === 'ratio');

/** A head for each knob that a task leaves free. */
export class ServeActionCodec extends ActionCodec<ServeAction> {
  constructor(task: KnobMask<ServeAction>) {
    super(SERVE_ACTION_BINS, activeKnobs(task), task.defaultAction, BY_RATIO);
  }
}

/** Features of policies that run many servers; those of one server see `WINDOW_FEATURES`. */
export const MANY_SERVERS_FEATURES: readonly Feature[] = [...WINDOW_FEATURES, ...SERVER_FEATURES];

/** Features of a network that sees so many. @throws AgentError `POLICY_MISMATCH` */
export function serveFeatures(observationSize: number): readonly Feature[] {
  if (observationSize === MANY_SERVERS_FEATURES.length) return MANY_SERVERS_FEATURES;
  requireSame('observation size', String(WINDOW_FEATURES.length), String(observationSize));
  return WINDOW_FEATURES;
}
