import { type GymAction, type GymTaskId, inferencegym } from '@servegym/environments';
import { ActionCodec } from './action-codec.ts';

const BY_RATIO = inferencegym.knobs.filter(
  (knob) => inferencegym.actionSchema.shape[knob].meta()?.bins_by === 'ratio',
);

/** A head for each knob that is active in a task. */
export class GymActionCodec extends ActionCodec<GymAction> {
  constructor(taskId: GymTaskId) {
    super(
      inferencegym.bins,
      inferencegym.tasks.shipped[taskId].activeKnobs,
      inferencegym.defaultAction,
      BY_RATIO,
    );
  }
}
