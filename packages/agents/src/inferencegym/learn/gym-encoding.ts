import {
  GYM_ACTION_BINS,
  GYM_DEFAULT_ACTION,
  GYM_TASKS,
  type GymAction,
  type GymTaskId,
  gymActionSchema,
  KNOBS,
} from '@servegym/environments';
import { ActionCodec } from '../../learning/action-codec.ts';

const BY_RATIO = KNOBS.filter((knob) => gymActionSchema.shape[knob].meta()?.bins_by === 'ratio');

/** A head for each knob that is active in a task. */
export class GymActionCodec extends ActionCodec<GymAction> {
  constructor(taskId: GymTaskId) {
    super(GYM_ACTION_BINS, GYM_TASKS[taskId].activeKnobs, GYM_DEFAULT_ACTION, BY_RATIO);
  }
}
